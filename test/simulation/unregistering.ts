import type { Instance } from '../../lib/instance/start-instance.js';
import type { Member } from './fleet.js';
import type { Configuration, Operation } from './plan.js';
import { queuesOfWorkers } from './queues.js';
import { Random, rounded } from './random.js';
import type { Simulation } from './simulation.js';

/** A worker gives up a queue, and works on it anew some time after its handlers have ended. */
export interface UnregisterOperation {
  readonly kind: 'unregister';
  readonly at: number;
  readonly worker: number;
  readonly queue: string;
  readonly forMs: number;
}

/** What others may be late by who have not heard yet that it is not there any more. */
const LEAVES_MS = 1_000;

/** Has a stream of its own, and changes nothing else. */
export function drawUnregistering(
  seed: number,
  configuration: Configuration,
  operations: readonly Operation[],
): UnregisterOperation[] {
  const { older, resizes, workers } = configuration;
  const random = new Random(seed, 'unregistering');
  // Not all older builds can. And a concurrency that was set is forgotten with the handler.
  if (older || resizes > 0 || !random.chance(0.15)) return [];
  const queues = queuesOfWorkers(configuration);
  return operations
    .filter(() => random.chance(0.05))
    .map(({ at }) => ({
      kind: 'unregister',
      at: rounded(at + random.between(0, 100)),
      worker: random.whole(0, workers - 1),
      queue: random.pick(queues),
      forMs: random.whole(0, 3_000),
    }));
}

/** @param register makes the process work on the queue */
export function unregister(
  simulation: Simulation,
  { worker, queue, forMs }: UnregisterOperation,
  register: (member: Member, instance: Instance) => void,
): void {
  const { fleet, engine, oracle, patrol, troubles } = simulation;
  const member = fleet.members.get(`worker${worker}`);
  const instance = member?.instance;
  const isThere = () => member?.isAlive && !member.isStopping;
  if (!instance || !isThere()) return;
  const giveUp = async () => {
    if (!isThere() || !member.serves(queue)) return;
    engine.trace('unregisters', member.id, queue);
    const { name } = member.process;
    const wasCalm = troubles.calmSince(name) < engine.now;
    const leftAt = engine.now + LEAVES_MS;
    troubles.mark(name, LEAVES_MS);
    member.givesUp(queue);
    const wasThere = await instance.registry.unregister(queue);
    if (!wasThere) oracle.report('untyped', `${member.id} had no handler of "${queue}" to unregister`);
    // Other than a process that ends, it may be cut off alone meanwhile; and what its worker gave up then it has not got when that is over.
    patrol.afterDrain(member, queue, wasCalm && troubles.calmSince(name) <= leftAt);
    engine.after(forMs, () => isThere() && takeUp(), member.process);
  };
  const takeUp = () => {
    engine.trace('registers', member.id, queue);
    register(member, instance);
    member.takesUp(queue);
  };
  engine.after(0, () => oracle.calls.unwaited(giveUp()), member.process);
}
