// Builds the library (ESM, and CommonJS behind `require`) and the sample application, which imports it by its name.
import { readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { run } from './run-command.mjs';
import { at } from './project.mjs';

const NEST = at('node_modules', '@nestjs', 'cli', 'bin', 'nest.js');
const TSC = at('node_modules', 'typescript', 'bin', 'tsc');

const LIBRARY = {
  sources: ['lib', 'package.json', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.cjs.json'],
  lastFile: 'dist/cjs/package.json',
  build: buildLibrary,
};
const SAMPLE = {
  sources: ['sample-app/src', 'sample-app/tsconfig.json', LIBRARY.lastFile],
  lastFile: 'dist-sample/main.js',
  build: buildSample,
};

export const SAMPLE_MAIN = at(SAMPLE.lastFile);

export async function buildLibrary(options) {
  rmSync(at('dist'), { recursive: true, force: true });
  await node([NEST, 'build'], options);
  await node([TSC, '-p', 'tsconfig.cjs.json'], options);
  writeFileSync(at('dist', 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
}

async function buildSample(options) {
  rmSync(at('dist-sample'), { recursive: true, force: true });
  await node([NEST, 'build', 'sample-app'], options);
}

/** Builds both, each only when something it is made from is newer. */
export async function buildWhatIsStale(options) {
  for (const target of [LIBRARY, SAMPLE]) {
    if (isFresh(target)) continue;
    const began = new Date();
    await target.build(options);
    // The time of its beginning, so that what was edited while it ran counts as newer.
    utimesSync(at(target.lastFile), began, began);
  }
}

function isFresh({ sources, lastFile }) {
  const built = changedAt(at(lastFile));
  return built > 0 && sources.every((source) => newest(at(source)) < built);
}

/** Time of the last change below a path; a folder's own time tells of files that were removed. */
function newest(path) {
  const inside = statSync(path).isDirectory() ? readdirSync(path).map((name) => `${path}/${name}`) : [];
  return Math.max(changedAt(path), ...inside.map(newest));
}

function changedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function node(args, { signal } = {}) {
  return run(process.execPath, args, { cwd: at(), signal });
}
