import type { Instance } from '../../lib/instance/start-instance.js';
import type { Member } from './fleet.js';
import type { OperationOfLimits } from './limits.js';
import type { Simulation } from './simulation.js';

/** How often an operator looks for a job that keeps a place, and how long. */
const LOOK_AGAIN_MS = 50;
const LOOKS = 60;

type Call = (instance: Instance) => Promise<unknown>;

/** What operators ask of queues with limits. */
export class LimitCalls {
  constructor(
    private readonly simulation: Simulation,
    /** Again and again, until it was answered. */
    private readonly untilDone: (afterMs: number, call: Call, done?: () => void) => void,
  ) {}

  perform(member: Member, instance: Instance, operation: OperationOfLimits): void {
    const { queue } = operation;
    if (operation.kind === 'lookAtLimits') return this.simulation.oracle.calls.unwaited(look(instance, queue));
    if (operation.kind === 'changeKept') return this.#changeKept(member, instance, operation, LOOKS);
    const { limits, forMs } = operation;
    this.untilDone(
      0,
      ({ inspector }) => inspector.setLimits(queue, limits),
      () => this.untilDone(forMs, ({ inspector }) => inspector.setLimits(queue, 'config')),
    );
  }

  #changeKept(
    member: Member,
    instance: Instance,
    operation: OperationOfLimits & { kind: 'changeKept' },
    looks: number,
  ): void {
    const { engine, oracle } = this.simulation;
    const { queue, how } = operation;
    const [id] = oracle.limits.keptIn(queue);
    if (id === undefined) {
      if (looks > 0)
        engine.after(LOOK_AGAIN_MS, () => this.#changeKept(member, instance, operation, looks - 1), member.process);
      return;
    }
    engine.trace(how, member.id, id);
    if (how === 'cancel') oracle.job(id).cancelAsked = true;
    const { producer } = instance;
    const call = how === 'reschedule' ? producer.reschedule(queue, id, { delay: 500 }) : producer[how](queue, id);
    oracle.calls.unwaited(call);
  }
}

async function look({ inspector }: Instance, queue: string): Promise<void> {
  await inspector.limits(queue);
  await inspector.counts(queue);
  let cursor: string | undefined;
  do {
    const page = await inspector.groups(queue, { limit: 20, ...(cursor !== undefined && { cursor }) });
    const [first] = page.groups;
    for (const state of ['due', 'delayed'] as const) {
      if (first?.group !== undefined) await inspector.list(queue, state, { group: first.group, limit: 5 });
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
}
