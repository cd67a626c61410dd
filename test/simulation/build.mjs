// Makes JavaScript of the simulator, beside a built package. Types are checked by `npm run typecheck`.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import swc from '@swc/core';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { at } from '../../tools/project.mjs';

const SIMULATOR = {
  sources: ['test/simulation', 'test/helpers/groups.ts'],
  lastFile: 'dist-simulation/cli.js',
  build: buildSimulator,
};

export async function buildAll() {
  await buildIfStale([LIBRARY, SIMULATOR]);
}

function buildSimulator() {
  mkdirSync(at('dist-simulation'), { recursive: true });
  const files = readdirSync(at('test', 'simulation')).filter(
    (name) => name.endsWith('.ts') && !name.includes('.spec.'),
  );
  // What other tests have as well.
  compile(at('test', 'helpers', 'groups.ts'), 'groups.js');
  // The command last: its time says when all were made.
  for (const name of files.toSorted((one) => (one === 'cli.ts' ? 1 : -1))) {
    compile(at('test', 'simulation', name), name.replace(/\.ts$/, '.js'));
  }
}

function compile(file, name) {
  const jsc = { target: 'es2023', parser: { syntax: 'typescript' } };
  const options = { filename: name, jsc, module: { type: 'es6' }, swcrc: false };
  const { code } = swc.transformSync(readFileSync(file, 'utf8'), options);
  writeFileSync(at('dist-simulation', name), code.replaceAll("'../helpers/", "'./").replaceAll('"../helpers/', '"./'));
}
