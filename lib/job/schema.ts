import { InvalidOptionError, SchemaError } from '../delay-queue.errors.js';
import type { SchemaIssue } from '../delay-queue.errors.js';
import { summarizeRefusal } from './error-record.js';
import { withoutValues } from './payload-values.js';

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
 * @throws SchemaError naming the paths, without their values; InvalidOptionError where the schema itself fails
 */
export function applySchema(schema: StandardSchema, value: unknown, queue: string, root = 'payload'): unknown {
  const failed = (cause: unknown): never => {
    const what = `Queue "${queue}": the schema of the ${root} threw`;
    throw new InvalidOptionError(`${what} ${summarizeRefusal(cause, value)}`, { cause });
  };
  let result: unknown;
  try {
    result = schema['~standard'].validate(value);
  } catch (cause) {
    return failed(cause);
  }
  // Not `instanceof Promise`: it may be one of another realm, or of a library.
  const isThenable = typeof (result as PromiseLike<unknown> | undefined)?.then === 'function';
  return isThenable
    ? Promise.resolve(result).then((later) => outputOf(later, value, queue, root), failed)
    : outputOf(result, value, queue, root);
}

function outputOf(result: unknown, input: unknown, queue: string, root: string): unknown {
  const isAnswer = typeof result === 'object' && result !== null;
  const { issues } = (isAnswer ? result : {}) as { issues?: unknown };
  if (!issues) {
    if (isAnswer && 'value' in result) return result.value;
    throw new InvalidOptionError(`Queue "${queue}": the schema answered with neither a value nor issues.`);
  }
  throw new SchemaError(
    queue,
    readIssues(issues, queue).map(({ message, keys }): SchemaIssue => ({
      message: withoutValues(message, [input], keys),
      path: pathOf(keys, root),
    })),
  );
}

interface ReadIssue {
  readonly message: string;
  readonly keys: readonly PropertyKey[];
}

/** @throws InvalidOptionError when a library, or a schema written by hand, does not keep to the specification */
function readIssues(issues: unknown, queue: string): ReadIssue[] {
  const malformed = (what: string, cause?: unknown) =>
    new InvalidOptionError(
      `Queue "${queue}": the answer of the schema is malformed: ${what}. See \`issues\` at standardschema.dev.`,
      { cause },
    );
  if (!Array.isArray(issues)) throw malformed('its issues are no array');
  return issues.map((issue: StandardIssue | null, index): ReadIssue => {
    if (typeof issue !== 'object' || issue === null) throw malformed(`issue ${index} is no object`);
    try {
      const { message, path = [] } = issue;
      return { message: String(message), keys: path.map(keyOf) };
    } catch (error) {
      throw malformed(`message or path of issue ${index} cannot be read`, error);
    }
  });
}

function keyOf(part: PropertyKey | { readonly key: PropertyKey }): PropertyKey {
  const key: unknown = typeof part === 'object' ? part.key : part;
  return typeof key === 'number' || typeof key === 'symbol' ? key : String(key);
}

function pathOf(keys: readonly PropertyKey[], root: string): string {
  return keys.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
    root,
  );
}
