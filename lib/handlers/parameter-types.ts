import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { InvalidHandlerError } from '../delay-queue.errors.js';
import { DelayedJob } from '../job/delayed-job.js';
import { Batch, BatchJob } from './batch-job.js';

/** What a parameter of a handler is made from. */
type Read = (source: { readonly work: DelayedJob | Batch }) => unknown;

export const wholePayload: Read = ({ work }) => work.accepted;
export const wholeJob: Read = ({ work }) => (work instanceof Batch ? work.jobs : work);

interface Declared {
  readonly declaredBy: object;
  readonly key: string | symbol;
  readonly batched: boolean;
  readonly name: string;
}

/**
 * A method whose parameter is of a class that it never gets reads `undefined` everywhere, does nothing, and its jobs complete. Only
 * what the compiler has written down is known: it shows an array, but not of what, and nothing of an interface.
 *
 * @throws InvalidHandlerError
 */
export function refuseOtherTypes(
  parameters: readonly { readonly index: number; readonly read: unknown }[],
  { declaredBy, key, batched, name }: Declared,
): void {
  const types: unknown[] | undefined = Reflect.getMetadata('design:paramtypes', declaredBy, key);
  for (const { index, read } of parameters) {
    const isJob = read === wholeJob;
    if (!isJob && read !== wholePayload) continue;
    const problem = isJob ? problemOfJob(types?.[index], batched) : problemOfPayload(types?.[index], batched);
    if (problem) throw new InvalidHandlerError(`${name}: parameter ${index} ${problem}.`);
  }
}

function problemOfPayload(type: unknown, batched: boolean): string | undefined {
  if (!isJobClass(type)) return undefined;
  const [payload, job] = batched ? ['payloads', 'jobs: BatchJob[]'] : ['payload', 'job: DelayedJob'];
  return (
    `is a ${type.name}, but receives the ${payload}. The order is (${payload}, ${job}); ` +
    'in another one each parameter needs @JobPayload() or @Job()'
  );
}

function problemOfJob(type: unknown, batched: boolean): string | undefined {
  if (batched) {
    if (!isJobClass(type)) return undefined;
    return `is one ${type.name}, but receives an array of them, because of \`batch\`. Write jobs: BatchJob[]`;
  }
  const isMany = type === Array;
  if (!isMany && !(isJobClass(type) && isOrExtends(type, BatchJob))) return undefined;
  return (
    `is ${isMany ? 'an array' : 'a BatchJob'}, but receives one DelayedJob. ` +
    'Write job: DelayedJob, or give the decorator the option `batch: { size }`'
  );
}

function isJobClass(type: unknown): type is Type {
  return typeof type === 'function' && isOrExtends(type, DelayedJob);
}

function isOrExtends(type: unknown, parent: unknown): boolean {
  return type === parent || (type as Partial<Type>).prototype instanceof (parent as Type);
}
