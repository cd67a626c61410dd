import fc from 'fast-check';
import type { OnDead, OnDuplicate } from '../../lib/index.js';
import type { LimitsData } from './turns.js';

/**
 * What may be asked of a queue, as plain data that says nothing about what is there: `which` and `run` are taken modulo
 * what there is, so that a command keeps a meaning while the sequence around it shrinks. All times are hours.
 */
export type Command = { lose?: 'answer' | 'request'; pauseMs?: number } & (
  | { do: 'enqueueMany'; jobs: JobData[]; spread: boolean }
  /** With `dead` under the id of a dead letter, when there is one. */
  | { do: 'enqueue'; job: JobData; dead?: number | undefined }
  | { do: 'cancel'; which: number; running: boolean }
  | { do: 'reschedule'; which: number; to: { delay: number } | { at: number } }
  | { do: 'update'; which: number }
  | { do: 'signal'; which: number }
  | { do: 'runNow'; which: number }
  | { do: 'get'; which: number }
  | { do: 'pull'; process: number; worker: number | 'starts'; max: number }
  /** With `beside`, somebody else in the process asks for jobs at once when it was given one. */
  | { do: 'pullQuarantined'; process: number; beside: boolean }
  | { do: 'settle'; run: number; how: How; delay: number }
  | { do: 'extend'; run: number; hours: number }
  | { do: 'expireLease'; run: number }
  | { do: 'crash'; process: number; max: number }
  | { do: 'advance'; hours: number }
  | { do: 'pause' }
  | { do: 'setLimits'; limits: LimitsData | undefined }
  | { do: 'resume' }
  | { do: 'inspect'; page: number }
  | ({ do: 'requeueDead'; delay: number; resetAttempts: boolean; reason: boolean } & Chosen)
  | ({ do: 'removeDead' } & Chosen)
  | { do: 'purge'; states: ('waiting' | 'dead')[] }
);

export type CommandOf<Do extends Command['do']> = Extract<Command, { do: Do }>;
export type How = (typeof HOWS)[number];

export interface JobData {
  /** Without one the library makes one. */
  id?: string;
  onDuplicate: OnDuplicate;
  /** Only with `keep`. */
  onDead?: OnDead;
  /** Only with `replace`. */
  dueAt?: 'keep';
  delay?: number;
  at?: number;
  attempts?: number;
  expiresIn?: number;
  keepExpired?: boolean;
  uniqueFor?: number;
  maxWait?: number;
  group?: string;
  priority?: number;
}

/** Dead letters. */
interface Chosen {
  which: number[] | 'all';
  limit?: number;
}

const HOWS = ['complete', 'fail', 'retry', 'snooze', 'discard', 'release'] as const;
/** One time in so many. */
const maybe = <T>(value: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const half = (most: number) => fc.nat(most).map((n) => n + 0.5);
const which = fc.nat(11);
const run = fc.nat(7);
const process = fc.nat(1);

const when = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 3, arbitrary: fc.record({ delay: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ at: fc.integer({ min: -2, max: 6 }) }) },
);

const job: fc.Arbitrary<JobData> = fc
  .tuple(
    fc.record({
      id: fc.oneof({ weight: 8, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') }, fc.constant(undefined)),
      onDuplicate: fc.constantFrom<OnDuplicate>('keep', 'keep', 'replace', 'reschedule', 'reject'),
      attempts: maybe(fc.constantFrom(1, 1, 2, 5), 3),
      expiresIn: maybe(half(2), 6),
      keepExpired: maybe(fc.boolean(), 2),
      uniqueFor: maybe(half(5), 2),
      maxWait: maybe(fc.nat(3), 4),
    }),
    fc.constantFrom<OnDead | undefined>('keep', 'keep', 'keep', 'replace', undefined),
    maybe(fc.constant('keep' as const), 3),
    when,
  )
  .map(([fields, onDead, dueAt, due]) => ({
    ...fields,
    ...(fields.onDuplicate === 'keep' && { onDead }),
    ...(fields.onDuplicate === 'replace' && { dueAt }),
    ...due,
  }));

const chosen = {
  which: fc.oneof(fc.uniqueArray(which, { minLength: 1, maxLength: 3 }), fc.constant<'all'>('all')),
  limit: maybe(fc.integer({ min: 1, max: 2 }), 2),
};

const WEIGHTED: [weight: number, arbitrary: fc.Arbitrary<Command>][] = [
  [16, fc.record({ do: fc.constant('enqueue'), job, dead: maybe(which, 2) })],
  [
    4,
    fc.record({
      do: fc.constant('enqueueMany'),
      jobs: fc.array(job, { minLength: 1, maxLength: 3 }),
      spread: fc.boolean(),
    }),
  ],
  [7, fc.record({ do: fc.constant('cancel'), which, running: fc.boolean() })],
  [
    4,
    fc.record({
      do: fc.constant('reschedule'),
      which,
      to: fc.oneof(fc.record({ delay: fc.nat(3) }), fc.record({ at: fc.integer({ min: -2, max: 6 }) })),
    }),
  ],
  [3, fc.record({ do: fc.constant('update'), which })],
  [3, fc.record({ do: fc.constant('signal'), which })],
  [3, fc.record({ do: fc.constant('runNow'), which })],
  [2, fc.record({ do: fc.constant('get'), which })],
  [
    16,
    fc.record({
      do: fc.constant('pull'),
      process,
      worker: fc.oneof(fc.nat(3), fc.constant<'starts'>('starts')),
      max: fc.integer({ min: 1, max: 3 }),
    }),
  ],
  [8, fc.record({ do: fc.constant('pullQuarantined'), process, beside: fc.boolean() })],
  [
    18,
    fc.record({
      do: fc.constant('settle'),
      run,
      how: fc.constantFrom(...HOWS, 'complete' as const, 'discard' as const, 'discard' as const),
      delay: fc.nat(2),
    }),
  ],
  [4, fc.record({ do: fc.constant('extend'), run, hours: half(5) })],
  [3, fc.record({ do: fc.constant('expireLease'), run })],
  [7, fc.record({ do: fc.constant('crash'), process, max: fc.integer({ min: 1, max: 3 }) })],
  [7, fc.record({ do: fc.constant('advance'), hours: fc.integer({ min: 1, max: 3 }) })],
  [1, fc.record({ do: fc.constant('pause') })],
  [6, fc.record({ do: fc.constant('resume') })],
  [2, fc.record({ do: fc.constant('inspect'), page: fc.integer({ min: 1, max: 4 }) })],
  [
    3,
    fc.record({
      do: fc.constant('requeueDead'),
      delay: fc.nat(1),
      resetAttempts: fc.boolean(),
      reason: fc.boolean(),
      ...chosen,
    }),
  ],
  [2, fc.record({ do: fc.constant('removeDead'), ...chosen })],
  [
    1,
    fc.record({
      do: fc.constant('purge'),
      states: fc.subarray<'waiting' | 'dead'>(['waiting', 'dead'], { minLength: 1 }),
    }),
  ],
];

const command: fc.Arbitrary<Command> = fc.oneof(...WEIGHTED.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const rate = fc.record({ max: fc.integer({ min: 1, max: 4 }), per: half(2).filter((hours) => hours > 1) });
const limits: fc.Arbitrary<LimitsData | undefined> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  {
    weight: 3,
    arbitrary: fc.record({
      count: maybe(fc.integer({ min: 1, max: 3 }), 3),
      rate: maybe(rate, 4),
      groupCount: fc.constantFrom(undefined, 1, 1, 2),
      groupRate: maybe(rate, 4),
      blocks: fc.boolean(),
    }),
  },
);

/** Each lost answer costs a new connection, a twentieth of a second: so they are lost in few sequences, but often. */
const lossy: fc.Arbitrary<Command> = fc
  .tuple(command, maybe(fc.constantFrom('answer' as const, 'request' as const), 7))
  .map(([what, lose]) => (lose ? { ...what, lose } : what));

/** As on a machine that does something else now and then: what workers do once a second, or after a quarter of one, happens in between. */
const slow: fc.Arbitrary<Command> = fc
  .tuple(command, maybe(fc.integer({ min: 100, max: 1_200 }), 6))
  .map(([what, pauseMs]) => (pauseMs ? { ...what, pauseMs } : what));

/** Without bias to short ones and small numbers: what this looks for takes many commands. */
const many = (what: fc.Arbitrary<Command>) => fc.noBias(fc.array(what, { maxLength: 75, size: 'max' }));

export const sequence = fc.oneof({ weight: 9, arbitrary: many(command) }, { weight: 1, arbitrary: many(lossy) });
export const slowSequence = many(slow);

/** The same with groups, priorities and limits. Nothing expires: what is claimed only to be settled would blur which claim took what. */
const placed = (data: JobData): fc.Arbitrary<JobData> =>
  fc
    .record({ group: fc.constantFrom('x', 'x', 'x', 'y', 'y', undefined), priority: maybe(fc.constantFrom(4, 9), 3) })
    .map(({ group, priority }) => ({
      ...data,
      expiresIn: undefined,
      ...(group !== undefined && { group }),
      ...(priority !== undefined && { priority }),
    }));
const withGroups = (what: Command): fc.Arbitrary<Command> => {
  if (what.do === 'enqueue') return placed(what.job).map((one) => ({ ...what, job: one }));
  if (what.do === 'enqueueMany') return fc.tuple(...what.jobs.map(placed)).map((jobs) => ({ ...what, jobs }));
  return fc.constant(what);
};
const setLimits: fc.Arbitrary<Command> = fc.record({ do: fc.constant('setLimits'), limits });

const groupedCommand = fc.oneof(
  { weight: 14, arbitrary: command.chain(withGroups) },
  { weight: 1, arbitrary: setLimits },
);

/** It begins with limits, or most of it would be of none. */
export const groupedSequence = fc
  .tuple(setLimits, many(groupedCommand))
  .map(([first, others]): Command[] => [first, ...others]);
