import type { Run } from '../worker/run.js';
import type { ShardWorker } from '../worker/shard-worker.js';
import type { Timeout } from '../worker/timeout.js';

/** The worker of one shard in the hands of the harness, which moves the time of jobs and must know when nothing happens any more. */
export class TestWorker {
  constructor(private readonly worker: ShardWorker) {}

  /** Jobs may have become due: look. */
  wake(): void {
    this.worker.wake();
  }

  /** Where time stands still it then looks only when woken: by itself it would ask again and again for what moved time makes due. */
  begin(timeStandsStill: boolean): void {
    if (timeStandsStill) this.worker.next.timeStandsStill();
    this.worker.wake();
  }

  /** Something runs. */
  get isRunning(): boolean {
    return this.worker.running > 0;
  }

  /** Something runs, or something that ended is not yet known to Redis. */
  get isBusy(): boolean {
    const { occupancy, jobs } = this.worker;
    return occupancy.held + occupancy.ending + jobs.untold > 0;
  }

  /** A step is on its way. */
  get isAsking(): boolean {
    return this.worker.occupancy.stepsOut > 0;
  }

  /** Numbers of the claims whose leases its heartbeats renew. */
  get keptClaims(): number[] {
    const { heartbeats, leases } = this.worker.jobs.runs;
    return heartbeats ? Array.from(leases.all(), ({ number }) => number) : [];
  }

  /** Runs whose outcome is not decided. */
  unfinished(): Iterable<Run> {
    return this.worker.jobs.runs.unfinished();
  }

  /** ms until the first of what runs has run out of time. @param now monotonic; none where only moved time counts */
  timeLeft(now?: number): number {
    return this.#timeouts().reduce(
      (least, { at, left }) => Math.min(least, now === undefined ? left : at - now),
      Infinity,
    );
  }

  /** Takes `ms` from what is left of timeouts, of leases that nothing renews, and of waiting for a turn. */
  fastForward(ms: number): void {
    const { jobs, next } = this.worker;
    const { runs } = jobs;
    for (const timeout of this.#timeouts()) timeout.endSooner(ms);
    next.turn.fastForward(ms);
    if (runs.heartbeats) return;
    runs.leases.fastForward(ms);
    this.worker.reconsider();
  }

  /** Of runs, and of batches. */
  #timeouts(): Timeout[] {
    const ofBatches = this.worker.jobs.executor.batches?.timeouts ?? [];
    const ofRuns = Array.from(this.unfinished(), ({ timeout }) => timeout ?? []).flat();
    return [...ofRuns, ...ofBatches];
  }

  /** A batch waits for no more jobs. */
  flush(): void {
    this.worker.jobs.executor.batches?.flush();
  }

  /** As if the process had died: nothing that runs is settled, no lease is renewed, nobody is told. */
  crash(): void {
    const { jobs, occupancy } = this.worker;
    this.worker.close();
    jobs.abandon();
    jobs.runs.close();
    occupancy.leave(false);
  }
}
