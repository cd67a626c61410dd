// The deliberate defects of test/mutants are only run by hand and at night. Here it is checked, in no time, that each of them can
// still be made: a change of the library that moves the text which a defect replaces is told at once, and not after hours.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { applyEdits, applyMutant, parseMutant, readMutants } from '../mutants/mutants.mjs';

const sources = new Map<string, string>();
function source(file: string): string {
  if (!sources.has(file)) sources.set(file, readFileSync(file, 'utf8'));
  return sources.get(file)!;
}

/** What the check objects to, for each that has something to object. */
function objections<T>(all: readonly T[], check: (one: T) => string | undefined): string[] {
  return all.map(check).filter((objection) => objection !== undefined);
}

describe('the defects of test/mutants', () => {
  const mutants = readMutants();

  it('are many, in folders by what they are about, and nothing else lies among them', () => {
    expect(mutants.length).toBeGreaterThan(400);
    const own = ['README.md', 'mutants.d.mts', 'mutants.mjs', 'run.mjs'];
    const files = (readdirSync('test/mutants', { recursive: true }) as string[]).filter((path) => path.includes('.'));
    const strange = files.filter(
      (path) => !own.includes(path) && !/^[a-z]+(-[a-z]+)*\/[a-z]+(-[a-z]+)*\.json$/.test(path),
    );
    expect(strange).toEqual([]);
  });

  it('have names of their own, whatever the folder', () => {
    const names = mutants.map(({ name }) => basename(name));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  it('replace what stands in the source exactly once, by something else', () => {
    const refused = objections(mutants, (mutant) => {
      try {
        const made = applyMutant(mutant, source);
        const same = mutant.edits.find(({ find, replace }) => find === replace);
        if (same) return `${mutant.name} replaces a text of ${same.file} by itself`;
        const unchanged = [...made].find(([file, text]) => text === source(file));
        return unchanged && `${mutant.name} leaves ${unchanged[0]} as it is`;
      } catch (error) {
        return `${mutant.name} ${(error as Error).message}`;
      }
    });
    expect(refused).toEqual([]);
  });

  it('name specs that exist', () => {
    const missing = objections(mutants, ({ name, specs }) => {
      const gone = specs.filter((spec) => !spec.endsWith('.spec.ts') || !existsSync(spec));
      return gone.length > 0 ? `${name} names ${gone.join(', ')}` : undefined;
    });
    expect(missing).toEqual([]);
  });

  it('differ from each other', () => {
    const edits = mutants.map((mutant) => JSON.stringify([mutant.edits, mutant.specs, mutant.testNamePattern]));
    expect(mutants.filter((_, at) => edits.indexOf(edits[at]!) !== at).map(({ name }) => name)).toEqual([]);
  });
});

describe('a defect', () => {
  const edit = (find: string, replace: string) => ({ file: 'a.ts', find, replace });

  it('is made at all of its places at once, in any order', () => {
    expect(applyEdits('one two three', [edit('three', 'one'), edit('one', 'three')])).toBe('three two one');
    expect(applyEdits('a;\nb;\nc;\n', [edit('b;\n', '')])).toBe('a;\nc;\n');
  });

  it('is refused where its text is missing, stands twice, also overlapping, or is part of another edit', () => {
    expect(() => applyEdits('one', [edit('two', '')])).toThrow('does not occur in a.ts: two');
    expect(() => applyEdits('one one', [edit('one', '')])).toThrow('occurs more than once in a.ts: one');
    expect(() => applyEdits('aaa', [edit('aa', '')])).toThrow('occurs more than once');
    expect(() => applyEdits('abc', [edit('ab', ''), edit('bc', '')])).toThrow('overlaps another edit of a.ts: bc');
  });

  it('has texts of several lines as arrays, and one place or several', () => {
    const own = { file: 'a.ts', find: ['a', ''], replace: '' };
    const rest = { breaks: ['All', 'of it.'], specs: ['a.spec.ts'], testNamePattern: 'b', model: true };
    const wanted = { ...rest, name: 'x/y', breaks: 'All of it.', edits: [edit('a\n', '')] };
    expect(parseMutant('x/y', JSON.stringify({ ...own, ...rest }))).toEqual(wanted);
    expect(parseMutant('x/y', JSON.stringify({ edits: [own], ...rest }))).toEqual(wanted);
  });

  it.each([
    ['is not JSON', '{'],
    ['has fields that nobody reads: titel', { titel: 'b' }],
    ['has no edits', { edits: [] }],
    ['has `edits` and an edit beside them', { edits: [edit('a', '')] }],
    ['does not say what it breaks', { breaks: '' }],
    ['does not name its specs', { specs: [] }],
    ['has a `testNamePattern` that is no text', { testNamePattern: 1 }],
    ['has a `model` that is neither true nor false', { model: 'yes' }],
    ['has an edit without `file`, `find` or `replace`', { replace: undefined }],
    ['has an edit without `file`, `find` or `replace`', { find: '' }],
  ])('is refused when it %s', (reason, wrong) => {
    const good = { breaks: 'All.', file: 'a.ts', find: 'a', replace: '', specs: ['a.spec.ts'] };
    const text = typeof wrong === 'string' ? wrong : JSON.stringify({ ...good, ...wrong });
    expect(() => parseMutant('x/y', text)).toThrow(`test/mutants/x/y.json ${reason}`);
  });
});
