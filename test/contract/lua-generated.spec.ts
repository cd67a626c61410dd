import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SOURCES } from '../../lib/lua/scripts.generated.js';

describe('scripts.generated.ts', () => {
  it('is what generate.mjs writes from the .lua files', () => {
    expect(() => execFileSync(process.execPath, ['lib/lua/generate.mjs', '--check'])).not.toThrow();
  });

  it('holds one script per file', () => {
    const files = ['lib/lua', 'lib/lua/reshard']
      .flatMap((folder) => readdirSync(folder))
      .filter((name) => name.endsWith('.lua'));
    expect(Object.keys(SOURCES)).toHaveLength(files.length);
  });
});
