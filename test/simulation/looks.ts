import type { DelayQueueHealth } from '../../lib/health/delay-queue.health.js';
import type { Instance } from '../../lib/instance/start-instance.js';
import type { Member } from './fleet.js';
import { isPlain } from './queues.js';
import type { Simulation } from './simulation.js';

/** A check answers within three seconds, whatever Redis does; see lib/health/delay-queue.health.ts. */
const CHECKED_WITHIN_MS = 3_500;
/** After trouble: until each loop of a process has had an answer. */
const RECOVERED_MS = 10_000;
const SAYS_SILENT = /^Redis at .* is not reachable|^The claim loop of queue .* had no answer/;

type Health = typeof import('../../lib/health/delay-queue.health.js');

/** What somebody reads who watches: it changes nothing, so what it says is judged and not what it does. */
export class Looks {
  #checks = 0;

  constructor(private readonly simulation: Simulation) {}

  perform(member: Member, instance: Instance, queue: string): void {
    const { calls } = this.simulation.oracle;
    calls.unwaited(look(instance, queue));
    // Older builds have other ones, with errors of their own.
    if (member.process.build === 'present') calls.unwaited(lookAhead(instance, queue));
    this.#checkHealth();
  }

  /** Each process in its turn asks itself how it is. */
  #checkHealth(): void {
    const { fleet, engine } = this.simulation;
    const asked = fleet.living.filter(({ instance, isStopping, process }) => {
      return instance && !isStopping && !process.isFrozen && process.build === 'present';
    });
    const member = asked[this.#checks++ % asked.length];
    if (member) engine.after(0, () => void this.#check(member, member.instance!), member.process);
  }

  async #check(member: Member, { context, runner }: Instance): Promise<void> {
    const { engine, oracle, troubles } = this.simulation;
    const { process } = member;
    const health: DelayQueueHealth = new (process.loader.library<Health>('health/delay-queue.health').DelayQueueHealth)(
      context,
      () => runner,
    );
    const askedAt = engine.now;
    const isWell = () => !member.isBroken && troubles.calmSince(process.name) + RECOVERED_MS <= askedAt;
    try {
      const { status, reasons } = await health.check();
      engine.trace('health', member.id, status);
      if (!isWell() || member.isStopping) return;
      const took = Math.round(engine.now - askedAt);
      if (took > CHECKED_WITHIN_MS) oracle.report('health', `${member.id} was checked for ${took} ms`);
      const reason = reasons.find((one) => SAYS_SILENT.test(one));
      if (reason !== undefined) oracle.report('health', `${member.id} is well and says: ${reason}`);
    } catch (error) {
      oracle.report('health', `the check of ${member.id} failed: ${String(error)}`);
    }
  }
}

async function look({ inspector, producer }: Instance, queue: string): Promise<void> {
  await inspector.counts(queue);
  await inspector.totals(queue);
  await inspector.queues();
  for (const state of ['delayed', 'due', 'running', 'dead'] as const) {
    const { jobs } = await inspector.list(queue, state, { limit: 5 });
    if (isPlain(queue) && jobs[0]) await producer.get(queue, jobs[0].id);
  }
}

async function lookAhead({ inspector }: Instance, queue: string): Promise<void> {
  await inspector.timeline(queue);
  let cursor: string | undefined;
  do {
    const page = await inspector.listSchedules(queue, { limit: 1, ...(cursor !== undefined && { cursor }) });
    cursor = page.cursor;
  } while (cursor !== undefined);
}
