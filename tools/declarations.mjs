// What the compiler of every consumer reads: the declarations that the public entry points lead to, and no others, and in them no text of a
// script as a literal type. They stand beside the CommonJS build; those of the ESM build lead to them, because an ES module may import from
// CommonJS in every version of TypeScript, and CommonJS from an ES module in few.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { at } from './project.mjs';

const IMPORTS = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g;
/** Of a constant or of a field; the names of states and the like are short. */
const LONG_LITERAL = /(?::| =) "(?:[^"\\]|\\.){400,}"/g;
const MODULES = at('dist-modules', 'esm');

export function writeDeclarations() {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const done = new Set();
  for (const entry of Object.values(exports)) {
    if (!entry.import) continue;
    const name = relative('dist/esm', entry.import.types);
    follow(join(MODULES, name), done);
    const target = relative(dirname(entry.import.types), entry.require.types).replace(/\.d\.ts$/, '.js');
    write(at(entry.import.types), `export * from '${target}';\n`);
  }
}

function follow(file, done) {
  if (done.has(file)) return;
  done.add(file);
  const text = readFileSync(file, 'utf8');
  write(at('dist', 'cjs', relative(MODULES, file)), text.replace(LONG_LITERAL, ': string'));
  for (const [, name] of text.matchAll(IMPORTS)) follow(join(dirname(file), `${name}.d.ts`), done);
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
