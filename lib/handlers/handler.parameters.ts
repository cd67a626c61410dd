import {
  type ArgumentMetadata,
  type ExecutionContext,
  ParseArrayPipe,
  type PipeTransform,
  type Type,
  ValidationPipe,
} from '@nestjs/common';
import { InvalidHandlerError } from '../delay-queue.errors.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { applySchema } from '../job/schema.js';
import type { StandardSchema } from '../job/schema.js';
import { AbsentProperty } from './absent-property.js';
import { Batch } from './batch-job.js';
import {
  JOB_PARAMETER,
  PAYLOAD_PARAMETER,
  type ParameterEntry,
  type PipeArgument,
  ROUTE_ARGUMENTS,
} from './job-params.decorator.js';
import { wholeJob, wholePayload } from './parameter-types.js';

export type Method = (...args: any[]) => unknown;

/** What one call of a handler is about. */
export type Work = DelayedJob | Batch;

/** The values that an argument may be made from. */
export interface ArgumentSource {
  readonly work: Work;
  readonly context: ExecutionContext;
}

/** How one argument of a handler is made; its own pipes are still as they were declared. */
export interface Parameter {
  readonly index: number;
  readonly read: (source: ArgumentSource) => unknown;
  /** Undefined: no pipe touches it. */
  readonly metadata: ArgumentMetadata | undefined;
  /** Runs on the value before the pipes. */
  readonly schema: ParameterSchema | undefined;
  readonly pipes: PipeArgument[];
}

/** Of `@JobPayload({ schema })`. */
export interface ParameterSchema {
  readonly schema: StandardSchema;
  /** The name of the value in errors. */
  readonly path: string;
}

export interface BoundParameter extends Parameter {
  readonly pipes: PipeTransform[];
}

type CustomEntry = ParameterEntry & { factory?: (data: unknown, context: ExecutionContext) => unknown };

const CUSTOM = '__customRouteArgs__';

/**
 * The parameters of a handler in their order: those decorated, or `(payload, job)` when none is.
 *
 * @param declaredBy the prototype whose class body holds the method
 * @throws InvalidHandlerError when only some are decorated, one twice, or one with what has no meaning here
 */
export function readParameters(
  declaredBy: object,
  key: string | symbol,
  method: Method,
  name: string,
  instance: string,
): Parameter[] {
  const entries: Record<string, CustomEntry> = Reflect.getMetadata(ROUTE_ARGUMENTS, declaredBy.constructor, key) ?? {};
  const types: Type[] | undefined = Reflect.getMetadata('design:paramtypes', declaredBy, key);
  const parameters = Object.entries(entries).map(([type, entry]) =>
    parameterOf(type, entry, types?.[entry.index], name, absenceOf(entry, method, name, instance)),
  );
  if (parameters.length === 0) return plainParameters(types?.[0]);
  // Defaults and rest parameters end `length`, so the compiler's list is the better one when it was emitted.
  const count = Math.max(types?.length ?? 0, method.length, ...parameters.map(({ index }) => index + 1));
  for (let index = 0; index < count; index++) {
    const decorators = parameters.filter((parameter) => parameter.index === index).length;
    if (decorators === 1) continue;
    const problem = decorators === 0 ? 'has no decorator while others have' : 'has more than one decorator';
    throw new InvalidHandlerError(
      `${name}: parameter ${index} ${problem}. Give each parameter one, @JobPayload() or @Job(), or remove all and receive (payload, job).`,
    );
  }
  return parameters.toSorted((a, b) => a.index - b.index);
}

/** Undecorated, Nest would run no pipe at all and say nothing; here they run on the payload as if it were decorated. */
function plainParameters(metatype: Type | undefined): Parameter[] {
  return [
    {
      index: 0,
      read: wholePayload,
      metadata: { type: 'body', metatype, data: undefined },
      schema: undefined,
      pipes: [],
    },
    { index: 1, read: wholeJob, metadata: undefined, schema: undefined, pipes: [] },
  ];
}

function parameterOf(
  key: string,
  entry: CustomEntry,
  metatype: Type | undefined,
  name: string,
  absence: AbsentProperty | undefined,
): Parameter {
  const { index, data, pipes = [], factory, schema, payloadSchema } = entry;
  // `schema` is what Nest 12 hands to its StandardSchemaValidationPipe, from @Body({ schema }) for one. That of
  // @JobPayload is applied here and kept from pipes: a second time it would meet its own output.
  const metadata = { metatype, data, ...(schema !== undefined && { schema }) } as Omit<ArgumentMetadata, 'type'>;
  if (key.includes(CUSTOM)) {
    const read = ({ context }: ArgumentSource) => factory?.(data, context);
    return { index, read, metadata: { ...metadata, type: 'custom' }, schema: undefined, pipes };
  }
  switch (Number.parseInt(key, 10)) {
    case PAYLOAD_PARAMETER:
      return {
        index,
        read: payloadReader(data, absence),
        metadata: { ...metadata, type: 'body' },
        schema: payloadSchema && {
          schema: payloadSchema,
          path: typeof data === 'string' ? `payload.${data}` : 'payload',
        },
        pipes,
      };
    case JOB_PARAMETER:
      return { index, read: wholeJob, metadata: undefined, schema: undefined, pipes: [] };
    default:
      throw new InvalidHandlerError(
        `${name}: the decorator of parameter ${index} reads a request, and a job has none. Use @JobPayload() or @Job().`,
      );
  }
}

/** Undefined where something may stand in for a property that is missing: a pipe, a schema, or the default of the parameter. */
function absenceOf({ index, data, pipes, payloadSchema }: CustomEntry, method: Method, name: string, instance: string) {
  if (typeof data !== 'string' || pipes?.length || payloadSchema || method.length <= index) return undefined;
  return new AbsentProperty(data, name, instance);
}

/** Of a batch, the property of each payload. */
function payloadReader(property: unknown, absence: AbsentProperty | undefined): Parameter['read'] {
  if (typeof property !== 'string') return wholePayload;
  const read = (payload: unknown) => {
    const value = (payload as Record<string, unknown> | null | undefined)?.[property];
    absence?.look(value);
    return value;
  };
  return ({ work }) => (work instanceof Batch ? work.accepted.map(read) : read(work.accepted));
}

/**
 * Runs a value through the schema of its parameter; of a batch, each one for itself.
 *
 * @throws SchemaError naming the path, without the value
 */
export function checked({ schema, path }: ParameterSchema, value: unknown, { work }: ArgumentSource): unknown {
  if (!(work instanceof Batch)) return applySchema(schema, value, work.queue, path);
  return Promise.all((value as unknown[]).map((one) => applySchema(schema, one, work.queue, path)));
}

/**
 * True when a ValidationPipe would pass a payload on as it came. An interface, a union, `unknown` and whatever is
 * imported by `import type` leave no class behind to validate against, and of a batch it sees an array, which it never
 * looks into.
 */
export function validatesNothing(parameters: BoundParameter[], method: Method, batched = false): boolean {
  if (batched) {
    return parameters.some(
      ({ metadata, schema, pipes }) =>
        metadata?.type === 'body' &&
        !schema &&
        pipes.some((pipe) => pipe instanceof ValidationPipe) &&
        !pipes.some((pipe) => pipe instanceof ParseArrayPipe),
    );
  }
  return parameters.some(
    ({ metadata, schema, pipes }) =>
      metadata?.type === 'body' &&
      !schema &&
      (metadata.metatype === Object || (metadata.metatype === undefined && method.length > 0)) &&
      pipes.some((pipe) => pipe instanceof ValidationPipe) &&
      !pipes.some((pipe) => pipe instanceof ValidationPipe && 'expectedType' in pipe && pipe['expectedType']),
  );
}
