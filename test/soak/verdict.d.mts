export type Measure = 'heap' | 'external' | 'rss' | 'handles' | 'timers' | 'redis' | 'keys' | 'connections';

export type Sample = { readonly seconds: number } & Readonly<Record<Measure, number>>;

export interface Row {
  readonly name: Measure;
  readonly rise: number;
  readonly bound: number;
  readonly isFlat: boolean;
}

export interface Verdict {
  /** Of the last two thirds of the samples. */
  readonly rows: readonly Row[];
  readonly isFlat: boolean;
}

export const BOUNDS: Readonly<
  Record<Measure, { readonly unit: string; readonly part: number; readonly least: number }>
>;
export function verdictOf(samples: readonly Sample[]): Verdict;
export function tableOf(verdict: Verdict): string;
