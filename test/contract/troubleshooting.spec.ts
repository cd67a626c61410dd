import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const page = readFileSync('docs/troubleshooting.md', 'utf8');
const lib = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('testing') && !name.endsWith('.generated.ts'))
  .map((name) => ({ name, text: joined(readFileSync(join('lib', name), 'utf8')) }));

/** Texts that stand on several lines, as one. */
function joined(source: string): string {
  return source.replace(/\s+/g, ' ').replace(/(['`]) \+ ['`]/g, '');
}

function cellsUnder(heading: string): string[] {
  const section = new RegExp(`^## ${heading}\\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(page)![1]!;
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, text]) => text!);
}

/** A call that logs, with its text: warnings and errors, also those that are said once. */
const LOGS =
  /\b(?:logger\.(?:warn|error)|(?:this\.|log\.)?(?:warnOnce|tellOnce)|tell|warn)\(\s*(?:'[\w-]+',\s*|\w+,\s*)?([`'][\s\S]+?)\);/g;

/** Put together of texts that stand elsewhere. */
const COMPOSED = /^[^`]*`(?:\$\{(?:this\.#name\([\w.]+\)|what)\}|Schedule \$)/;

describe('docs/troubleshooting.md', () => {
  it('has every error code, and no other', () => {
    const source = readFileSync('lib/errors/delay-queue.error.ts', 'utf8');
    const declared = [...source.matchAll(/^ {2}\| '(ERR_DQ_\w+)'/gm)].map(([, code]) => code!);
    expect(cellsUnder('Error codes').sort()).toEqual(declared.sort());
    const named = new Set([...page.matchAll(/ERR_DQ_\w+/g)].map(([code]) => code));
    expect([...named].filter((code) => !declared.includes(code))).toEqual([]);
  });

  it('quotes only log lines and reasons of health that the library has', () => {
    const lines = [...cellsUnder('Log lines'), ...cellsUnder('Health')].flatMap((line) => line.split(/ ?\.\.\. ?/));
    const unknown = lines.filter((line) => !lib.some(({ text }) => text.includes(line)));
    expect(lines.length).toBeGreaterThan(30);
    expect(unknown).toEqual([]);
  });

  it('has every warning and error that the library logs', () => {
    const lines = cellsUnder('Log lines');
    const logged = lib
      .flatMap(({ name, text }) => [...text.matchAll(LOGS)].map(([call]) => ({ name, call })))
      .filter((entry) => !COMPOSED.test(entry.call));
    expect(logged.length).toBeGreaterThan(15);
    expect(logged.filter(({ call }) => !lines.some((line) => call.includes(line)))).toEqual([]);
  });
});
