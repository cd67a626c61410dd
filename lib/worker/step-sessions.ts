import type { Session } from '../redis/session.js';

/**
 * The sessions on which the steps of one shard leave: one step is on its way while the jobs of the other run. There are more than two
 * where a round trip takes so long that slots would stand empty (`Prefetch`).
 */
export class StepSessions {
  readonly all: Session[];

  constructor(private readonly open: () => Session) {
    this.all = [open(), open()];
  }

  /** @returns one on which a step can leave, unless as many are on their way as may be */
  free(stepsOut: number, most: number): Session | undefined {
    if (stepsOut >= most) return undefined;
    const free = this.all.find(({ busy }) => !busy);
    if (free || this.all.length >= most) return free;
    const session = this.open();
    this.all.push(session);
    return session;
  }

  get areBusy(): boolean {
    return this.all.every(({ busy }) => busy);
  }
}
