import { SchemaError } from '../delay-queue.errors.js';
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
  const result = schema['~standard'].validate(value);
  return result instanceof Promise
    ? result.then((later) => outputOf(later, queue, root))
    : outputOf(result, queue, root);
}

function outputOf(result: StandardResult<unknown>, queue: string, root: string): unknown {
  if (!result.issues) return result.value;
  throw new SchemaError(
    queue,
    result.issues.map(({ message, path = [] }): SchemaIssue => ({ message, path: pathOf(path, root) })),
  );
}

function pathOf(path: NonNullable<StandardIssue['path']>, root: string): string {
  return path.reduce<string>((text, part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`;
  }, root);
}
