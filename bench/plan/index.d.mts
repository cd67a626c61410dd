export function plan(options: { quick?: boolean; only?: string; runs?: number; scale?: number }): {
  name: string;
  rows: { name: string }[];
}[];
