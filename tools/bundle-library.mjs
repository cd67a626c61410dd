// Few files in dist instead of one for each module: comments stand in the declarations, what knows nothing of Nest is there once, and the names of
// functions and classes stay, for whoever reads a stack. parts.mjs says what goes where.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { build, transform } from 'esbuild';
import ts from 'typescript';
import { inOneBody } from './one-body.mjs';
import { planParts } from './parts.mjs';
import { at } from './project.mjs';

const STATEMENT = /^(?:import|export)\s+(?:([^'"`;]*?)\s*from\s*)?['"](\.[^'"]+)['"]/gm;
const LATER = /\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g;
/** What the compiler writes into each file that has decorators. */
const HELPERS = /^var (__\w+) = \(this && this\.\1\) \|\| function[^]*?^\};\n/gm;
const TARGET = 'node20.19';
/** A runner of tests knows no import() in CommonJS. */
const WITHOUT_IMPORTS = { format: 'cjs', supported: { 'dynamic-import': false } };
/** Packages that are installed with this one. */
const OF_USERS = /^(?:node:|ioredis$|croner$)/;
const ES_MODULE = { format: 'esm' };
/** Below it two copies are less to read, and hardly more, than a body and a file for each format. */
const LEAST_BODY = 4_000;
/** Nobody looks into it, and it comes without Nest: lib/cli/terminal/nest-common.ts says why. */
const COMMAND_LINE = {
  format: 'cjs',
  minifySyntax: true,
  minifyWhitespace: true,
  banner: { js: '#!/usr/bin/env node' },
  alias: { '@nestjs/common': at('dist-modules', 'esm', 'cli', 'terminal', 'nest-common.js') },
};

export async function bundleLibrary() {
  const plan = await planParts();
  const exported = namesBetweenParts(plan);
  for (const part of plan.parts) {
    if (part.isCommandLine) await write(part, 'cli', plan, exported, COMMAND_LINE);
    else if (part.isCore) await write(part, 'core', plan, exported, WITHOUT_IMPORTS);
    else await writeForBoth(part, plan, exported);
  }
  chmodSync(at('dist', 'cli', 'nestjs-delay-queue.cjs'), 0o755);
}

/** The file of a part, as one of that format sees it. @param {import('./parts.mjs').Part} part */
function fileOf(part, format) {
  if (part.isCore) return at('dist', 'core', `${part.file}.cjs`);
  return at('dist', format, `${part.file}.${part.isCommandLine ? 'cjs' : 'js'}`);
}

/** By part and module, which of its names other parts import. */
function namesBetweenParts({ parts, partOf, exportsOf }) {
  const wanted = new Map(parts.map((part) => [part, new Map()]));
  for (const [module, part] of partOf) {
    for (const { path, names, isLater } of importsIn(module)) {
      const from = partOf.get(path);
      if (!from) throw new Error(`${module} imports ${path}, which no entry leads to`);
      if (from === part && !(isLater && from.isCore)) continue;
      if (part.isCommandLine && !from.isCore) continue; // It has a copy.
      const known = wanted.get(from).get(path) ?? new Set();
      for (const name of names ?? exportsOf.get(path)) known.add(name);
      wanted.get(from).set(path, known);
    }
  }
  for (const [part, modules] of wanted) refuseTwins(part, modules);
  return wanted;
}

/** A part has one list of exports. */
function refuseTwins(part, modules) {
  const seen = new Map();
  for (const [module, names] of modules) {
    for (const name of names) {
      if (seen.has(name))
        throw new Error(`${module} and ${seen.get(name)} are both in ${part.file}: rename one ${name}`);
      seen.set(name, module);
    }
  }
}

/** The modules that one imports, and by which names; undefined: all of them. */
function importsIn(module) {
  const text = readFileSync(module, 'utf8');
  const found = [...text.matchAll(STATEMENT)].map(([, clause = '{}', path]) => ({ path, names: namesIn(clause) }));
  for (const [, path] of text.matchAll(LATER)) found.push({ path, names: undefined, isLater: true });
  return found.map((one) => ({ ...one, path: resolve(dirname(module), one.path) }));
}

function namesIn(clause) {
  const list = /^\{([^]*)\}$/.exec(clause)?.[1];
  return list
    ?.split(',')
    .map((one) => one.trim().split(/\s+as\s+/)[0])
    .filter(Boolean);
}

/** In both formats, with the code once. */
async function writeForBoth(part, plan, exported) {
  const text = await bundled(part, 'esm', plan, exported, ES_MODULE);
  if (text.length < LEAST_BODY) {
    writeText(fileOf(part, 'esm'), text);
    return write(part, 'cjs', plan, exported, WITHOUT_IMPORTS);
  }
  const file = at('dist', 'body', `${part.file}.cjs`);
  const { body, esm, cjs } = inOneBody(text, relative(dirname(fileOf(part, 'esm')), file));
  writeText(file, body);
  writeText(fileOf(part, 'esm'), esm);
  writeText(fileOf(part, 'cjs'), cjs);
}

async function write(part, format, plan, exported, options) {
  writeText(fileOf(part, format), await bundled(part, format, plan, exported, options));
}

function writeText(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function bundled(part, format, plan, exported, options) {
  const file = fileOf(part, format);
  const { outputFiles } = await build({
    ...(part.entry && !part.isCore
      ? { entryPoints: [part.entry] }
      : { stdin: { contents: entryText(exported.get(part)), resolveDir: at(), sourcefile: part.file } }),
    outfile: file,
    bundle: true,
    platform: 'node',
    target: TARGET,
    ...options,
    // Modules that mark their classes when they are loaded.
    ignoreAnnotations: true,
    legalComments: 'none',
    write: false,
    logLevel: 'warning',
    plugins: [acrossParts(part, format, plan, exported), withSharedHelpers],
  });
  const text = withPathsOfSources(withOwnNames(outputFiles[0].text));
  return part.isCommandLine ? text : withTabs(text);
}

/** A class that speaks of itself is `X = class _X` to esbuild, and so it would be in every stack. */
function withOwnNames(text) {
  const names = [...text.matchAll(/^var (\w+) = class _\1\b/gm)].map(([, name]) => name);
  return names.reduce((one, name) => one.replaceAll(new RegExp(`\\b_${name}\\b`, 'g'), name), text);
}

/** esbuild names each module as it lies on the machine of the build; people know it by its place in the repository. What it says of itself goes. */
function withPathsOfSources(text) {
  const own = /^\/\/ (?:other:|node_modules\/tslib\/|Annotate the CommonJS export names).*\n\n?/gm;
  return text.replace(own, '').replace(/^\/\/ dist-modules\/esm\/(.*)\.js$/gm, '// lib/$1.ts');
}

/** Half as many characters at the beginning of lines: 42 kB of them. A text of several lines stays as it is. */
function withTabs(text) {
  const inside = new Set();
  const visit = (node) => {
    if (ts.isTemplateLiteralToken(node))
      for (let at = node.getStart(source); at < node.end; at++) if (text[at] === '\n') inside.add(at + 1);
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile('part.js', text, ts.ScriptTarget.Latest);
  visit(source);
  return text.replace(/^(?: {2})+/gm, (spaces, at) => (inside.has(at) ? spaces : '\t'.repeat(spaces.length / 2)));
}

function entryText(modules) {
  return [...modules].map(([module, names]) => `export { ${[...names].join(', ')} } from '${module}';`).join('\n');
}

/** What another part has is imported from its file, in one statement. */
function acrossParts(part, format, plan, exported) {
  const { parts, partOf } = plan;
  const here = dirname(fileOf(part, format));
  const importOf = (other) => {
    const path = relative(here, fileOf(other, format));
    return path.startsWith('.') ? path : `./${path}`;
  };
  return {
    name: 'across parts',
    setup(bundle) {
      bundle.onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir, kind, namespace }) => {
        if (namespace === 'other') return { path, external: true };
        const module = resolve(resolveDir, path);
        const other = partOf.get(module);
        if (!other) return undefined;
        if (part.isCommandLine && !other.isCore) return { path: module };
        // Also of its own file: modules that are joined with one that is imported later would all wait for that.
        if (kind === 'dynamic-import') return { path: importOf(other), external: true };
        if (other === part) return { path: module };
        return { path: String(parts.indexOf(other)), namespace: 'other' };
      });
      bundle.onLoad({ filter: /./, namespace: 'other' }, ({ path }) => {
        const other = parts[path];
        const names = namesFrom(other, part, plan, exported).join(', ');
        return { contents: names ? `export { ${names} } from '${importOf(other)}';` : `import '${importOf(other)}';` };
      });
      bundle.onResolve({ filter: /^[^./]/ }, ({ path }) =>
        path === 'tslib' || (part.isCommandLine && !OF_USERS.test(path)) ? undefined : { path, external: true },
      );
    },
  };
}

/** What a part imports from another one: esbuild keeps also the names that are not used. */
function namesFrom(other, part, { partOf, exportsOf }, exported) {
  // It has modules of any part in it.
  if (part.isCommandLine) return [...exported.get(other).values()].flatMap((names) => [...names]);
  const own = [...partOf].filter(([, one]) => one === part).flatMap(([module]) => importsIn(module));
  const wanted = own.filter(({ path, isLater }) => !isLater && partOf.get(path) === other);
  return [...new Set(wanted.flatMap(({ path, names }) => names ?? exportsOf.get(path)))];
}

const withSharedHelpers = {
  name: 'shared helpers',
  setup(bundle) {
    bundle.onLoad({ filter: /dist-modules.*\.js$/ }, async ({ path }) => {
      // A class gets the name of its variable; of two names esbuild would change one.
      const text = readFileSync(path, 'utf8').replace(/^let (\w+) = (?:\1_1 = )?class \1\b/gm, 'let $1 = class');
      const names = [...text.matchAll(HELPERS)].map(([, name]) => name);
      const shared =
        names.length > 0 ? `import { ${names.join(', ')} } from 'tslib';\n${text.replace(HELPERS, '')}` : text;
      // In bodies of classes esbuild keeps comments; the line breaks come back when it writes the bundle.
      const { code } = await transform(shared, { minifyWhitespace: true, legalComments: 'none', target: TARGET });
      return { contents: code };
    });
  },
};
