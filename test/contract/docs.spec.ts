import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import * as library from '../../lib/index.js';
import { DEFAULTS } from '../../lib/delay-queue.options.js';

const readme = readFileSync('README.md', 'utf8');
const errors = readFileSync('docs/errors.md', 'utf8');
const source = readFileSync('lib/delay-queue.errors.ts', 'utf8');

describe('the documentation', () => {
  it('lists every error code, and no other', () => {
    const declared = [...source.matchAll(/^ {2}\| '(ERR_DQ_\w+)'/gm)].map(([, code]) => code);
    const documented = [...errors.matchAll(/^\| `(ERR_DQ_\w+)`/gm)].map(([, code]) => code);
    expect(documented).toEqual(expect.arrayContaining(declared));
    expect(declared).toEqual(expect.arrayContaining(documented));
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

  it('lists every module option in the README', () => {
    const options = Object.keys(DEFAULTS).map((name) => name.replace(/Ms$/, ''));
    expect(options.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});
