import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { readCombinations } from '../features-table.mjs';

const { limits, rows } = readCombinations();
const textOf = (file: string) => readFileSync(file, 'utf8');
const COMBINED = 'test/integration/features/limits.combinations.spec.ts';
/** What the model calls each limit. */
const IN_THE_MODEL: Record<string, string> = {
  globalConcurrency: 'count: maybe',
  rateLimit: 'rate: maybe',
  'groups.concurrency': 'groupCount: fc',
  'groups.rateLimit': 'groupRate: maybe',
  'groups.retries': 'blocks: fc',
  priority: 'priority: maybe',
};

/** @returns what proves this letter in the last cell of its row */
function proofsOf(letter: string, { held, tests }: (typeof rows)[number]): string[] {
  const all = [...held.matchAll(/`(model|servers): ([\w-]+)`/g)];
  const named = (kind: string) => all.filter(([, of]) => of === kind).map(([, , name]) => name!);
  if (letter === 'M') return named('model');
  if (letter === 'S') return named('servers');
  if (letter === 'C') return tests.filter(({ file }) => file === COMBINED).map(({ title }) => title);
  if (letter === 'R') return [...held.matchAll(/`(\w+Error)`/g)].map(([, error]) => error!);
  return tests.filter(({ file }) => file !== COMBINED).map(({ title }) => title);
}

describe('test/limits-combinations.md', () => {
  it('has each limit, and each feature once', () => {
    expect(limits).toEqual(Object.keys(IN_THE_MODEL));
    expect(rows.length).toBeGreaterThan(25);
    expect(new Set(rows.map(({ feature }) => feature)).size).toBe(rows.length);
  });

  it('has limits that the model draws, and that are combined each with each feature', () => {
    const [model, combined] = [textOf('test/model/commands.ts'), textOf(COMBINED)];
    for (const [limit, drawn] of Object.entries(IN_THE_MODEL)) {
      expect([limit, model.includes(drawn)]).toEqual([limit, true]);
      expect([limit, new RegExp(`^  '?${limit}'?: \\{`, 'm').test(combined)]).toEqual([limit, true]);
    }
  });

  it.each(rows.map((row) => [row.feature, row] as const))('of %s has a proof in each cell', (_, row) => {
    expect(row.cells).toHaveLength(limits.length);
    for (const cell of row.cells) {
      expect(cell).toMatch(/^(?:-|[MCTRS](?:, [MCTRS])*)$/);
      const letters = cell.split(', ').filter((letter) => letter !== '-');
      for (const letter of letters) expect([letter, proofsOf(letter, row)]).not.toEqual([letter, []]);
    }
    expect(row.cells.some((cell) => cell !== '-')).toBe(true);
  });

  it('names commands of the model, rows of the servers and tests that exist', () => {
    const commands = textOf('test/model/commands.ts');
    const [jest, servers] = [textOf('jest.config.ts'), textOf('test/servers/run.mjs')];
    expect(jest).toContain("'model/grouped-1'");
    for (const row of rows) {
      const drawn = proofsOf('M', row).filter((command) => command !== 'memory');
      for (const command of drawn) expect(commands).toContain(`{ do: '${command}'`);
      for (const server of proofsOf('S', row)) expect(servers).toContain(`'${server}': {`);
      for (const { file, title } of row.tests) {
        expect([file, existsSync(file)]).toEqual([file, true]);
        expect([file, title, textOf(file).replace(/\s+/g, ' ').includes(title)]).toEqual([file, title, true]);
      }
    }
  });

  it('has one test for each limit wherever it says so', () => {
    const combined = textOf(COMBINED);
    const described = [...combined.matchAll(/^describe\('([^']+)', \(\) => \{([\s\S]*?)^\}\);/gm)];
    const eachOf = described.filter(([, , body]) => body!.includes('it.each(EACH)')).map(([, title]) => title!);
    const named = rows.flatMap((row) => proofsOf('C', row));
    expect([...new Set(named)].sort()).toEqual([...eachOf].sort());
  });
});
