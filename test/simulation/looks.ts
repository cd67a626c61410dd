import type { DelayQueueHealth } from '../../lib/health/delay-queue.health.js';
import type { Instance } from '../../lib/instance/start-instance.js';
import type { Member } from './fleet.js';
import { isPlain } from './queues.js';
import type { Simulation } from './simulation.js';
import type { TimelineRules } from './timeline-rules.js';

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
    const { calls, timelines } = this.simulation.oracle;
    calls.unwaited(look(instance, queue));
    // Older builds have other ones, with errors of their own.
    if (member.process.build === 'present') calls.unwaited(lookAhead(instance, queue, timelines));
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
    const { cluster, engine, network, oracle, troubles } = this.simulation;
    const { process } = member;
    const health: DelayQueueHealth = new (process.loader.library<Health>('health/delay-queue.health').DelayQueueHealth)(
      context,
      () => runner,
    );
    const askedAt = engine.now;
    // Of a Cluster it has links that carry nothing for minutes: that one of them is dead is noticed by the first call over it.
    const hasDeadLink = cluster !== undefined && network.of(process).some(({ isHalfOpen }) => isHalfOpen);
    // Who has just booted still connects.
    const calmSince = () => Math.max(member.bootedAt, troubles.calmSince(process.name));
    const isWell = () => !member.isBroken && !hasDeadLink && calmSince() + RECOVERED_MS <= askedAt;
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

/** Of the due times that are seen one lies where two buckets meet, and one at the end, behind a narrower bucket. */
async function lookAhead({ inspector, context }: Instance, queue: string, timelines: TimelineRules): Promise<void> {
  const { jobs } = await inspector.list(queue, 'delayed', { limit: 5 });
  const [edge, end] = [...new Set(jobs.map(({ dueAt }) => Number(dueAt)))].sort((one, other) => one - other);
  const width = end === undefined ? 0 : end - edge! + 1;
  const keys = context.stores(queue).map((store) => store.keys.due);
  const told = timelines.asks();
  const range = end === undefined ? {} : { from: edge! - width, to: end, buckets: 2 };
  const { counts, before, after } = await inspector.timeline(queue, range);
  told(
    keys,
    counts.reduce((sum, count) => sum + count, before + after),
  );
  let cursor: string | undefined;
  do {
    const page = await inspector.listSchedules(queue, { limit: 1, ...(cursor !== undefined && { cursor }) });
    cursor = page.cursor;
  } while (cursor !== undefined);
}
