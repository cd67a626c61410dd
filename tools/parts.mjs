// Which module of the build goes into which file of the package.
//
// Most of the library knows nothing of Nest. That is shipped once, as CommonJS in `core`, and used by both formats and by the command line.
// What imports Nest, or another package that may be ESM alone, is there in both formats, and a third time in the command line, which has no
// Nest. Either half is divided by who needs it: what the root of the package loads, what only several other entries load, what one entry
// loads, and what is loaded later.
import { readFileSync } from 'node:fs';
import { basename, relative } from 'node:path';
import { build } from 'esbuild';
import { at } from './project.mjs';

const MODULES = at('dist-modules', 'esm');
const COMMAND_LINE = at('dist-modules', 'esm', 'cli', 'main.js');
/** What a CommonJS module may load in every runtime, also in the tests of applications. */
const PLAIN_PACKAGES = /^(?:node:|ioredis$|croner$)/;

/**
 * @typedef {object} Part
 * @property {string} file in `core`, or in the folder of a format, without its ending
 * @property {boolean} isCore
 * @property {boolean} isCommandLine
 * @property {string} [entry] the module whose exports are those of the part
 */

/** @returns {Promise<{ parts: Part[], partOf: Map<string, Part>, exportsOf: Map<string, string[]> }>} by paths of modules */
export async function planParts() {
  const entries = entryModules();
  const { importsOf, exportsOf } = await readModules([...entries, COMMAND_LINE]);
  const statically = (from) => reached(from, importsOf, ({ kind }) => kind !== 'dynamic-import');
  const ofEntry = new Map(entries.map((entry) => [entry, statically(entry)]));
  const later = groupsOfLater(entries, importsOf, ofEntry, statically);
  ofEntry.set(
    COMMAND_LINE,
    reached(COMMAND_LINE, importsOf, () => true),
  );

  const parts = new Map();
  const partOf = new Map();
  for (const module of importsOf.keys()) {
    const name = ofEntry.has(module) ? module : (later.get(module) ?? partName(module, ofEntry));
    const isCore = name !== COMMAND_LINE && !entries.includes(module) && !needsMore(module, importsOf);
    const key = `${isCore ? 'core' : 'format'} ${name}`;
    if (!parts.has(key)) parts.set(key, partNamed(name, isCore, entries));
    partOf.set(module, parts.get(key));
  }
  return { parts: [...parts.values()], partOf, exportsOf };
}

/** Of each public entry, the root first. */
function entryModules() {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  return Object.values(exports).flatMap((entry) =>
    entry.import ? [at(entry.import.default.replace('dist', 'dist-modules'))] : [],
  );
}

async function readModules(entries) {
  const { metafile } = await build({
    absWorkingDir: at(),
    entryPoints: entries,
    outdir: at('dist-modules', 'unused'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    ignoreAnnotations: true,
    metafile: true,
    write: false,
  });
  const importsOf = new Map(
    Object.entries(metafile.inputs).map(([path, { imports }]) => [
      at(path),
      imports.map((one) => (one.external ? one : { ...one, path: at(one.path) })),
    ]),
  );
  const { metafile: each } = await build({
    absWorkingDir: at(),
    entryPoints: [...importsOf.keys()],
    outdir: at('dist-modules', 'unused'),
    outbase: MODULES,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    metafile: true,
    write: false,
  });
  const exportsOf = new Map(
    Object.values(each.outputs).flatMap(({ entryPoint, exports }) => (entryPoint ? [[at(entryPoint), exports]] : [])),
  );
  return { importsOf, exportsOf };
}

function reached(from, importsOf, follows, found = new Set()) {
  if (found.has(from)) return found;
  found.add(from);
  for (const one of importsOf.get(from))
    if (!one.external && follows(one)) reached(one.path, importsOf, follows, found);
  return found;
}

/** More than the packages of the core, itself or by what it imports at any time. */
function needsMore(module, importsOf) {
  return [...reached(module, importsOf, () => true)].some((one) =>
    importsOf.get(one).some(({ external, path }) => external && !PLAIN_PACKAGES.test(path)),
  );
}

/** By each module that no entry loads at once, the last of the dynamic imports that lead to it; what two of them share joins them. */
function groupsOfLater(entries, importsOf, ofEntry, statically) {
  const early = new Set([...ofEntry.values()].flatMap((modules) => [...modules]));
  const atAnyTime = new Set(entries.flatMap((entry) => [...reached(entry, importsOf, () => true)]));
  const groups = new Map();
  for (const { kind, path } of [...atAnyTime].flatMap((module) => importsOf.get(module))) {
    if (kind !== 'dynamic-import' || !importsOf.has(path) || early.has(path)) continue;
    const modules = [...statically(path)].filter((module) => !early.has(module));
    const joined = new Set(modules.map((module) => groups.get(module)).filter(Boolean));
    for (const [module, group] of groups) if (joined.has(group)) groups.set(module, path);
    for (const module of modules) groups.set(module, path);
  }
  return groups;
}

function partName(module, ofEntry) {
  const owners = [...ofEntry].filter(([, modules]) => modules.has(module)).map(([entry]) => entry);
  if (owners[0] === [...ofEntry.keys()][0]) return 'root';
  // What the command line has in common with one entry stays there: it loads that only when it needs it.
  return owners.filter((owner) => owner !== COMMAND_LINE).length > 1 ? 'several' : owners[0];
}

const FILES = { root: { core: 'delay-queue', format: 'nest' }, several: { core: 'tools', format: 'nest-tools' } };

function partNamed(name, isCore, entries) {
  const isCommandLine = name === COMMAND_LINE;
  if (isCommandLine) return { file: 'nestjs-delay-queue', isCore, isCommandLine, entry: name };
  if (name in FILES) return { file: FILES[name][isCore ? 'core' : 'format'], isCore, isCommandLine };
  const path = relative(MODULES, name).replace(/\.js$/, '');
  if (!isCore && entries.includes(name)) return { file: path, isCore, isCommandLine, entry: name };
  return { file: basename(path.replace(/\/index$/, '')), isCore, isCommandLine };
}
