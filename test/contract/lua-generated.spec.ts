import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SOURCES } from '../../lib/lua/scripts.generated.js';
import { LIMITED_SOURCES } from '../../lib/lua/scripts.limited.generated.js';

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

/** Of Lua, as far as scripts use it. */
const OF_LUA =
  /^(and|elseif|function|if|in|ipairs|local|next|not|or|pairs|pcall|return|select|string|tonumber|tostring|type|unpack|until|while)$/;

/** Redis finds such a call only when it comes to it, perhaps behind the writes of the script. */
it.each([...Object.entries(SOURCES), ...Object.entries(LIMITED_SOURCES)])(
  '%s calls no function that it does not have',
  (_, source) => {
    const code = source.replace(/'[^'\n]*'/g, "''");
    const called = [...code.matchAll(/(?<![.:\w])([a-z_]\w*) ?\(/g)].map(([, name]) => name!);
    const has = (name: string) =>
      OF_LUA.test(name) || new RegExp(`(local|function|,) ?(function )?${name}\\b`).test(code);
    expect([...new Set(called)].filter((name) => !has(name))).toEqual([]);
  },
);

/**
 * Of the scripts for queues that use no groups, priorities or limits. A change of one of them is a change for everybody: put its new hash here
 * when that is meant, and never because a limit came in.
 */
const PLAIN = '79a6e12fa0f15a430157a0d72c0f584a0c63ce8bde9fb756f318afffbc237569';

describe('queues that use no limits', () => {
  it('run scripts that are byte for byte those of a build without limits', () => {
    const hash = createHash('sha256').update(JSON.stringify(SOURCES)).digest('hex');
    expect(hash).toBe(PLAIN);
    expect(JSON.stringify(SOURCES)).not.toMatch(/GROUPED|RING|HELD|RATES/);
  });

  it.each(Object.entries(LIMITED_SOURCES))('with limits, %s has no function that it does not use', (_, source) => {
    const names = [...source.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
    expect(names.filter((name) => source.match(new RegExp(`\\b${name}\\b`, 'g'))!.length === 1)).toEqual([]);
  });
});
