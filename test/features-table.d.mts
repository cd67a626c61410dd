export interface Feature {
  readonly feature: string;
  /** As linked, from docs/. */
  readonly example: string | undefined;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}
export function readFeatures(path?: string): Feature[];

export interface Combination {
  readonly feature: string;
  /** Of each limit: how it is shown. */
  readonly cells: readonly string[];
  readonly held: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}
export function readCombinations(path?: string): { limits: string[]; rows: Combination[] };
