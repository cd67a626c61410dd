import type { Unbegun } from '../handlers/handler-outcome.js';
import { summarizeError } from '../job/error-record.js';
import type { DeadReason } from '../job/error-record.js';
import { dueAgain } from '../recurring/occurrence-gate.js';
import { guarded, warnOnce } from '../user-code.js';
import type { Run } from './run.js';

/**
 * What a worker writes into the store about a job whose run is over. `complete` is the common case and travels in
 * groups. What is released `unbegun` counts for no rate, and as `passable` keeps no place in its group.
 */
export type Settlement =
  | { readonly verb: 'complete' }
  | { readonly verb: 'retry'; readonly delayMs: number; readonly error: string }
  | {
      readonly verb: 'snooze';
      readonly delayMs: number;
      /** Header and payload, when the payload changes. */
      readonly content?: string;
    }
  | {
      readonly verb: 'dead';
      readonly reason: DeadReason;
      readonly error: string;
      /** Counts as an attempt. */
      readonly charge: boolean;
    }
  | { readonly verb: 'expired' }
  | {
      readonly verb: 'release';
      /** Left out where it is not known: it is due when Redis hears of it. */
      readonly dueAt?: number;
      /** Due no sooner than so long after Redis hears of it, or a slow process would take it again by the very call that gives it back. */
      readonly restMs?: number | undefined;
      readonly unbegun?: Unbegun | undefined;
    };

export const COMPLETE: Settlement = Object.freeze({ verb: 'complete' });

/** Of a run whose process has to stop. An occurrence that still asked whether it may run has not begun: it is as it was before. */
export function interrupted({ job, header, asks }: Run): Settlement {
  const dueAt = job.dueAt.getTime();
  if (asks) return { verb: 'release', dueAt, unbegun: true };
  return { verb: 'release', dueAt: dueAgain(dueAt, header.occurrence) };
}

/** Calls the listener for the end of a run. An error of the listener must not keep others from hearing of theirs. */
export function tellSettled(listener: ((lost: boolean) => void) | undefined, lost: boolean): void {
  if (listener) guarded(() => listener(lost), undefined, failed);
}

function failed(thrown: unknown): void {
  warnOnce(
    'settled',
    `What waited for the end of a job failed, which concerns no job: ${summarizeError(thrown)}. Said once.`,
  );
}

/** The six arguments lib/lua/step.lua takes per outcome. */
export function outcomeArgs(settlement: Settlement, claim: number, id: string): (string | number)[] {
  switch (settlement.verb) {
    case 'retry':
      return ['r', claim, id, settlement.delayMs, settlement.error, 0];
    case 'snooze':
      return ['s', claim, id, settlement.delayMs, settlement.content ?? '', 0];
    case 'dead':
      return ['d', claim, id, settlement.reason, settlement.error, settlement.charge ? 1 : 0];
    case 'expired':
      return ['x', claim, id, '', '', 0];
    case 'release': {
      const { dueAt = '', restMs = '', unbegun } = settlement;
      return ['l', claim, id, dueAt, restMs, unbegun === 'passable' ? 2 : unbegun ? 1 : 0];
    }
    case 'complete':
      return [];
  }
}
