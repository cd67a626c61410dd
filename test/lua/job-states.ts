import { expect } from '@jest/globals';
import type { JobState, OnDuplicate } from '../../lib/index.js';
import type { Seen, Shard, State } from './shard.js';

// What each call answers in each state of a job, and what is stored afterwards: the table of the contract, cell by cell.
// test/contract/conformance.spec.ts fails on a gap.

/** What the world looks like afterwards; `there` is what stood there before. */
type After = (there: Seen, laterAt: number) => Seen;

const asBefore: After = (there) => there;
export const gone: After = () => ({ state: 'none' });
const anew: After = (_, laterAt) => ({ state: 'delayed', payload: 'new', dueAt: laterAt });
const moved: After = (there, laterAt) => ({ ...there, state: 'delayed', dueAt: laterAt });
const updated: After = (there) => ({ ...there, payload: 'new' });
const revived: After = (there, laterAt) => ({ state: 'delayed', payload: there.payload, dueAt: laterAt });
const followedBy =
  (next: string): After =>
  (there) => ({ ...there, followup: next });

/** Stands for an enqueue that throws DuplicateJobError. */
export const THROWS = 'throws';
export type Cell = readonly [outcome: string, state: JobState | undefined, after: After];

export const CREATED: Cell = ['created', 'delayed', anew];
export const FREE: readonly State[] = ['none', 'completed', 'cancelled', 'expired'];

export const ENQUEUE: Record<OnDuplicate, Partial<Record<State, Cell>>> = {
  keep: {
    delayed: ['kept', 'delayed', asBefore],
    due: ['kept', 'due', asBefore],
    quarantined: ['kept', 'due', asBefore],
    running: ['kept', 'running', asBefore],
    dead: ['replaced', 'dead', anew],
  },
  replace: {
    delayed: ['replaced', 'delayed', anew],
    due: ['replaced', 'due', anew],
    quarantined: ['replaced', 'due', anew],
    running: ['replaced', 'running', followedBy('new')],
    dead: ['replaced', 'dead', anew],
  },
  reschedule: {
    delayed: ['rescheduled', 'delayed', moved],
    due: ['rescheduled', 'due', moved],
    quarantined: ['rescheduled', 'due', moved],
    running: ['rescheduled', 'running', followedBy('old')],
    dead: ['rescheduled', 'dead', revived],
  },
  reject: {
    delayed: [THROWS, 'delayed', asBefore],
    due: [THROWS, 'due', asBefore],
    quarantined: [THROWS, 'due', asBefore],
    running: [THROWS, 'running', asBefore],
    dead: [THROWS, 'dead', asBefore],
  },
};

export const CALLS: Record<
  string,
  { call: (shard: Shard, laterAt: number) => Promise<unknown>; cells: Partial<Record<State, Cell>> }
> = {
  cancel: {
    call: (shard) => shard.producer.cancel(shard.queue, 'A'),
    cells: {
      delayed: ['cancelled', 'delayed', gone],
      due: ['cancelled', 'due', gone],
      quarantined: ['cancelled', 'due', gone],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  'cancel({ running: true })': {
    call: (shard) => shard.producer.cancel(shard.queue, 'A', { running: true }),
    cells: {
      delayed: ['cancelled', 'delayed', gone],
      due: ['cancelled', 'due', gone],
      quarantined: ['cancelled', 'due', gone],
      running: ['running', 'running', followedBy('cancelled')],
      dead: ['dead', 'dead', asBefore],
    },
  },
  reschedule: {
    call: (shard, laterAt) => shard.producer.reschedule(shard.queue, 'A', { at: laterAt }),
    cells: {
      delayed: ['rescheduled', 'delayed', moved],
      due: ['rescheduled', 'due', moved],
      quarantined: ['rescheduled', 'due', moved],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  update: {
    call: (shard) => shard.producer.update(shard.queue, 'A', 'new'),
    cells: {
      delayed: ['updated', 'delayed', updated],
      due: ['updated', 'due', updated],
      quarantined: ['updated', 'due', updated],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  signal: {
    call: (shard) => shard.producer.signal(shard.queue, 'A', 'new'),
    cells: {
      delayed: [
        'signalled',
        'delayed',
        (there) => ({ ...there, payload: 'new', state: 'due', dueAt: expect.any(Number) as never }),
      ],
      due: ['signalled', 'due', updated],
      quarantined: ['signalled', 'due', updated],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  runNow: {
    call: (shard) => shard.producer.runNow(shard.queue, 'A'),
    cells: {
      delayed: ['rescheduled', 'delayed', (there) => ({ ...there, state: 'due', dueAt: expect.any(Number) as never })],
      due: ['rescheduled', 'due', asBefore],
      quarantined: ['rescheduled', 'due', asBefore],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
};
