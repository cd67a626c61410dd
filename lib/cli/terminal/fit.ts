/** Of a text column that gives way: enough of an id to tell it from others. */
const LEAST = 12;

/**
 * How wide columns are where a line has so much room: the widest texts give way first, and numbers never. Without it one long id
 * would push every other column off the line.
 *
 * @param gives may this column be narrower than its cells?
 */
export function fitted(widths: readonly number[], room: number, gives: (column: number) => boolean): number[] {
  const fit = [...widths];
  let over = fit.reduce((sum, width) => sum + width, 0) - room;
  while (over > 0) {
    const texts = [...fit.keys()].filter((column) => gives(column) && fit[column]! > LEAST);
    if (texts.length === 0) break;
    const widest = Math.max(...texts.map((column) => fit[column]!));
    const next = Math.max(LEAST, ...texts.map((column) => fit[column]!).filter((width) => width < widest));
    for (const column of texts.filter((column) => fit[column] === widest)) {
      const less = Math.min(over, widest - next);
      fit[column]! -= less;
      over -= less;
    }
  }
  return fit;
}
