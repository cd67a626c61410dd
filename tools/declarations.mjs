// What every consumer's compiler reads: the declarations that the public entry points lead to, and no others, and in them no
// text of a script as a literal type.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { at } from './project.mjs';

const IMPORTS = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g;
/** Of a constant or of a field; the names of states and the like are short. */
const LONG_LITERAL = /(?::| =) "(?:[^"\\]|\\.){400,}"/g;

/** @param {string} format `esm` or `cjs` */
export function trimDeclarations(format) {
  const folder = at('dist', format);
  const kept = new Set();
  for (const entry of entriesOf(format)) follow(entry, kept);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const file = join(folder, name);
    if (file.endsWith('.d.ts') && !kept.has(file)) rmSync(file);
  }
}

function entriesOf(format) {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const condition = format === 'esm' ? 'import' : 'require';
  return Object.values(exports).flatMap((entry) => (entry[condition] ? [at(entry[condition].types)] : []));
}

function follow(file, kept) {
  if (kept.has(file)) return;
  kept.add(file);
  const text = readFileSync(file, 'utf8');
  const short = text.replace(LONG_LITERAL, ': string');
  if (short !== text) writeFileSync(file, short);
  for (const [, name] of text.matchAll(IMPORTS)) follow(join(dirname(file), `${name}.d.ts`), kept);
}
