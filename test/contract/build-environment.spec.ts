import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { endingWithEachTest } from '../helpers/ending.js';

const end = endingWithEachTest();
/** Of each build: the names have a hash of their content. */
const pages = new Set<string>();

it.each([undefined, 'test'])(
  'a build leaves NODE_ENV as it was, and makes the same page: %s',
  async (before) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'build-environment-')));
    end({ close: async () => rmSync(folder, { recursive: true, force: true }) });
    const program = `
    import { buildPage } from ${JSON.stringify(pathToFileURL('tools/compile.mjs').href)};
    await buildPage(${JSON.stringify(join(folder, 'page'))});
    console.log(JSON.stringify({ after: process.env.NODE_ENV }));`;
    const env: NodeJS.ProcessEnv = { ...process.env, NODE_OPTIONS: '' };
    delete env['NODE_ENV'];
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
      env: before === undefined ? env : { ...env, NODE_ENV: before },
    });
    expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toEqual({ after: before });
    pages.add(
      readdirSync(join(folder, 'page', 'assets'))
        .sort()
        .join(' '),
    );
    expect([...pages]).toHaveLength(1);
  },
  120_000,
);
