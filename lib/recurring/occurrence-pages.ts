/** Where a page of an index begins: behind this score, and behind this id of that score. */
export type Cursor = readonly [score: string, id: string];

export const FIRST_PAGE: Cursor = ['-inf', ''];

/** The answer of a script that looks at one page; without a cursor it was the last one. */
export function parsePage(answer: string): { found: string; cursor: Cursor | undefined } {
  const [, found, score, id] = /^(\S+)(?: (\S+) (.*))?$/s.exec(answer)!;
  return { found: found!, cursor: score === undefined ? undefined : [score, id!] };
}
