import type { Claim } from './lease-renewal.js';
import type { Run } from './run.js';
import { outcomeArgs } from './settlement.js';
import type { Settlement } from './settlement.js';

/** A run that is over and waits for Redis to hear of it. */
export interface Ended {
  readonly id: string;
  readonly claim: Claim;
  readonly settlement: Settlement;
  /** Called when Redis has answered; `lost` if the lease was gone. */
  readonly onSettled?: ((lost: boolean) => void) | undefined;
  readonly run?: Run | undefined;
  /** The outcome to publish for a job that could not be started. */
  readonly notStarted?: { readonly attempt: number; readonly latenessMs: number } | undefined;
}

/** Endings taken out of the buffer for one step, with the arguments that tell them. */
export interface SettlementBatch {
  readonly ended: readonly Ended[];
  readonly groups: number;
  readonly outcomes: number;
  readonly args: (string | number)[];
}

const MAX_BYTES = 512 * 1024;

/** What ended since the last step. Nothing leaves it for good before Redis has answered. */
export class SettlementBuffer {
  #ended: Ended[] = [];
  /** In steps that have no answer. */
  readonly #sent = new Set<SettlementBatch>();

  get size(): number {
    return this.#ended.length;
  }

  /** How many Redis has not confirmed: those that wait here, and those in steps that have no answer. */
  get unconfirmed(): number {
    return this.ids().length;
  }

  ids(): string[] {
    const sent = [...this.#sent].flatMap(({ ended }) => ended);
    return [...sent, ...this.#ended].map(({ id }) => id);
  }

  add(ended: Ended): void {
    this.#ended.push(ended);
  }

  /** A step that failed gives its endings back; they go first next time. */
  giveBack(batch: SettlementBatch): void {
    this.forget(batch);
    this.#ended = [...batch.ended, ...this.#ended];
  }

  /** Redis has confirmed them, or nobody asks it any more. */
  forget(batch: SettlementBatch): void {
    this.#sent.delete(batch);
  }

  /** At most `max` endings, completed ones grouped by claim: the common case costs one argument per job. */
  take(max: number): SettlementBatch {
    const groups = new Map<number, string[]>();
    const outcomes: (string | number)[] = [];
    let taken = 0;
    let bytes = 0;
    let others = 0;
    for (; taken < this.#ended.length && taken < max && bytes < MAX_BYTES; taken++) {
      const { id, claim, settlement } = this.#ended[taken]!;
      if (settlement.verb === 'complete') {
        const group = groups.get(claim.number);
        if (group) group.push(id);
        else groups.set(claim.number, [id]);
      } else {
        const args = outcomeArgs(settlement, claim.number, id);
        bytes += String(args[4]).length;
        outcomes.push(...args);
        others++;
      }
    }
    const args: (string | number)[] = [];
    for (const [claim, ids] of groups) args.push(claim, ids.length, ...ids);
    args.push(...outcomes);
    const ended = taken === this.#ended.length ? this.#ended : this.#ended.slice(0, taken);
    this.#ended = taken === this.#ended.length ? [] : this.#ended.slice(taken);
    const batch = { ended, groups: groups.size, outcomes: others, args };
    if (taken > 0) this.#sent.add(batch);
    return batch;
  }
}
