// The deliberate defects of this folder as data: how one is read from its file, and how it is made in a text.
// README.md tells what stands in such a file. run.mjs runs them, test/contract/mutants.spec.ts checks that all of them apply.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const FIELDS = ['breaks', 'edits', 'file', 'find', 'replace', 'specs', 'testNamePattern', 'model'];
const FIELDS_OF_EDIT = ['file', 'find', 'replace'];

/** All defects, by name: `claiming/claims-early` is the file claiming/claims-early.json. */
export function readMutants() {
  return readdirSync(folder, { recursive: true })
    .filter((path) => path.endsWith('.json'))
    .map((path) => path.replaceAll('\\', '/').slice(0, -'.json'.length))
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((name) => parseMutant(name, readFileSync(join(folder, `${name}.json`), 'utf8')));
}

export function parseMutant(name, text) {
  const refuse = (reason) => {
    throw new Error(`test/mutants/${name}.json ${reason}`);
  };
  let stored;
  try {
    stored = JSON.parse(text);
  } catch (error) {
    refuse(`is not JSON: ${error.message}`);
  }
  const { breaks, edits = [pick(stored, FIELDS_OF_EDIT)], specs, testNamePattern, model = false } = stored;
  const unknown = [...unknownIn(stored, FIELDS), ...edits.flatMap((edit) => unknownIn(edit, FIELDS_OF_EDIT))];
  if (unknown.length > 0) refuse(`has fields that nobody reads: ${unknown.join(', ')}`);
  if (edits.length === 0) refuse('has no edits');
  if ('edits' in stored && FIELDS_OF_EDIT.some((field) => field in stored))
    refuse('has `edits` and an edit beside them');
  if (!isText(breaks)) refuse('does not say what it breaks');
  if (!Array.isArray(specs) || specs.length === 0) refuse('does not name its specs');
  if (!['undefined', 'string'].includes(typeof testNamePattern)) refuse('has a `testNamePattern` that is no text');
  if (typeof model !== 'boolean') refuse('has a `model` that is neither true nor false');
  for (const { file, find, replace } of edits) {
    if (typeof file !== 'string' || !isText(find) || !(replace === '' || isText(replace)))
      refuse('has an edit without `file`, `find` or `replace`');
  }
  const inOneText = edits.map(({ file, find, replace }) => ({ file, find: joined(find), replace: joined(replace) }));
  return { name, breaks: [breaks].flat().join(' '), edits: inOneText, specs, testNamePattern, model };
}

/** The text with all edits made. Each `find` must stand in it exactly once, and no two of them may overlap. */
export function applyEdits(text, edits) {
  const places = edits.map(({ file, find, replace }) => {
    const at = text.indexOf(find);
    if (at < 0) throw new Error(`does not occur in ${file}: ${find}`);
    if (text.includes(find, at + 1)) throw new Error(`occurs more than once in ${file}: ${find}`);
    return { at, end: at + find.length, file, find, replace };
  });
  places.sort((one, other) => one.at - other.at);
  let result = '';
  let done = 0;
  for (const { at, end, file, find, replace } of places) {
    if (at < done) throw new Error(`overlaps another edit of ${file}: ${find}`);
    result += text.slice(done, at) + replace;
    done = end;
  }
  return result + text.slice(done);
}

/** What the files of a defect hold once it is made, by path. `read` gives what they hold now. */
export function applyMutant({ edits }, read) {
  const files = [...new Set(edits.map(({ file }) => file))];
  return new Map(files.map((file) => [file, applyEdits(read(file), edits.filter((edit) => edit.file === file))])); // prettier-ignore
}

function joined(text) {
  return Array.isArray(text) ? text.join('\n') : text;
}

/** A text that is not empty, or the lines of one. */
function isText(value) {
  return [value].flat().every((line) => typeof line === 'string') && joined(value).length > 0;
}

function unknownIn(object, known) {
  return Object.keys(object).filter((field) => !known.includes(field));
}

function pick(object, fields) {
  return Object.fromEntries(fields.filter((field) => field in object).map((field) => [field, object[field]]));
}
