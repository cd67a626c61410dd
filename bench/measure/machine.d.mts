type Sample = { all: number; work: number; stolen: number; own: number };
type Shares = { foreign: number; stolen: number };
export function machineTicks(text: string): Omit<Sample, 'own'>;
export function processTicks(text: string): number;
export function shares(before: Sample | undefined, after: Sample | undefined): Shares | undefined;
export function isBusy(beside: Shares | undefined): boolean;
export function watched<T>(
  servers: readonly number[],
  work: () => Promise<T>,
): Promise<{ result: T; beside: Shares | undefined }>;
