import {
  type ArgumentMetadata,
  type ExecutionContext,
  type PipeTransform,
  type Type,
  ValidationPipe,
} from '@nestjs/common';
import { InvalidHandlerError } from '../delay-queue.errors.js';
import type { DelayedJob } from '../job/delayed-job.js';
import {
  JOB_PARAMETER,
  PAYLOAD_PARAMETER,
  type ParameterEntry,
  type PipeArgument,
  ROUTE_ARGUMENTS,
} from './job-params.decorator.js';

export type Method = (...args: any[]) => unknown;

/** What an argument may be made of. */
export interface ArgumentSource {
  readonly job: DelayedJob;
  readonly context: ExecutionContext;
}

/** How one argument of a handler is made; its own pipes are still as they were declared. */
export interface Parameter {
  readonly index: number;
  readonly read: (source: ArgumentSource) => unknown;
  /** Undefined: no pipe touches it. */
  readonly metadata: ArgumentMetadata | undefined;
  readonly pipes: PipeArgument[];
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
export function readParameters(declaredBy: object, key: string | symbol, method: Method, name: string): Parameter[] {
  const entries: Record<string, CustomEntry> = Reflect.getMetadata(ROUTE_ARGUMENTS, declaredBy.constructor, key) ?? {};
  const types: Type[] | undefined = Reflect.getMetadata('design:paramtypes', declaredBy, key);
  const parameters = Object.entries(entries).map(([type, entry]) =>
    parameterOf(type, entry, types?.[entry.index], name),
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
    { index: 0, read: wholePayload, metadata: { type: 'body', metatype, data: undefined }, pipes: [] },
    { index: 1, read: wholeJob, metadata: undefined, pipes: [] },
  ];
}

function parameterOf(key: string, entry: CustomEntry, metatype: Type | undefined, name: string): Parameter {
  const { index, data, pipes = [], factory, schema } = entry;
  // `schema` is what Nest 12 hands to its StandardSchemaValidationPipe.
  const metadata = { metatype, data, ...(schema !== undefined && { schema }) } as Omit<ArgumentMetadata, 'type'>;
  if (key.includes(CUSTOM)) {
    const read = ({ context }: ArgumentSource) => factory?.(data, context);
    return { index, read, metadata: { ...metadata, type: 'custom' }, pipes };
  }
  switch (Number.parseInt(key, 10)) {
    case PAYLOAD_PARAMETER:
      return { index, read: payloadReader(data), metadata: { ...metadata, type: 'body' }, pipes };
    case JOB_PARAMETER:
      return { index, read: wholeJob, metadata: undefined, pipes: [] };
    default:
      throw new InvalidHandlerError(
        `${name}: the decorator of parameter ${index} reads a request, and a job has none. Use @JobPayload() or @Job().`,
      );
  }
}

const wholePayload = ({ job }: ArgumentSource) => job.accepted;
const wholeJob = ({ job }: ArgumentSource) => job;

function payloadReader(property: unknown): Parameter['read'] {
  if (typeof property !== 'string') return wholePayload;
  return ({ job }) => (job.accepted as Record<string, unknown> | null | undefined)?.[property];
}

/**
 * True when a ValidationPipe would pass a payload on as it came. An interface, a union, `unknown` and whatever is imported
 * by `import type` leave no class behind to validate against.
 */
export function validatesNothing(parameters: BoundParameter[], method: Method): boolean {
  return parameters.some(
    ({ metadata, pipes }) =>
      metadata?.type === 'body' &&
      (metadata.metatype === Object || (metadata.metatype === undefined && method.length > 0)) &&
      pipes.some((pipe) => pipe instanceof ValidationPipe) &&
      !pipes.some((pipe) => pipe instanceof ValidationPipe && 'expectedType' in pipe && pipe['expectedType']),
  );
}
