import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import * as library from '../../lib/index.js';
import { DEFAULTS } from '../../lib/defaults.js';

const TESTING_FAULTS = 'test/integration/features/testing.faults';
const readme = readFileSync('README.md', 'utf8');
const errors = readFileSync('docs/errors.md', 'utf8');
const source = readFileSync('lib/errors/delay-queue.error.ts', 'utf8');

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'CODE_OF_CONDUCT.md',
  'SECURITY.md',
  'sample-app/README.md',
  ...['test', 'test/model', 'test/mutants'].map((folder) => `${folder}/README.md`),
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
/** As GitHub makes them of headings. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replace(/ /g, '-'),
  );

/** Without the blocks of code. */
const proseOf = (page: string) => readFileSync(page, 'utf8').replace(/^[ \t]*```.*?^[ \t]*```/gms, '');
const cellsOf = (row: string) => row.split(/(?<!\\)\|/).length - 2;

describe('the documentation', () => {
  it.each(pages)('%s links to files and headings that exist', (page) => {
    const broken = [...readFileSync(page, 'utf8').matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(
      ([, file, anchor]) => {
        const target = file ? join(dirname(page), file) : page;
        if (!existsSync(target)) return true;
        return anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor);
      },
    );
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it.each(pages)('%s has no line over 160 characters, but for tables', (page) => {
    const lines = readFileSync(page, 'utf8').split('\n');
    expect(lines.filter((line) => line.length > 160 && !line.startsWith('|'))).toEqual([]);
  });

  it.each(pages)('%s begins each item of a list on a line of its own', (page) => {
    const lines = proseOf(page)
      .split('\n')
      .filter((line) => !line.startsWith('|'));
    const markerInside = /\S - \S|\S -$|[.:;,)] \d{1,2}\.( |$)/;
    expect(lines.filter((line) => markerInside.test(line.replace(/`[^`]*`/g, 'code')))).toEqual([]);
  });

  it.each(pages)('%s has the same number of cells in all rows of a table', (page) => {
    const tables = proseOf(page).match(/(^\|.*\n)+/gm) ?? [];
    const uneven = tables.flatMap((table) => {
      const rows = table.trimEnd().split('\n');
      return rows.filter((row) => !row.endsWith('|') || cellsOf(row) !== cellsOf(rows[0]!));
    });
    expect(uneven).toEqual([]);
  });

  it('explains at most 25 words in the glossary', () => {
    const words = readFileSync('docs/glossary.md', 'utf8').match(/^\| \*\*/gm)!;
    expect(words.length).toBeLessThanOrEqual(25);
  });

  it('lists every error code, and no other', () => {
    const declared = [...source.matchAll(/^ {2}\| '(ERR_DQ_\w+)'/gm)].map(([, code]) => code);
    const documented = [...errors.matchAll(/^\| `(ERR_DQ_\w+)`/gm)].map(([, code]) => code);
    expect(documented).toEqual(expect.arrayContaining(declared));
    expect(declared).toEqual(expect.arrayContaining(documented));
  });

  it('shows in docs/testing.md only what tests run', () => {
    const flat = (text: string) => text.replace(/^[ \t]+/gm, '');
    const files = ['sample-app/test/payment-story', 'test/integration/features/testing', TESTING_FAULTS];
    const sources = files.map((name) => flat(readFileSync(`${name}.spec.ts`, 'utf8')));
    const blocks = [...readFileSync('docs/testing.md', 'utf8').matchAll(/^```ts\n(.*?)^```/gms)].map(
      ([, block]) => block!,
    );
    expect(blocks.length).toBeGreaterThan(4);
    expect(blocks.filter((block) => !sources.some((source) => source.includes(flat(block))))).toEqual([]);
  });

  it.each(['relay', 'recipes', 'migrating-from-bullmq'])(
    'shows in docs/%s.md only what tests and the examples run',
    (page) => {
      const flat = (text: string) => text.replace(/^[ \t]+/gm, '');
      const examples = ['relaying', 'recipes', 'everyday', 'in-nest', 'apart', 'outbox', 'instances', 'migrating'];
      const files = [...examples.map((name) => `docs/examples/${name}.ts`), 'test/integration/features/relay.spec.ts'];
      const sources = files.map((file) => flat(readFileSync(file, 'utf8')));
      // What belongs together in a recipe need not stand together in its example: paragraph by paragraph.
      const blocks = [
        ...readFileSync(`docs/${page}.md`, 'utf8').matchAll(/^```ts\n(?!\/\/ BullMQ)(.*?)^```/gms),
      ].flatMap(([, block]) => block!.trimEnd().split(/\n{2,}/));
      expect(blocks.length).toBeGreaterThan(1);
      expect(blocks.filter((block) => !sources.some((source) => source.includes(flat(block))))).toEqual([]);
    },
  );

  it('shows in docs/getting-started.md whole files, which are compiled, and a test that runs', () => {
    const spec = readFileSync('test/integration/features/getting-started.spec.ts', 'utf8').replace(/^[ \t]+/gm, '');
    const folder = 'docs/examples/getting-started';
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const blocks = [...readFileSync('docs/getting-started.md', 'utf8').matchAll(/^```ts\n(.*?)^```/gms)];
    const [test, ...others] = blocks.map(([, block]) => block!).reverse();
    expect(others.reverse().sort()).toEqual(files.sort());
    const body = test!.slice(test!.indexOf('\nlet app')).replace(/^[ \t]+/gm, '');
    const [setUp, cases] = [body.slice(0, body.indexOf("\nit('")), body.slice(body.indexOf("\nit('"))];
    expect(spec).toContain(setUp);
    expect(spec.replace(/\n+/g, '\n')).toContain(cases.replace(/\n+/g, '\n').trim());
  });

  it('names every error class that is exported', () => {
    const classes = Object.entries(library)
      .filter(
        ([name, value]) =>
          name !== 'DelayQueueError' && typeof value === 'function' && value.prototype instanceof Error,
      )
      .map(([name]) => name)
      .filter((name) => name.endsWith('Error'));
    expect(classes.filter((name) => !errors.includes(`\`${name}\``))).toEqual([]);
  });

  it('lists every option that has a default', () => {
    const options = Object.keys(DEFAULTS).map((name) => name.replace(/Ms$/, ''));
    const page = readFileSync('docs/options.md', 'utf8');
    expect(options.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('has a README that can be read in a quarter of an hour', () => {
    expect(readme.length).toBeLessThan(20_000);
  });
});
