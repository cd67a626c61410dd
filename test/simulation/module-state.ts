/** The variables of one module that change while it is used. */
export interface Keeper {
  read(): unknown[];
  write(values: readonly unknown[]): void;
  /** What they are when the module is loaded. */
  fresh(): unknown[];
}

/** The function that a module hands its keeper to. */
export const KEEP = '__keep';

/** A declaration at the top of a module that ends on its line, or is at least begun there. */
const VARIABLE = /^(let|const) (\w+)(?: = (.*?))?(;?)$/gm;
const EMPTY_COLLECTION = /^(?:new (?:Map|Set)\(\)|\[\]|\{\})$/;

/**
 * Processes of a simulation share the modules, and not their state: the text of a module that has some gets a last line that hands
 * it out. What a process makes is its own anyway, so only variables of the module count, and its collections that begin empty.
 *
 * @throws for a variable in a form that this does not know: it would be shared
 */
export function withKeeper(code: string, file: string): string {
  const variables: { name: string; value: string }[] = [];
  const replace = (line: string, kind: string, name: string, value = 'undefined', end: string) => {
    if (kind === 'const' && !EMPTY_COLLECTION.test(value)) return line;
    if (value.startsWith('class ')) return line; // It has decorators, and is assigned once.
    if (end === '') throw new Error(`${file}: "${line}" may be state of this module`);
    variables.push({ name, value });
    return line.replace(/^const/, 'let');
  };
  const text = code.replace(VARIABLE, replace as (line: string) => string);
  if (variables.length === 0) return code;
  const names = `[${variables.map(({ name }) => name).join(', ')}]`;
  const fresh = `[${variables.map(({ value }) => value).join(', ')}]`;
  const keeper = `{ read: () => ${names}, write: (values) => { ${names} = values; }, fresh: () => ${fresh} }`;
  return `${text}\n;${KEEP}(${keeper});`;
}
