import { InvalidOptionError, SchemaError } from '../delay-queue.errors.js';
import type { SchemaIssue } from '../delay-queue.errors.js';
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
      message: withoutValues(String(message), input, refusedAt(input, path)),
      path: pathOf(path, root),
    })),
  );
}

/** The value that an issue is about. */
function refusedAt(input: unknown, path: readonly unknown[]): unknown {
  return path.reduce((value, part) => {
    const key = typeof part === 'object' && part !== null ? (part as { key: PropertyKey }).key : (part as PropertyKey);
    return typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
  }, input);
}

function pathOf(path: NonNullable<StandardIssue['path']>, root: string): string {
  return path.reduce<string>((text, part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`;
  }, root);
}
