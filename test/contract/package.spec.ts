import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';

/** docs/decisions/0027-form-of-the-package.md has what the parts weigh. */
const MOST_BYTES = 2_545_000;
/** What the compiler of every consumer reads. */
const LONGEST_DECLARATION = 30_000;

interface Packed {
  readonly files: readonly { readonly path: string; readonly size: number }[];
  readonly unpackedSize: number;
}
let packed: Packed;
let paths: ReadonlySet<string>;

beforeAll(() => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  [packed] = JSON.parse(execFileSync('npm', args, { encoding: 'utf8', shell: process.platform === 'win32' })) as [
    Packed,
  ];
  paths = new Set(packed.files.flatMap(({ path }) => [path, ...foldersOf(path)]));
});

function foldersOf(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [folder, ...foldersOf(folder)];
}

describe('the package', () => {
  it('has every page and file that one of its pages links to: what is in the repository alone is named, and no link', () => {
    const pages = [...paths].filter((path) => path.endsWith('.md'));
    const dead = pages.flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/\]\((?!\w+:)([^)#\s]+)/g)]
        .map(([, target]) => join(dirname(page), target!))
        .filter((target) => !paths.has(target.replace(/\/$/, '')))
        .map((target) => `${page}: ${target}`),
    );
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/recipes.md']));
    expect(dead).toEqual([]);
  });

  it('has neither maps without their sources nor tests nor what was decided, and is not large', () => {
    expect(
      [...paths].filter((path) => /\.map$|\.spec\.|^test\/|^docs\/(?:decisions|architecture|features)/.test(path)),
    ).toEqual([]);
    expect(packed.unpackedSize).toBeLessThan(MOST_BYTES);
  });

  it('has what knows nothing of Nest once, for both formats and the command line', () => {
    const files = packed.files
      .map(({ path }) => path)
      .filter((path) => /^dist\/(cjs|esm|body|core)\/.*\.c?js$/.test(path));
    const having = (text: string) => files.filter((path) => readFileSync(path, 'utf8').includes(text));
    expect(having('local DUE, RUNNING, LEASES, JOBS = KEYS[1]')).toEqual(['dist/core/delay-queue.cjs']);
    expect(having('class MemoryStore')).toEqual(['dist/core/memory.session.cjs']);
    expect(
      files
        .filter((path) => path.startsWith('dist/core/'))
        .filter((path) => /require\("@/.test(readFileSync(path, 'utf8'))),
    ).toEqual([]);
  });

  it('has what imports Nest once as well: what each format has of its own is how it imports', () => {
    const sizeOf = (folder: string) =>
      packed.files
        .filter(({ path }) => path.startsWith(folder) && path.endsWith('js'))
        .reduce((sum, { size }) => sum + size, 0);
    const body = sizeOf('dist/body/');
    expect(body).toBeGreaterThan(200_000);
    for (const folder of ['dist/esm/', 'dist/cjs/']) expect(sizeOf(folder)).toBeLessThan(body / 10);
  });

  it('has comments in its declarations alone, and names modules by their place in the repository, not on the machine of the build', () => {
    const code = packed.files
      .map(({ path }) => path)
      .filter((path) => /^dist\/(cjs|esm|body|core)\/.*\.c?js$/.test(path));
    const having = (wrong: RegExp) => code.filter((path) => wrong.test(readFileSync(path, 'utf8')));
    expect(having(/^\s*\/\*\*/m)).toEqual([]);
    expect(having(/^\/\/ (?:other:|dist-modules\/|\.{0,2}\/)/m)).toEqual([]);
    const built = packed.files.filter(({ path }) => path.startsWith('dist/'));
    expect(built.filter(({ path }) => readFileSync(path, 'utf8').includes(process.cwd()))).toEqual([]);
  });

  it('keeps the names of classes, which messages and stacks show', () => {
    const text = packed.files
      .filter(({ path }) => /^dist\/(cjs|esm|body|core)\/.*\.c?js$/.test(path))
      .map(({ path }) => readFileSync(path, 'utf8'))
      .join('\n');
    expect(text.match(/\bclass (_\w+|\w+\d) /g)).toBeNull();
    for (const name of ['DelayQueueInspector', 'DelayQueueModule', 'DelayQueueHarness']) {
      expect(text).toMatch(new RegExp(`^var ${name} = class(?: ${name})? `, 'm'));
    }
  });

  it('makes no compiler read the texts of scripts as types, nor anything twice', () => {
    const long = packed.files.filter(({ path, size }) => path.endsWith('.d.ts') && size > LONGEST_DECLARATION);
    const esm = packed.files.filter(({ path }) => /^dist\/esm\/.*\.d\.ts$/.test(path));
    expect(long.map(({ path }) => path)).toEqual([]);
    // What these add to a framework must be said in the format in which that is imported.
    const links = esm.filter(({ path }) => !/testing\/(?:jest|vitest)\.d\.ts$/.test(path));
    expect(links.filter(({ size }) => size > 100)).toEqual([]);
  });
});

describe('docs/compatibility.md', () => {
  it('has the ranges of package.json', () => {
    const page = readFileSync('docs/compatibility.md', 'utf8');
    const { engines, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
      'engines' | 'peerDependencies',
      Record<string, string>
    >;
    const named = ['@nestjs/common', 'ioredis', 'prom-client', '@opentelemetry/api', 'devalue'];
    const ranges = [engines['node']!, ...named.map((name) => peerDependencies[name]!)].flatMap((range) =>
      range.split(' || '),
    );
    expect(ranges.filter((range) => !page.includes(`\`${range}\``))).toEqual([]);
  });
});
