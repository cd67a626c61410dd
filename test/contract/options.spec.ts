import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const page = readFileSync('docs/options.md', 'utf8');
/** Combinations of others, which have tables; and options that are not an object of fields. */
const NO_TABLE = ['CodecOption', 'ConnectionOption', 'NewTimes', 'DelayQueueRootOptions', 'DelayQueueRootAsyncOptions', 'DelayQueueDashboardRootOptions', 'DelayQueueDashboardRootAsyncOptions', 'OccurrenceOptions', 'RepeatOptions', 'ScheduleTimes']; // prettier-ignore

function exported(): string[] {
  const entries = execFileSync('git', ['ls-files', 'lib/index.ts', 'lib/*/index.ts'], { encoding: 'utf8' });
  const text = entries.trim().split('\n').map((file) => readFileSync(file, 'utf8')).join('\n'); // prettier-ignore
  return [...text.matchAll(/\b(\w+(?:Options?|Times|Thresholds|Settings|Defaults))\b(?=[\s,}])/g)].map(
    ([, name]) => name!,
  );
}

describe('docs/options.md', () => {
  it('says of every option what its comment says, with its default', () => {
    const { status, stderr } = spawnSync(process.execPath, ['tools/options-page.mjs', '--check'], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('has a table for every kind of options that the package exports', () => {
    const tables = [...page.matchAll(/^<!-- options \S+ (\w+) -->$/gm)].map(([, name]) => name);
    const missing = exported().filter((name) => !NO_TABLE.includes(name) && !tables.includes(name));
    expect(missing).toEqual([]);
  });

  it('leaves no option without a word, and no value that may be left out without saying so', () => {
    const tables = page.slice(page.indexOf('<!-- options'));
    const rows = tables.match(/^\| `\w+` .*\|$/gm)!.map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
    expect(rows.length).toBeGreaterThan(80);
    expect(rows.filter((cells) => cells.length === 6 && cells[4] === '').map(([, option]) => option)).toEqual([]);
  });
});
