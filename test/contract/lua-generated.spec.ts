import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SOURCES } from '../../lib/lua/scripts.generated.js';

describe('scripts.generated.ts', () => {
  it('is what generate.mjs writes from the .lua files', () => {
    expect(() => execFileSync(process.execPath, ['lib/lua/generate.mjs', '--check'])).not.toThrow();
  });

  it('holds one script per file', () => {
    const files = ['lib/lua', 'lib/lua/recurring', 'lib/lua/reshard']
      .flatMap((folder) => readdirSync(folder))
      .filter((name) => name.endsWith('.lua'));
    expect(Object.keys(SOURCES)).toHaveLength(files.length);
  });

  it.each(Object.entries(SOURCES))('%s has no function that it does not use', (_, source) => {
    const names = [...source.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
    expect(names.filter((name) => source.match(new RegExp(`\\b${name}\\b`, 'g'))!.length === 1)).toEqual([]);
  });
});
