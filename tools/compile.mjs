// Builds the library into dist, ESM and CommonJS behind `require`, by way of dist-modules, which has a file for each module; and what imports it
// by its name: the sample application and the examples of the documentation.
import { readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from './project.mjs';
import { run } from './run-command.mjs';

const NEST = at('node_modules', '@nestjs', 'cli', 'bin', 'nest.js');
const TSC = at('node_modules', 'typescript', 'bin', 'tsc');

export const LIBRARY = {
  sources: [
    'lib',
    'package.json',
    'nest-cli.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'tsconfig.cjs.json',
    'tools/parts.mjs',
    'tools/bundle-library.mjs',
    'tools/one-body.mjs',
    'tools/declarations.mjs',
  ],
  lastFile: 'dist/cjs/package.json',
  build: buildLibrary,
};
export const SAMPLE = {
  sources: ['sample-app/src', 'sample-app/tsconfig.json', LIBRARY.lastFile],
  lastFile: 'dist-sample/main.js',
  build: buildSample,
};
export const EXAMPLES = {
  sources: ['docs/examples', LIBRARY.lastFile],
  lastFile: 'dist-examples/redis.js',
  build: buildExamples,
};

export async function buildLibrary(options) {
  for (const folder of ['dist', 'dist-modules']) rmSync(at(folder), { recursive: true, force: true });
  await node([NEST, 'build'], options);
  await node([TSC, '-p', 'tsconfig.cjs.json'], options);
  writeFileSync(at('dist-modules', 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
  // Only now: a fresh clone installs what they need before it builds.
  const [{ writeDeclarations }, { bundleLibrary }] = await Promise.all([
    import('./declarations.mjs'),
    import('./bundle-library.mjs'),
  ]);
  writeDeclarations();
  await bundleLibrary();
  await buildPage();
  writeFileSync(at('dist', 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
}

/** The page of the dashboard. */
export async function buildPage(outDir = at('dist', 'dashboard')) {
  const [{ build }, { default: config }] = await Promise.all([
    import('vite'),
    import('../lib/dashboard/page/vite.config.mjs'),
  ]);
  const { NODE_ENV } = process.env;
  // Whatever it is here: in tests the page would be another one, and larger.
  process.env.NODE_ENV = 'production';
  try {
    await build({ ...config, build: { ...config.build, outDir } });
  } finally {
    // It holds for the whole process: npm would then install no development dependencies, and tests and samples would run as in production.
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
  // Only a module knows where it lies, also in the folder of another package.
  writeFileSync(join(outDir, 'folder.cjs'), 'module.exports = __dirname;\n');
}

async function buildSample(options) {
  rmSync(at('dist-sample'), { recursive: true, force: true });
  await node([NEST, 'build', 'sample-app'], options);
}

async function buildExamples(options) {
  rmSync(at('dist-examples'), { recursive: true, force: true });
  await node([TSC, '-p', at('docs', 'examples', 'tsconfig.json')], options);
}

/** Builds each target whose sources are newer than it. @param {{ signal?: AbortSignal }} [options] */
export async function buildIfStale(targets, options) {
  for (const { sources, lastFile, build } of targets) {
    const built = changedAt(at(lastFile));
    if (sources.every((source) => newest(at(source)) < built)) continue;
    const began = new Date();
    await build(options);
    // The time of its beginning, so that what was edited while it ran counts as newer.
    utimesSync(at(lastFile), began, began);
  }
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
