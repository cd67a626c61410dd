import { afterAll, beforeAll, expect, it } from '@jest/globals';
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
const TIMEOUT_MS = 60_000 + 6 * RUNS;

export type Kind = keyof typeof PARTS;
/** `'accepted'`, or the code of the refusal. */
export type Fate = string;

export interface Fuzzed<T> {
  /** What must hold; an array where one input is a set of many. */
  check(input: T): Fate | Fate[] | Promise<Fate | Fate[]>;
  /** How many count as inputs in one. Default 1. */
  size?: number;
  /** Nothing of this kind is ever refused. */
  neverRefused?: boolean;
}

/**
 * A test that tries so many inputs, tells how many of them were accepted and refused, and fails when it was all of them. A
 * failure names the seed with which `FUZZ_SEED` makes the same inputs again. What rejects unheard fails the test by jest.
 */
export function fuzz<T>(
  kind: Kind,
  title: string,
  inputs: fc.Arbitrary<T>,
  { check, size = 1, neverRefused = false }: Fuzzed<T>,
): void {
  it(
    `${kind}: ${title}`,
    async () => {
      const fates = new Map<Fate, number>();
      const property = fc.asyncProperty(inputs, async (input) => {
        const fate = await check(input);
        for (const one of [fate].flat()) fates.set(one, (fates.get(one) ?? 0) + 1);
        refusePollution();
      });
      const numRuns = Math.ceil((PARTS[kind] * RUNS) / WHOLE / size);
      const result = await fc.check(property, { seed: SEED, numRuns, interruptAfterTimeLimit: TIMEOUT_MS - 10_000 });
      tell(kind, fates);
      if (result.failed) throw new Error(`FUZZ_SEED=${SEED} FUZZ_RUNS=${RUNS}\n${fc.defaultReportMessage(result)}`);
      const [accepted, total] = [fates.get('accepted') ?? 0, [...fates.values()].reduce((sum, n) => sum + n, 0)];
      if (total < 100) return;
      expect({ kind, accepted: accepted / total > LEAST_SHARE }).toEqual({ kind, accepted: true });
      if (neverRefused) expect(accepted).toBe(total);
      else expect({ kind, refused: (total - accepted) / total > LEAST_SHARE }).toEqual({ kind, refused: true });
    },
    TIMEOUT_MS,
  );
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
  return error.code;
}

const PROTOTYPES = [Object.prototype, Array.prototype, Function.prototype, String.prototype];
const namesIn = (prototype: object) => Reflect.ownKeys(prototype).length;
const BEFORE = PROTOTYPES.map(namesIn);

function refusePollution(): void {
  if (PROTOTYPES.every((prototype, n) => namesIn(prototype) === BEFORE[n])) return;
  throw new Error('something was added to a prototype of the language');
}

// Whoever is told of pollution must not be polluted by it.
beforeAll(refusePollution);
afterAll(refusePollution);
