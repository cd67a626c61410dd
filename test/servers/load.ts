import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayQueueProducer, Durability } from '../../lib/index.js';
import { eventually } from '../helpers/eventually.js';
import type { WorkerProcess } from '../helpers/worker-process.js';

const CALLERS = 10;
const PAUSE_MS = 10;
const FINISH_MS = 30_000;

/**
 * Enqueues without end, each job under an id of its own, and as the README says sends again under the same id what ended
 * in a retryable error. What was acknowledged is remembered.
 */
export class Load {
  readonly acknowledged = new Set<string>();
  /** Errors that the README does not tell to send again after. */
  readonly refused: unknown[] = [];
  /** Why something had to be sent again, and how often. */
  readonly #retried = new Map<string, number>();
  #longestGapMs = 0;
  #last = performance.now();
  #running = true;
  #gaveUp = false;
  readonly #ended: Promise<unknown>;

  constructor(
    private readonly producer: DelayQueueProducer,
    private readonly queue: string,
    private readonly durability: Durability = 'async',
    private readonly name = 'job',
  ) {
    this.#ended = Promise.all(Array.from({ length: CALLERS }, (_, session) => this.#enqueue(session)));
  }

  /** The longest time during which no enqueue was acknowledged. */
  get longestGapMs(): number {
    return Math.round(Math.max(this.#longestGapMs, performance.now() - this.#last));
  }

  /** Waits for this many acknowledgements more. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged.size + count;
    await eventually(() => {
      const missing = wanted - this.acknowledged.size;
      if (missing > 0) throw new Error(`${missing} are still missing; sent again: ${this.#whys()}`);
    }, 40_000);
  }

  /** Ends with an acknowledgement for each job that was begun; gives up after a while, when there will be none. */
  async finish(): Promise<void> {
    this.#running = false;
    const late = sleep(FINISH_MS, 'late', { ref: false });
    if ((await Promise.race([this.#ended, late])) === 'late')
      throw new Error('jobs that were begun are not acknowledged');
  }

  /** Gives up at once. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#gaveUp = true;
    await this.#ended;
  }

  async #enqueue(session: number): Promise<void> {
    for (let n = 0; ; n++) {
      if (!this.#running) return;
      const id = `${this.name}-${session}-${n}`;
      while (!this.#gaveUp && !this.acknowledged.has(id)) {
        try {
          await this.producer.enqueue(this.queue, {}, { id, durability: this.durability });
          this.#acknowledge(id);
        } catch (error) {
          if ((error as { retryable?: boolean }).retryable !== true) return void this.refused.push(error);
          const why = String((error as Error).message).replaceAll(id, '...');
          this.#retried.set(why, (this.#retried.get(why) ?? 0) + 1);
        }
        await sleep(PAUSE_MS);
      }
    }
  }

  #whys(): string {
    return [...this.#retried].map(([why, times]) => `${times} x ${why}`).join('; ') || 'nothing';
  }

  #acknowledge(id: string): void {
    const now = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#last);
    this.#last = now;
    this.acknowledged.add(id);
  }
}

/** Acknowledged jobs that no worker ran to the end. */
export function notRun(load: Load, workers: readonly WorkerProcess[]): string[] {
  const ran = new Set(workers.flatMap((worker) => worker.of('end').map(({ id }) => id)));
  return [...load.acknowledged].filter((id) => !ran.has(id));
}

/** For the log of a run: figures that no assertion holds, because they depend on the machine. */
export function report(line: string): void {
  process.stderr.write(`${line}\n`);
}
