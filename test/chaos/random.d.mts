export interface Random {
  /** From 0 to below 1. */
  next(): number;
  below(n: number): number;
  /** Both ends included. */
  between(from: number, to: number): number;
  pick<T>(list: readonly T[]): T;
  shuffle<T>(list: readonly T[]): T[];
}

export function randomOf(seed: number): Random;
