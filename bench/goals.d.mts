export type Goal = Partial<Record<'least' | 'most' | 'timesBullmq' | 'timesBee' | 'shareOfBullmq' | 'ofBare', number>>;
export type Figures = { ours: number | null; bullmq?: number | null; beeQueue?: number | null; bare?: number | null };
export function goalText(goal?: Goal): string | null;
export function isMet(goal: Goal | undefined, figures: Figures): boolean | null;
