/**
 * Which values have no neighbour: a line through them would have no length, and nothing would be seen of them. So a queue that worked
 * in one minute of the hour would look idle.
 */
export function alone(values: ArrayLike<number | null | undefined>): number[] {
  const isThere = (index: number) => values[index] !== null && values[index] !== undefined;
  return Array.from({ length: values.length }, (_, index) => index).filter(
    (index) => isThere(index) && !isThere(index - 1) && !isThere(index + 1),
  );
}
