// Writes scripts.generated.ts and scripts.limited.generated.ts from the .lua files beside it; `--check` only tells whether they agree.
// Lua is shipped as text inside TypeScript because files read at run time are lost by bundlers.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answerHelp } from '../../tools/arguments.mjs';

answerHelp(
  'Usage: npm run generate [-- --check]       writes what TypeScript imports of the Lua in lib/lua; --check only compares',
);

const folder = dirname(fileURLToPath(import.meta.url));
/**
 * What stands between `--#if limits`, an optional `--#else` and `--#end` is for one of the two builds. In a single line that ends with
 * `--#limits`, what follows these words stands there instead in the build with limits.
 */
function partsFor(name, source) {
  return source
    .replace(/^--#if limits\n([^]*?)(?:^--#else\n([^]*?))?^--#end\n/gm, (_, limited, plain = '') =>
      name === 'limited' ? limited : plain,
    )
    .replace(
      /^( *)(.*?) *--#limits (.*)$/gm,
      (_, indent, plain, limited) => indent + (name === 'limited' ? limited : plain),
    );
}

const keysIn = (name, file) => partsFor(name, included(file)).match(/KEYS\[\d+\]/g).length;
const SCHEDULE_KEY_COUNT = keysIn('plain', 'schedule-keys');
const KEY_COUNT = keysIn('plain', 'keys');
/** Every script of that build gets all keys. */
const LIMITED_KEY_COUNT = keysIn('limited', 'keys') + SCHEDULE_KEY_COUNT;

const FUNCTION = /^(local function \w+\(.*\)\n(?:[ \t].*\n|\n)*end\n)/gm;
const nameOf = (text) => /^local function (\w+)/.exec(text)?.[1];

/** `--#include clock` is a file of `shared`; `--#include step/claim` a part of one script, from that script's folder. */
function included(name) {
  return readFileSync(join(folder, name.includes('/') ? '' : 'shared', `${name}.lua`), 'utf8');
}

function withoutComments(source) {
  return source.replace(/(^|\s)--(?!#).*$/gm, '');
}

/**
 * Redis makes every function anew at every call of a script, used or not. So a script gets of the shared files only the functions
 * that it uses.
 */
function withoutUnused(source) {
  for (const [text] of source.matchAll(FUNCTION)) {
    const name = nameOf(text);
    const rest = source.replace(text, () => '');
    if (!new RegExp(`\\b${name}\\b`).test(rest)) return withoutUnused(rest); // What only it has used may go as well.
  }
  return source;
}

/** Comments and indentation are for the reader of this repository, not for the server. */
function squeeze(source) {
  return withoutComments(source)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n');
}

function build(file, name) {
  const source = readFileSync(join(folder, file), 'utf8');
  for (const part of ['KEYS', 'ARGV', 'Reply', 'Cost']) {
    if (!new RegExp(`^-- ${part} `, 'm').test(source)) throw new Error(`${file}: its header does not state ${part}`);
  }
  const whole = partsFor(name, source).replace(/^--#include (\S+)$/gm, (_, part) => included(part));
  const joined = partsFor(name, whole);
  const knowsSchedules = source.includes('--#include schedule-keys');
  const most = name === 'limited' ? LIMITED_KEY_COUNT : KEY_COUNT + (knowsSchedules ? SCHEDULE_KEY_COUNT : 0);
  for (const [, index] of joined.matchAll(/KEYS\[(\d+)\]/g)) {
    if (Number(index) > most) throw new Error(`${file}: KEYS[${index}] is not declared`);
  }
  if (/call\(\s*['"]\w+['"]\s*,\s*['"]/.test(joined))
    throw new Error(`${file}: a key is written out instead of declared`);
  // Its functions, and what stands between them.
  const segments = withoutUnused(withoutComments(joined)).split(FUNCTION);
  return segments.map(squeeze).filter((text) => text !== '');
}

// Scripts lie here, in `recurring` and in `reshard`; those of `limits` are in the limited build only. The other folders hold parts of scripts.
const scriptsIn = (folders) =>
  folders
    .flatMap((below) => readdirSync(join(folder, below)).map((name) => below + name))
    .filter((file) => file.endsWith('.lua'))
    .sort((a, b) => (basename(a) < basename(b) ? -1 : 1));
const escape = (text) => text.replace(/[\\`]/g, '\\$&').replaceAll('${', '\\${');
const camel = (file) =>
  basename(file)
    .replace(/\.lua$/, '')
    .replace(/-(\w)/g, (_, letter) => letter.toUpperCase());

const FOLDERS = ['', 'recurring/', 'reshard/'];
const buildAll = (name, folders) => scriptsIn(folders).map((file) => [camel(file), build(file, name)]);
const builds = { plain: buildAll('plain', FOLDERS), limited: buildAll('limited', [...FOLDERS, 'limits/']) };

/** Texts that several scripts have are written once, by the names of their functions. Shorter ones are not worth it. */
const SHORT = 100;
function sharedParts(scripts, known = new Map()) {
  const counts = new Map();
  for (const [, segments] of scripts) for (const text of segments) counts.set(text, (counts.get(text) ?? 0) + 1);
  const names = new Set(known.values());
  const parts = new Map();
  for (const [text, count] of counts) {
    if (count < 2 || text.length < SHORT || known.has(text)) continue;
    const wanted = camel((nameOf(text) ?? 'part').replaceAll('_', '-'));
    let name = wanted;
    for (let n = 2; names.has(name); n++) name = wanted + n;
    names.add(name);
    parts.set(text, name);
  }
  return parts;
}

const plainParts = sharedParts(builds.plain);
const limitedParts = sharedParts(builds.limited, plainParts);

const literal = (text) => `\`${escape(text)}\``;
const partsText = (parts) => [...parts].map(([text, name]) => `  ${name}: ${literal(text)},`);

/** A script as a list of parts and of its own text. */
function scriptText(segments, lists) {
  const items = [];
  let own = '';
  const flush = () => {
    if (own !== '') items.push(literal(own));
    own = '';
  };
  for (const text of segments) {
    const [from, parts] = lists.find(([, of]) => of.has(text)) ?? [];
    if (!parts) {
      own += own === '' ? text : `\n${text}`;
      continue;
    }
    flush();
    items.push(`${from}.${parts.get(text)}`);
  }
  flush();
  return items.join(', ');
}

function sourcesText(name, scripts, lists) {
  const entries = scripts.map(([script, segments]) => `  ${script}: joined(${scriptText(segments, lists)}),`);
  return [`export const ${name} = {`, ...entries, '};'];
}

const NOTE = '// Written by generate.mjs from the .lua files beside it. Change those, then run `npm run generate`.';
const envelope = squeeze(partsFor('limited', included('envelope')));
const texts = {
  'scripts.generated.ts': [
    NOTE,
    `export const KEY_COUNT = ${KEY_COUNT};`,
    '/** More keys that the scripts of recurring jobs get, behind those. */',
    `export const SCHEDULE_KEY_COUNT = ${SCHEDULE_KEY_COUNT};`,
    '/** What several scripts have. */',
    'export const PARTS = {',
    ...partsText(plainParts),
    '};',
    'export function joined(...parts: readonly string[]): string {',
    "  return parts.join('\\n');",
    '}',
    ...sourcesText('SOURCES', builds.plain, [['PARTS', plainParts]]),
    '',
  ].join('\n'),
  'scripts.limited.generated.ts': [
    NOTE,
    "import { joined, PARTS } from './scripts.generated.js';",
    `export const LIMITED_KEY_COUNT = ${LIMITED_KEY_COUNT};`,
    'const LIMITED = {',
    ...partsText(limitedParts),
    '};',
    ...sourcesText('LIMITED_SOURCES', builds.limited, [
      ['PARTS', plainParts],
      ['LIMITED', limitedParts],
    ]),
    '/** How the scripts read and write envelopes, for the test kit, which moves the times in them. */',
    `export const ENVELOPE = ${literal(envelope)};`,
    '',
  ].join('\n'),
};

for (const [file, text] of Object.entries(texts)) {
  const target = join(folder, file);
  if (!process.argv.includes('--check')) {
    writeFileSync(target, text);
  } else if (readFileSync(target, 'utf8') !== text) {
    console.error(`lib/lua/${file} is stale: run \`npm run generate\`.`);
    process.exit(1);
  }
}
