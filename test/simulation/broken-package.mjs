// A copy of the built package with a deliberate defect of test/mutants. Only the changed files are made anew, so that it takes a second.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import swc from '@swc/core';
import { at } from '../../tools/project.mjs';
import { applyMutant } from '../mutants/mutants.mjs';

const folders = [];

/** @returns a folder that is gone with this process */
export function folderForDefects() {
  if (folders.length === 0) {
    process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
  }
  const folder = mkdtempSync(join(tmpdir(), 'delay-queue-simulated-'));
  folders.push(folder);
  return folder;
}

/** Makes the built package with the defect. @param copy a folder, of which nothing is left */
export function makeDefect(mutant, copy) {
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(join(copy, 'dist-modules'), { recursive: true });
  cpSync(at('dist-modules', 'cjs'), join(copy, 'dist-modules', 'cjs'), { recursive: true });
  cpSync(at('lib', 'lua'), join(copy, 'lib', 'lua'), { recursive: true });
  // What writes the scripts' texts imports this.
  cpSync(at('tools', 'arguments.mjs'), join(copy, 'tools', 'arguments.mjs'));
  symlinkSync(at('node_modules'), join(copy, 'node_modules'));
  const texts = applyMutant(mutant, (file) => readFileSync(at(file), 'utf8'));
  for (const [file, text] of texts) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    writeFileSync(join(copy, file), text);
    if (file.endsWith('.ts')) compile(file, copy);
  }
  if (![...texts.keys()].some((file) => file.endsWith('.lua'))) return;
  execFileSync(process.execPath, [join(copy, 'lib', 'lua', 'generate.mjs')]);
  compile('lib/lua/scripts.generated.ts', copy);
  compile('lib/lua/scripts.limited.generated.ts', copy);
}

function compile(file, copy) {
  const { code } = swc.transformSync(readFileSync(join(copy, file), 'utf8'), {
    filename: file,
    jsc: {
      target: 'es2023',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'commonjs' },
    swcrc: false,
  });
  writeFileSync(join(copy, file.replace(/^lib/, 'dist-modules/cjs').replace(/\.ts$/, '.js')), code);
}
