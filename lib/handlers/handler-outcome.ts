import type { EncodedPayload } from '../job/payloads.js';

/**
 * Nothing of a run has begun: it does not count for a rate. `passable` is a job that waits for another one: whatever it did before, it
 * keeps no place in its group, since the other one, or what that waits for in turn, may wait for this very group.
 */
export type Unbegun = boolean | 'passable';

/** The payload of the next run. */
export interface SnoozedPayload {
  readonly value: unknown;
  /** Where something is waited for before it is stored: the handler may change the value meanwhile. */
  readonly encoded?: EncodedPayload;
}

/** How a run ended, as far as the handler and its enhancers decide it. */
export type HandlerOutcome =
  | { readonly kind: 'completed'; /** A filter turned a failure into this. */ readonly handled?: unknown }
  | { readonly kind: 'failed'; readonly error: unknown; /** Instead of the backoff. */ readonly delayMs?: number }
  /** Handed back as it was; no attempt is used. */
  | {
      readonly kind: 'released';
      /** Due no sooner than so long after Redis hears of it; otherwise when it was. */
      readonly restMs?: number;
      readonly unbegun?: Unbegun;
    }
  /** An occurrence of a schedule that does not run: it ends with its run, and counts as skipped. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'invalid'; readonly error: unknown }
  | { readonly kind: 'discarded'; readonly reason: string; /** Its stack tells where. */ readonly thrown: unknown }
  | {
      readonly kind: 'snoozed';
      readonly delayMs: number;
      readonly max?: number;
      readonly payload?: SnoozedPayload;
    };

/** The run was over before the handler began: by its timeout, a cancellation, a lost lease or a shutdown. Nothing is charged or counted. */
export const UNBEGUN: HandlerOutcome = Object.freeze({ kind: 'released', unbegun: true });
