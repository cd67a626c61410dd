import fc from 'fast-check';
import type { MissedPolicy, OverlapPolicy } from '../../../lib/index.js';

/**
 * What may be asked of schedules, as plain data that says nothing about what is there: `which` and `run` are taken modulo what there is.
 * All times are steps: so long a sequence's unit is.
 */
export type Command =
  | { do: 'schedule'; id: string; definition: DefinitionData }
  /** As it is, but for this. */
  | { do: 'change'; id: string; what: 'payload' | 'overlap' | 'missed' | 'limit' | 'step'; to: number }
  | { do: 'unschedule'; id: string; running: boolean }
  | { do: 'pauseSchedule'; id: string }
  | { do: 'resumeSchedule'; id: string }
  | { do: 'trigger'; id: string }
  | { do: 'backfill'; id: string; back: number; steps: number }
  | { do: 'advance'; steps: number }
  | { do: 'tick' }
  | { do: 'pull'; max: number }
  | { do: 'settle'; run: number; how: 'complete' | 'fail' | 'discard' | 'snooze' }
  | { do: 'cancel'; which: number }
  | { do: 'runNow'; which: number }
  | { do: 'reschedule'; which: number; steps: number }
  | { do: 'pause'; what: 'queue' | 'publishing' }
  | { do: 'resume'; what: 'queue' | 'publishing' };

export type CommandOf<Do extends Command['do']> = Extract<Command, { do: Do }>;

export interface DefinitionData {
  readonly steps: number;
  readonly cron: boolean;
  /** Distance of `from` from now. */
  readonly from: number | undefined;
  /** Distance of `until` from now, or from `from`. */
  readonly until: number | undefined;
  readonly limit: number | undefined;
  /** Part of a step. */
  readonly jitter: number;
  readonly missed: MissedPolicy;
  readonly grace: number | undefined;
  readonly most: number | undefined;
  readonly overlap: OverlapPolicy;
  readonly attempts: number;
  readonly payload: number;
}

export interface Sequence {
  /** The store in memory takes steps of seconds too, where many occurrences are ahead. */
  readonly isShort: boolean;
  readonly commands: Command[];
}

/** One time in so many. */
const maybe = <T>(value: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const id = fc.constantFrom('a', 'a', 'b');
const which = fc.nat(11);

const definition: fc.Arbitrary<DefinitionData> = fc.record({
  steps: fc.constantFrom(1, 1, 1, 2, 3),
  cron: fc.boolean(),
  from: maybe(fc.integer({ min: -5, max: 8 }), 2),
  until: maybe(fc.integer({ min: 0, max: 9 }), 4),
  limit: maybe(fc.integer({ min: 1, max: 6 }), 4),
  jitter: fc.constantFrom(0, 0, 0.4, 3),
  missed: fc.constantFrom<MissedPolicy>('once', 'skip', 'all'),
  grace: maybe(fc.constant(0.75), 2),
  most: maybe(fc.integer({ min: 1, max: 4 }), 2),
  overlap: fc.constantFrom<OverlapPolicy>('skip', 'queue', 'allow'),
  attempts: fc.integer({ min: 1, max: 3 }),
  payload: fc.nat(2),
});

const WEIGHTED: [weight: number, arbitrary: fc.Arbitrary<Command>][] = [
  [6, fc.record({ do: fc.constant('schedule'), id, definition })],
  [
    4,
    fc.record({
      do: fc.constant('change'),
      id,
      what: fc.constantFrom('payload', 'overlap', 'missed', 'limit', 'step'),
      to: fc.nat(5),
    }),
  ],
  [2, fc.record({ do: fc.constant('unschedule'), id, running: fc.boolean() })],
  [3, fc.record({ do: fc.constant('pauseSchedule'), id })],
  [5, fc.record({ do: fc.constant('resumeSchedule'), id })],
  [5, fc.record({ do: fc.constant('trigger'), id })],
  [4, fc.record({ do: fc.constant('backfill'), id, back: fc.nat(12), steps: fc.nat(8) })],
  [16, fc.record({ do: fc.constant('advance'), steps: fc.constantFrom(1, 1, 1, 1, 2, 3, 7, 25) })],
  [16, fc.record({ do: fc.constant('tick') })],
  [22, fc.record({ do: fc.constant('pull'), max: fc.constantFrom(1, 2, 50) })],
  [
    18,
    fc.record({
      do: fc.constant('settle'),
      run: which,
      how: fc.constantFrom('complete', 'complete', 'complete', 'fail', 'fail', 'discard', 'snooze'),
    }),
  ],
  [3, fc.record({ do: fc.constant('cancel'), which })],
  [4, fc.record({ do: fc.constant('runNow'), which })],
  [1, fc.record({ do: fc.constant('reschedule'), which, steps: fc.nat(4) })],
  [1, fc.record({ do: fc.constant('pause'), what: fc.constantFrom('queue', 'publishing') })],
  [4, fc.record({ do: fc.constant('resume'), what: fc.constantFrom('queue', 'publishing') })],
];

const command: fc.Arbitrary<Command> = fc.oneof(...WEIGHTED.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const first: fc.Arbitrary<Command> = fc.record({ do: fc.constant('schedule'), id: fc.constant('a'), definition });

/** Without bias to short ones and small numbers: what this looks for takes many commands. */
export const sequence: fc.Arbitrary<Sequence> = fc.noBias(
  fc.record({
    isShort: fc.boolean(),
    commands: fc
      .tuple(first, fc.array(command, { maxLength: 70, size: 'max' }))
      .map(([one, others]) => [one, ...others]),
  }),
);
