// Makes JavaScript of the simulator, beside a built package. Types are checked by `npm run typecheck`.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import swc from '@swc/core';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { at } from '../../tools/project.mjs';

const SIMULATOR = { sources: ['test/simulation'], lastFile: 'dist-simulation/cli.js', build: buildSimulator };

export async function buildAll() {
  await buildIfStale([LIBRARY, SIMULATOR]);
}

function buildSimulator() {
  mkdirSync(at('dist-simulation'), { recursive: true });
  const files = readdirSync(at('test', 'simulation')).filter(
    (name) => name.endsWith('.ts') && !name.includes('.spec.'),
  );
  const jsc = { target: 'es2023', parser: { syntax: 'typescript' } };
  // The command last: its time says when all were made.
  for (const name of files.toSorted((one) => (one === 'cli.ts' ? 1 : -1))) {
    const { code } = swc.transformSync(readFileSync(at('test', 'simulation', name), 'utf8'), {
      filename: name,
      jsc,
      module: { type: 'es6' },
      swcrc: false,
    });
    writeFileSync(at('dist-simulation', name.replace(/\.ts$/, '.js')), code);
  }
}
