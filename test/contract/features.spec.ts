import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readFeatures } from '../features-table.mjs';

const features = readFeatures();

/** Of a spec and of what it imports from its own folder, which may hold the titles. */
function sourceOf(spec: string): string {
  const own = readFileSync(spec, 'utf8');
  const beside = [...own.matchAll(/ from '\.\/([\w.-]+)\.js'/g)].map(([, name]) => join(dirname(spec), `${name}.ts`));
  const texts = [own, ...beside.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8'))];
  return texts.join('\n').replace(/\s+/g, ' ');
}

// That the tests also ran and passed can only be known at the end of the run: test/features-reporter.mjs looks then.
describe('docs/features.md', () => {
  it('has a row for each feature once', () => {
    const names = features.map(({ feature }) => feature);
    expect(names.length).toBeGreaterThan(30);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(features.map(({ feature, example }) => [feature, example] as const))('%s has an example', (_, example) => {
    expect(example).toBeDefined();
    expect([example, existsSync(join('docs', example!))]).toEqual([example, true]);
  });

  it.each(features.map(({ feature, tests }) => [feature, tests] as const))(
    '%s is held by tests that exist and are not left out',
    (_, tests) => {
      expect(tests.length).toBeGreaterThan(0);
      for (const { file, title } of tests) {
        expect([file, existsSync(file)]).toEqual([file, true]);
        const source = sourceOf(file);
        // A title may go through describe and it: each part stands in the file.
        for (const part of title.split(' › ')) expect([file, part, source.includes(part)]).toEqual([file, part, true]);
        expect(source).not.toMatch(/\b(?:it|test|describe)\.(?:skip|todo|only)\b/);
      }
    },
  );
});
