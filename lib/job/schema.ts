import { InvalidOptionError, SchemaError } from '../delay-queue.errors.js';
import type { SchemaIssue } from '../delay-queue.errors.js';

/**
 * A schema of any library that follows Standard Schema (zod, valibot, arktype, ...); the specification, version 1, is at
 * standardschema.dev. Declared here, because a package of types is not worth a dependency of every user.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

export function isStandardSchema(value: unknown): value is StandardSchema<any, any> {
  // Some libraries make their schemas callable.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<StandardSchema>)['~standard'];
  return standard?.version === 1 && typeof standard.validate === 'function';
}

/**
 * @param root what the value is called: begins the paths
 * @returns the output of the schema; a promise only when the schema answers with one
 * @throws SchemaError naming the paths, without their values
 */
export function applySchema(schema: StandardSchema, value: unknown, queue: string, root = 'payload'): unknown {
  const result: unknown = schema['~standard'].validate(value);
  // Not `instanceof Promise`: it may be one of another realm, or of a library.
  const isThenable = typeof (result as PromiseLike<unknown> | undefined)?.then === 'function';
  return isThenable
    ? Promise.resolve(result).then((later) => outputOf(later, value, queue, root))
    : outputOf(result, value, queue, root);
}

function outputOf(result: unknown, input: unknown, queue: string, root: string): unknown {
  const isAnswer = typeof result === 'object' && result !== null;
  const { issues } = (isAnswer ? result : {}) as { issues?: readonly StandardIssue[] };
  if (!issues) {
    if (isAnswer && 'value' in result) return result.value;
    throw new InvalidOptionError(`Queue "${queue}": the schema answered with neither a value nor issues.`);
  }
  throw new SchemaError(
    queue,
    issues.map(({ message, path = [] }): SchemaIssue => ({
      message: withoutValues(message, input, path),
      path: pathOf(path, root),
    })),
  );
}

const MOST_VALUES = 1_000;
const DEEPEST = 10;
/** Texts this long are the payload's wherever they stand; shorter ones, and numbers, may be words of the message. */
const TELLING_LENGTH = 4;
const HIDDEN = '[value]';

/** Some libraries quote what they refuse (`received "4711"`), and messages of schemas come into logs and dead letters. */
function withoutValues(message: unknown, input: unknown, path: readonly unknown[]): string {
  let text = String(message);
  const refused = new Set(valuesIn(path.reduce(valueAt, input)));
  const values = [...new Set([...refused, ...valuesIn(input)])].sort((a, b) => b.length - a.length);
  for (const value of values) {
    if (value.length >= TELLING_LENGTH) text = text.replaceAll(value, HIDDEN);
    else if (value !== '' && refused.has(value)) text = text.replace(alone(value), HIDDEN);
  }
  return text;
}

/** Not as a part of a word or number. */
function alone(value: string): RegExp {
  return new RegExp(`(?<![\\w.])${value.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)}(?![\\w]|\\.\\d)`, 'gu');
}

function valueAt(value: unknown, part: unknown): unknown {
  const key = typeof part === 'object' && part !== null ? (part as { key: PropertyKey }).key : (part as PropertyKey);
  return typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
}

/** Texts and numbers, as a message would write them. */
function valuesIn(input: unknown): string[] {
  const found: string[] = [];
  const walk = (value: unknown, depth: number): void => {
    if (found.length >= MOST_VALUES || depth > DEEPEST) return;
    if (typeof value === 'string') found.push(value, JSON.stringify(value).slice(1, -1));
    else if (typeof value === 'number' || typeof value === 'bigint') found.push(String(value));
    else if (value instanceof Date) found.push(String(value), Number.isNaN(value.getTime()) ? '' : value.toISOString());
    else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) walk(one, depth + 1);
  };
  walk(input, 0);
  return found;
}

function pathOf(path: NonNullable<StandardIssue['path']>, root: string): string {
  return path.reduce<string>((text, part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`;
  }, root);
}
