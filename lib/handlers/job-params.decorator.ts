import 'reflect-metadata';
import type { PipeTransform, Type } from '@nestjs/common';
import { InvalidHandlerError, InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
import { isStandardSchema } from '../job/schema.js';
import type { StandardSchema } from '../job/schema.js';

export type PipeArgument = PipeTransform | Type<PipeTransform>;

export interface JobPayloadOptions {
  /**
   * Any Standard Schema (zod, valibot, arktype, ...). The payload, or the property, is run through it before all pipes, of a
   * batch each one; the parameter gets its output. What it refuses is a dead letter `invalid` at once. Default none.
   */
  schema?: StandardSchema<any, any>;
  /** Run after the global, class and method pipes, in this order. */
  pipes?: PipeArgument[];
}

/** Nest's own key, and the shape of its entries: parameter decorators made by `createParamDecorator` are stored there. */
export const ROUTE_ARGUMENTS = '__routeArguments__';

export interface ParameterEntry {
  index: number;
  data?: unknown;
  pipes?: PipeArgument[];
  /** Of Nest's own decorators. */
  schema?: unknown;
  /** Of `@JobPayload`. Not under the name above: pipes of Nest would run it again on its own output. */
  payloadSchema?: StandardSchema | undefined;
}

/**
 * The type that Nest gives to `@Body()`: only a parameter of this type is shown to pipes as `'body'`, and `ValidationPipe`
 * skips what is `'custom'`. It also makes `@Body()` on a handler mean the payload.
 */
export const PAYLOAD_PARAMETER = 3;

/** Far from the numbers that Nest uses (0 to 15 so far). */
export const JOB_PARAMETER = 90;

/**
 * The payload of the job, or one property of it, after the pipes.
 *
 * Of a batch, the array of payloads, or of that property of each.
 *
 * @example `@JobPayload() payload: CheckPayment`, `@JobPayload('amount', ParseIntPipe) amount: number`,
 *   `@JobPayload({ schema: z.object({ amount: z.int() }) }) payload: { amount: number }`
 * @throws InvalidOptionError for anything that is neither a property name, a pipe nor `{ schema, pipes }`
 */
export function JobPayload(): ParameterDecorator;
export function JobPayload(options: JobPayloadOptions): ParameterDecorator;
export function JobPayload(property: string, options: JobPayloadOptions): ParameterDecorator;
export function JobPayload(property: string, ...pipes: PipeArgument[]): ParameterDecorator;
export function JobPayload(...pipes: PipeArgument[]): ParameterDecorator;
export function JobPayload(...args: unknown[]): ParameterDecorator {
  return parameterDecorator('@JobPayload', PAYLOAD_PARAMETER, (where) => readArguments(args, where));
}

/** The `DelayedJob`, or the array of `BatchJob`s of a batch. Pipes leave it alone. */
export function Job(): ParameterDecorator {
  return parameterDecorator('@Job', JOB_PARAMETER, () => ({}));
}

function parameterDecorator(
  name: string,
  type: number,
  read: (where: string) => Omit<ParameterEntry, 'index'>,
): ParameterDecorator {
  return (target, method, index) => {
    if (method === undefined || typeof target === 'function') {
      const className = typeof target === 'function' ? target.name : target.constructor.name;
      throw new InvalidHandlerError(`${name} in ${className}: put it on a parameter of an instance method.`);
    }
    const { constructor } = target;
    const entry: ParameterEntry = { index, ...read(`${name} in ${constructor.name}.${String(method)}`) };
    Reflect.defineMetadata(
      ROUTE_ARGUMENTS,
      { ...entriesBut(index, target, method), [`${type}:${index}`]: entry },
      constructor,
      method,
    );
  };
}

/** An override starts from the entries of its parent, but replaces the one at its own index. As in Nest 12. */
function entriesBut(index: number, { constructor }: object, method: string | symbol): Record<string, ParameterEntry> {
  const parent = Reflect.getPrototypeOf(constructor);
  const inherited: Record<string, ParameterEntry> =
    (parent && Reflect.getMetadata(ROUTE_ARGUMENTS, parent, method)) ?? {};
  const entries: Record<string, ParameterEntry> = Reflect.getMetadata(ROUTE_ARGUMENTS, constructor, method) ?? {};
  return Object.fromEntries(
    Object.entries(entries).filter(([key, entry]) => entry.index !== index || entry !== inherited[key]),
  );
}

function readArguments(args: unknown[], where: string): Omit<ParameterEntry, 'index'> {
  const property = typeof args[0] === 'string' ? args[0] : undefined;
  if (property === '') throw new InvalidOptionError(`${where}: the property name is empty.`);
  const pipes = property === undefined ? args : args.slice(1);
  if (pipes.length === 1 && isOptions(pipes[0])) return { data: property, ...readOptions(pipes[0], where) };
  return { data: property, pipes: pipes.map((pipe) => pipeAt(pipe, where)) };
}

function readOptions(options: object, where: string): Pick<ParameterEntry, 'payloadSchema' | 'pipes'> {
  for (const key of Object.keys(options)) {
    if (key !== 'pipes' && key !== 'schema') {
      throw new InvalidOptionError(`${where}: unknown option "${key}". Known: schema, pipes.`);
    }
  }
  const { pipes = [], schema } = options as { pipes?: unknown; schema?: unknown };
  if (schema !== undefined && !isStandardSchema(schema)) {
    const what = `${shown(schema)} is not a Standard Schema (zod, valibot, arktype, ...)`;
    throw new InvalidOptionError(`${where}: schema: ${what}.`);
  }
  if (!Array.isArray(pipes)) throw new InvalidOptionError(`${where}: pipes: ${shown(pipes)} is not an array.`);
  return { payloadSchema: schema, pipes: pipes.map((pipe) => pipeAt(pipe, where)) };
}

function isOptions(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isPipe(value);
}

function pipeAt(value: unknown, where: string): PipeArgument {
  if (isPipe(value)) return value;
  throw new InvalidOptionError(`${where}: ${shown(value)} is not a pipe. Pass a class or object with transform().`);
}

function isPipe(value: unknown): value is PipeArgument {
  const host: unknown = typeof value === 'function' ? value.prototype : value;
  return typeof (host as Partial<PipeTransform> | null | undefined)?.transform === 'function';
}
