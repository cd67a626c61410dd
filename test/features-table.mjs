// Reads the table of docs/features.md: one row per feature, whose last two cells link an example and name the
// tests that hold it.
import { readFileSync } from 'node:fs';

const NAMED = /`((?:test|sample-app)\/[^`]+)` "([^"]+)"/g;

/** @returns {{ feature: string, example: string | undefined, tests: { file: string, title: string }[] }[]} */
export function readFeatures(path = 'docs/features.md') {
  const rows = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[\s:-]+\|/.test(line))
    .map((line) => line.split(/(?<!\\)\|/).slice(1, -1));
  return rows
    .filter((cells) => cells[0].trim() !== 'feature')
    .map((cells) => ({
      feature: cells[0].trim(),
      example: /\]\(([^)#]+)/.exec(cells.at(-2))?.[1],
      tests: [...cells.at(-1).matchAll(NAMED)].map(([, file, title]) => ({ file, title })),
    }));
}

const cellsOf = (line) =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());

/**
 * Reads the table of test/limits-combinations.md: a column for each limit, and the tests that hold the row in the last one.
 *
 * @returns {{ limits: string[], rows: { feature: string, cells: string[], held: string, tests: { file: string, title: string }[] }[] }}
 */
export function readCombinations(path = 'test/limits-combinations.md') {
  const lines = readFileSync(path, 'utf8').split('\n');
  const [head, , ...rows] = lines.filter((line) => line.startsWith('|')).map(cellsOf);
  return {
    limits: head.slice(1, -1).map((limit) => limit.replaceAll('`', '')),
    rows: rows.map((cells) => {
      const held = cells.at(-1);
      const tests = [...held.matchAll(NAMED)].map(([, file, title]) => ({ file, title }));
      return { feature: cells[0], cells: cells.slice(1, -1), held, tests };
    }),
  };
}
