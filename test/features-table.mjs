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
