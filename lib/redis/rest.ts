import type { Resting, RestWatch } from './rest-watch.js';

/** The rest of one who has work in a shard; see `RestWatch`. */
export class Rest implements Resting {
  held = '';
  ahead = 0;

  constructor(
    private readonly watch: RestWatch,
    readonly key: string,
    readonly stir: () => void,
    readonly unchanged: (sentAt: number) => void = () => undefined,
  ) {}

  /** A change would be heard of. */
  get isPossible(): boolean {
    return this.watch.isUsable;
  }

  get hasBegun(): boolean {
    return this.watch.has(this);
  }

  /** @param serverNow of the answer that said what the key held, which came at `arrivedAt` (monotonic ms) */
  begin(held: string, serverNow: number, arrivedAt: number): void {
    this.held = held;
    this.ahead = serverNow - arrivedAt;
    this.watch.add(this);
  }

  end(): void {
    this.watch.delete(this);
  }
}
