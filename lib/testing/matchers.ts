import { inspect } from 'node:util';
import { parseDuration, shown } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { unknownOption } from '../job/option-rules.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { DeadReason } from '../job/error-record.js';
import { DelayQueueHarness } from './delay-queue.harness.js';
import { HarnessError } from './harness.error.js';

export interface ExpectedJob {
  id?: string;
  /** Compared by `toEqual`; asymmetric matchers such as `expect.objectContaining()` may stand anywhere in it. */
  payload?: unknown;
}

export interface ExpectedEnqueued extends ExpectedJob {
  /** Of a job that waits, the time from now until it is due; of one that ran, from its enqueue until it was due. */
  delay?: Duration;
}

export interface ExpectedDeadLetter extends ExpectedJob {
  reason?: DeadReason;
}

/** What `expect.extend()` takes, `this` reduced to what is needed of it. */
interface Comparison {
  equals(one: unknown, other: unknown): boolean;
}

interface Verdict {
  pass: boolean;
  message: () => string;
}

/** How far a delay may be off on a real Redis, whose clock goes on, ms. */
const TOLERANCE_MS = 5_000;

/** For `expect.extend(delayQueueMatchers)` of jest and vitest. All of them answer promises, so they must be awaited. */
export const delayQueueMatchers = {
  /** A job like this waits, or has run since the harness was made. */
  async toHaveEnqueued(
    this: Comparison,
    received: unknown,
    queue: QueueRef,
    expected: ExpectedEnqueued = {},
  ): Promise<Verdict> {
    const harness = harnessOf(received, 'toHaveEnqueued');
    assertKnown('toHaveEnqueued', expected, ['id', 'payload', 'delay']);
    const { id, delay, ...rest } = expected;
    const waiting = (await harness.enqueued(queue)).map((job) => ({
      id: job.id,
      payload: job.payload,
      delayMs: job.dueAt.getTime() - harness.serverNow,
    }));
    const claimed = await harness.claimed(queue);
    const runs = harness.runs(queue);
    // A worker may have it whose handler has not begun: its schema is asked, for one.
    const held = claimed
      .filter((job) => !runs.some((run) => run.id === job.id))
      .map((job) => ({
        id: job.id,
        payload: job.payload,
        delayMs: job.attempts === 0 ? job.dueAt.getTime() - job.enqueuedAt.getTime() : undefined,
      }));
    const expectedMs = delay === undefined ? undefined : parseDuration(delay, 'toHaveEnqueued(queue, { delay })');
    const off = harness.standsStill ? 0 : TOLERANCE_MS;
    const matches = (job: { delayMs: number | undefined }) =>
      expectedMs === undefined || (job.delayMs !== undefined && Math.abs(job.delayMs - expectedMs) <= off);
    const jobs = [...waiting, ...held, ...runs];
    const found = jobs.filter((job) => isLike(this, job, { id, ...rest }) && matches(job));
    return verdict(found.length > 0, 'a job enqueued', queue, { id, ...rest, delay }, jobs);
  },

  /** A job like this was completed since the harness was made. */
  async toHaveCompleted(
    this: Comparison,
    received: unknown,
    queue: QueueRef,
    expected: ExpectedJob = {},
  ): Promise<Verdict> {
    const jobs = harnessOf(received, 'toHaveCompleted').runs(queue);
    assertKnown('toHaveCompleted', expected, ['id', 'payload']);
    const found = jobs.filter((job) => job.completed && isLike(this, job, expected));
    return verdict(found.length > 0, 'a job completed', queue, expected, jobs);
  },

  /** A job like this is a dead letter. */
  async toHaveDeadLettered(
    this: Comparison,
    received: unknown,
    queue: QueueRef,
    expected: ExpectedDeadLetter = {},
  ): Promise<Verdict> {
    const harness = harnessOf(received, 'toHaveDeadLettered');
    assertKnown('toHaveDeadLettered', expected, ['id', 'payload', 'reason']);
    const { reason } = expected;
    const jobs = await harness.deadLetters(queue);
    const found = jobs.filter(
      (job) => isLike(this, job, expected) && (reason === undefined || job.deadReason === reason),
    );
    return verdict(found.length > 0, 'a dead letter', queue, expected, jobs);
  },
};

function harnessOf(received: unknown, matcher: string): DelayQueueHarness {
  if (received instanceof DelayQueueHarness) return received;
  throw new HarnessError(
    `expect(value).${matcher}(queue): give expect() the DelayQueueHarness, not ${shown(received)}.`,
  );
}

/** What is misspelt would match any job. @throws InvalidOptionError */
function assertKnown(matcher: string, expected: object, known: readonly string[]): void {
  const unknown = Object.keys(expected).find((key) => !known.includes(key));
  if (unknown !== undefined) throw unknownOption(unknown, known, (option) => `${matcher}(queue, { ${option} })`);
}

function isLike(by: Comparison, job: { id: string; payload: unknown }, expected: ExpectedJob): boolean {
  if (expected.id !== undefined && job.id !== expected.id) return false;
  return !('payload' in expected) || by.equals(job.payload, expected.payload);
}

function verdict(pass: boolean, what: string, queue: QueueRef, expected: object, jobs: readonly object[]): Verdict {
  const wanted = Object.entries(expected).filter(([, value]) => value !== undefined);
  const like = wanted.length === 0 ? '' : ` like ${shownWhole(Object.fromEntries(wanted))}`;
  return {
    pass,
    message: () =>
      `Expected queue "${queueNameOf(queue)}" ${pass ? 'not ' : ''}to have ${what}${like}. ` +
      (jobs.length === 0 ? 'Nothing was found.' : `Found: ${jobs.slice(0, 10).map(describe).join('; ')}.`),
  };
}

function describe(job: object): string {
  const { id, payload, delayMs, attempt, completed, ended, deadReason } = job as Record<string, unknown>;
  const known = Object.entries({ id, payload, delayMs, attempt, completed, ended, deadReason }).filter(
    ([, value]) => value !== undefined,
  );
  return shownWhole(Object.fromEntries(known));
}

/** Not as JSON: payloads may hold what a codec keeps, such as a BigInt, and asymmetric matchers. */
function shownWhole(value: object): string {
  return inspect(value, { breakLength: Infinity, depth: 5 });
}
