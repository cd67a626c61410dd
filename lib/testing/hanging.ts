import { HarnessError } from './harness.error.js';
import type { TestShards } from './test-shards.js';

/** The most real time, ms, that one call spends on runs that hang: jest and vitest give a test 5 s, and after that name nobody. */
const MOST_WAITED_MS = 4_000;
/** Where each of them is waited for as long as that, or longer. */
const LEAST_WAITS = 4;

/** What one call of the harness waited for in vain. Each run that hangs until its timeout costs the test a `stallTimeout`. */
export class Hanging {
  #waits = 0;
  /** Handlers that ran meanwhile, each with how often. */
  readonly #waitedFor = new Map<string, number>();

  constructor(
    private readonly shards: TestShards,
    private readonly stallTimeoutMs: number,
  ) {}

  /** No handler ended for one `stallTimeout`. @returns the error of a test that would wait for too long in all */
  async waited(): Promise<HarnessError | undefined> {
    for (const { store, handler, worker } of await this.shards.all()) {
      const runs = worker ? Array.from(worker.unfinished()).length : 0;
      const name = `${handler} of queue "${store.queue}"`;
      if (runs > 0) this.#waitedFor.set(name, (this.#waitedFor.get(name) ?? 0) + 1);
    }
    const most = Math.max(LEAST_WAITS, Math.floor(MOST_WAITED_MS / this.stallTimeoutMs));
    if (++this.#waits < most) return undefined;
    const names = Array.from(this.#waitedFor, ([name, times]) => `${name} (${times})`).join(', ');
    return new HarnessError(
      `${most} times in one call no handler ended for ${this.stallTimeoutMs} ms of real time, before a timeout ended its run. ` +
        `It waited for ${names}. Mock what these wait for, move by less with advance(), or lower \`stallTimeout\`.`,
    );
  }
}
