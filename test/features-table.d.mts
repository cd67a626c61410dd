export interface Feature {
  readonly feature: string;
  /** As linked, from docs/. */
  readonly example: string | undefined;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}
export function readFeatures(path?: string): Feature[];
