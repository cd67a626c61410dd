export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The sum of one field. */
export function total<T>(values: readonly T[], of: (value: T) => number): number {
  return sum(values.map(of));
}
