import { inspect } from 'node:util';
import { afterAll, beforeAll, expect } from '@jest/globals';
import fc from 'fast-check';
import { DelayQueueError } from '../../lib/index.js';

/** How many inputs of 10,000 each kind gets. */
const PARTS = {
  durations: 1_200,
  instants: 400,
  names: 1_200,
  'options of a job': 1_000,
  'options of the module': 700,
  'options of handlers': 400,
  definitions: 400,
  'modules and decorators': 300,
  payloads: 1_500,
  'payloads by devalue': 300,
  envelopes: 1_300,
  snapshots: 300,
  errors: 300,
  'names in Redis': 250,
  'jobs in Redis': 250,
  'instances in Redis': 40,
  'stored jobs': 160,
} as const;
const WHOLE = 10_000;
/** `npm run fuzz` says ten times as many. */
const RUNS = Number(process.env['FUZZ_RUNS'] ?? WHOLE);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_000);
/** Of inputs that are all refused, or none of them, nothing is learnt. */
const LEAST_SHARE = 0.05;
const ENOUGH = 100;
/** For the test around it. */
export const FUZZ_MS = 60_000 + 6 * RUNS;

export type Kind = keyof typeof PARTS;
/** `'accepted'`, or the code of the refusal. */
export type Fate = string;

export interface Fuzzed<T> {
  /** What must hold; an array where one input is a set of many. */
  readonly check: (input: T) => Fate | Fate[] | Promise<Fate | Fate[]>;
  /** How many count as inputs in one. Default 1. */
  readonly size?: number;
  /** Nothing of this kind is ever refused. */
  readonly neverRefused?: boolean;
}

/**
 * Tries so many inputs, tells how many of them were accepted and refused, and fails when it was all of them. A failure names
 * the seed with which `FUZZ_SEED` makes the same inputs again. What rejects unheard fails the test by jest.
 */
export async function fuzz<T>(
  kind: Kind,
  inputs: fc.Arbitrary<T>,
  { check, size = 1, neverRefused = false }: Fuzzed<T>,
): Promise<void> {
  const fates = new Map<Fate, number>();
  const property = fc.asyncProperty(inputs, async (input) => {
    const fate = await check(input);
    for (const one of [fate].flat()) fates.set(one, (fates.get(one) ?? 0) + 1);
    refusePollution();
  });
  const numRuns = Math.ceil((PARTS[kind] * RUNS) / WHOLE / size);
  const result = await fc.check(property, { seed: SEED, numRuns, interruptAfterTimeLimit: FUZZ_MS - 10_000 });
  if (result.failed) throw new Error(reportOf(result), { cause: result.errorInstance });
  tell(kind, fates);
  const [accepted, total] = [fates.get('accepted') ?? 0, [...fates.values()].reduce((sum, n) => sum + n, 0)];
  if (total < ENOUGH) return;
  expect({ kind, isAccepted: accepted / total > LEAST_SHARE }).toEqual({ kind, isAccepted: true });
  if (neverRefused) expect(accepted).toBe(total);
  else expect({ kind, isRefused: (total - accepted) / total > LEAST_SHARE }).toEqual({ kind, isRefused: true });
}

/** Without asking the counterexample for its text: it may refuse. */
function reportOf<T>({ counterexample, numRuns, numShrinks, errorInstance }: fc.RunDetails<T>): string {
  const given = inspect(counterexample, { depth: 6, showProxy: true, maxStringLength: 500 });
  const why = errorInstance instanceof Error ? errorInstance.message : inspect(errorInstance);
  return `FUZZ_SEED=${SEED} FUZZ_RUNS=${RUNS}, input ${numRuns} after ${numShrinks} shrinks:\n${given}\n${why}`;
}

function tell(kind: string, fates: ReadonlyMap<Fate, number>): void {
  const refused = [...fates].filter(([fate]) => fate !== 'accepted').sort(([, a], [, b]) => b - a);
  const count = refused.reduce((sum, [, n]) => sum + n, 0);
  const why = count > 0 ? ` (${refused.map(([fate, n]) => `${fate.replace('ERR_DQ_', '')} ${n}`).join(', ')})` : '';
  const accepted = fates.get('accepted') ?? 0;
  process.stderr.write(
    `fuzz ${kind}: ${accepted + count} inputs, ${accepted} accepted, ${count} refused${why}; seed ${SEED}\n`,
  );
}

/** @returns what became of the input. @throws whatever was thrown that is no refusal of the library */
export async function fateOf(call: () => unknown): Promise<Fate> {
  try {
    await call();
    return 'accepted';
  } catch (error) {
    return refusal(error);
  }
}

/** The same for what answers at once. */
export function fateNow(call: () => unknown): Fate {
  try {
    call();
    return 'accepted';
  } catch (error) {
    return refusal(error);
  }
}

function refusal(error: unknown): Fate {
  if (!(error instanceof DelayQueueError)) throw new Error('what was thrown is no DelayQueueError', { cause: error });
  expect(error.code).toMatch(/^ERR_DQ_[A-Z_]+$/);
  expect(error.retryable).toBe(false);
  expect(error.message).toMatch(/\w/);
  // For a log: one line, and not without an end.
  expect(error.message).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
  expect(error.message.length).toBeLessThan(5_000);
  // Before and behind quoted texts, which may hold quotes, and before those of errors that others threw, there are no dots but of
  // sentences and of what is left out.
  const [own] = error.message.replace(/".*"/, '""').split(/could not be read: | threw /);
  expect(own).not.toMatch(/\.{4}|(?<!\.)\.\.(?!\.)/);
  return error.code;
}

const PROTOTYPES = [Object, Array, Function, String].map((type) => type.prototype as object);
const namesIn = (prototype: object) => Reflect.ownKeys(prototype).length;
const BEFORE = PROTOTYPES.map(namesIn);

function refusePollution(): void {
  if (PROTOTYPES.every((prototype, n) => namesIn(prototype) === BEFORE[n])) return;
  throw new Error('something was added to a prototype of the language');
}

// Whoever is told of pollution must not be polluted by it.
beforeAll(refusePollution);
afterAll(refusePollution);
