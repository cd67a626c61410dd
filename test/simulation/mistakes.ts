import type { Instance } from '../../lib/instance/start-instance.js';
import { tryMalformedConnection } from './connection-mistakes.js';
import type { Member } from './fleet.js';
import type { Configuration, Operation } from './plan.js';
import { Random, rounded } from './random.js';
import type { Simulation } from './simulation.js';

/** A call that is refused before anything is sent. */
export interface MistakeOperation {
  readonly kind: 'mistake';
  readonly at: number;
  /** Chooses the mistake, from 0 to 1. */
  readonly which: number;
}

const QUEUE = 'jobs';
/** Under this id nothing may ever be stored. */
const ID = 'mistaken';

type Call = (instance: Instance) => unknown;
const enqueue =
  (options: object): Call =>
  ({ producer }) =>
    producer.enqueue(QUEUE, { n: -1 }, { id: ID, ...options });

/** A codec of the application's own may make something of it. */
const UNDEFINED: readonly Call[] = [
  ({ producer }) => producer.enqueue(QUEUE, undefined, { id: ID }),
  ({ producer }) => producer.update(QUEUE, ID, undefined),
];

/** What TypeScript would not let pass, and what it would. */
const MISTAKES: readonly Call[] = [
  enqueue({ delay: 'soon' }),
  enqueue({ delay: 1, at: 1 }),
  enqueue({ unknown: 1 }),
  enqueue({ onDead: 'keep', onDuplicate: 'replace' }),
  enqueue({ dueAt: 'keep', onDuplicate: 'reject' }),
  enqueue({ attempts: 0 }),
  enqueue({ context: { user: 7 } }),
  enqueue({ durability: { replicas: 1, timeout: '1h' } }),
  enqueue({ idFromPayload: true }),
  enqueue({ id: '{braces}' }),
  ...UNDEFINED,
  ({ producer }) => producer.enqueue(QUEUE, { n: 1n }, { id: ID }),
  ({ producer }) => producer.enqueue('a queue with {braces}', {}, { id: ID }),
  ({ producer }) => producer.enqueueMany(QUEUE, 'nothing' as never),
  ({ producer }) => producer.enqueueMany(QUEUE, [{ id: ID } as never]),
  ({ producer }) => producer.enqueueMany(QUEUE, [{ payload: {}, id: ID, delay: 'soon' } as never]),
  ({ producer }) => producer.enqueueMany(QUEUE, [{ payload: {}, id: ID }], { spread: 'wide' as never }),
  ({ producer }) => producer.cancel(QUEUE, ID, { running: 1 } as never),
  ({ producer }) => producer.cancel(QUEUE, ID, { others: true } as never),
  ({ producer }) => producer.reschedule(QUEUE, ID, {} as never),
  ({ producer }) => producer.reschedule(QUEUE, ID, { delay: 1, at: 1 } as never),
  ({ consumer }) => consumer.pull([] as never),
  ({ consumer }) => consumer.pull(QUEUE, { max: 0 }),
  ({ consumer }) => consumer.take(QUEUE, 0),
  ({ registry }) => registry.register(QUEUE, 'no function' as never),
  ({ registry }) => registry.register('other', () => undefined, { concurrency: 0 }),
  ({ registry }) => registry.setConcurrency('nobody works on it', 1),
  ({ registry }) => registry.setConcurrency(QUEUE, 0),
];

/** Has a stream of its own, and changes nothing else. */
export function drawMistakes(seed: number, { traits }: Configuration, operations: readonly Operation[]): Operation[] {
  if (!traits.includes('mistaken')) return [];
  const random = new Random(seed, 'mistakes');
  return operations
    .filter(() => random.chance(0.3))
    .map(({ at }) => ({ kind: 'mistake', at: rounded(at + random.between(0, 100)), which: random.next() }));
}

/** The caller is told by an error of the library, and nothing is stored. */
export function mistake(simulation: Simulation, { process }: Member, { which }: MistakeOperation): void {
  const { oracle, engine, fleet, configuration } = simulation;
  const n = Math.floor(which * MISTAKES.length);
  if (UNDEFINED.includes(MISTAKES[n]!) && configuration.traits.includes('otherCodec')) return;
  const living = [...fleet.members.values()].filter((one) => one.instance && one.isAlive && !one.isStopping);
  const by = living[Math.floor(which * 1_000) % living.length];
  if (!by) return;
  const passed = () => oracle.report('untyped', `mistake ${n} of ${process.id} is no error`);
  const refused = (error: Error) => {
    engine.trace('refused', by.id, `mistake ${n} ${error.name}`);
    oracle.calls.refused(error);
  };
  engine.after(
    0,
    () => {
      tryMalformedConnection(simulation, by, which);
      void Promise.resolve()
        .then(() => MISTAKES[n]!(by.instance!))
        .then(passed, refused);
    },
    by.process,
  );
}
