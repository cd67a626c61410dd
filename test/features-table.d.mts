export interface Feature {
  readonly feature: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}
export function readFeatures(path?: string): Feature[];
