import { channel } from 'node:diagnostics_channel';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { describeRefusal, summarizeError, summarizeRefusal } from '../job/error-record.js';
import type { Acted } from './acts/act.js';
import { Repeats } from './repeats.js';

/** What somebody did with the dashboard: published after each act, also one that failed. Never a payload. */
export interface DashboardActMessage {
  readonly instance: string;
  readonly queue: string;
  /** Such as `jobs/cancel`. */
  readonly act: string;
  /** As `access` named the user. */
  readonly user: string | undefined;
  /** Jobs that were changed; with `dryRun`, that would have been. */
  readonly count: number;
  /** How many jobs met which end. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly dryRun: boolean;
  /** Why the act failed; a part of it may have been done. */
  readonly error?: unknown;
}

/** Of `node:diagnostics_channel`. */
export const DASHBOARD_ACT_CHANNEL = 'nestjs-delay-queue:dashboardAct';

const acts = channel(DASHBOARD_ACT_CHANNEL);

/** Writes down who did what. */
export class ActLog {
  readonly #logger = new DelayQueueLogger('DelayQueueDashboard');
  readonly #repeats = new Repeats();

  done(message: Omit<DashboardActMessage, keyof Acted>, { count, outcomes, dryRun }: Acted): void {
    const { user, act, queue, instance } = message;
    const ends = Object.entries(outcomes).map(([outcome, jobs]) => `${jobs} ${outcome}`);
    const line = `${who(user)}: ${act} of queue "${queue}"${of(instance)}${ends.length > 0 ? `: ${ends.join(', ')}` : ''}.`;
    if (dryRun) this.#logger.debug(`${line} Only asked: nothing was changed.`, { queue });
    else this.#logger.log(line, { queue });
    acts.publish({ ...message, count, outcomes, dryRun } satisfies DashboardActMessage);
  }

  /** Each is an event. The log has those that are alike once a minute: whoever may write could fill it with what is refused. */
  failed(message: Omit<DashboardActMessage, keyof Acted>, error: unknown): void {
    const { user, act, queue, instance } = message;
    const what = `${who(user)}, ${act} of queue "${queue}"${of(instance)}`;
    const line = this.#repeats.asSaid(`An act of the dashboard failed: ${what}: ${summarizeError(error)}`);
    if (line !== undefined) this.#logger.warn(line, { queue });
    acts.publish({ ...message, count: 0, outcomes: {}, dryRun: false, error } satisfies DashboardActMessage);
  }

  /**
   * Something of the application, or of this library, threw what nobody expected. Said once a minute.
   *
   * @param payload what a function was to hide: its values are taken out of what the function threw
   */
  fault(what: string, thrown: unknown, payload?: unknown): void {
    const line = this.#repeats.asSaid(`${what} failed: ${summarizeRefusal(thrown, payload)}`);
    if (line === undefined) return;
    const { name, message, stack, at } = describeRefusal(thrown, payload);
    this.#logger.error(line, undefined, { name, message, at, ...(stack && { stack }) });
  }
}

function who(user: string | undefined): string {
  return user === undefined ? 'Somebody' : `"${user}"`;
}

function of(instance: string): string {
  return instance === 'default' ? '' : ` of instance "${instance}"`;
}
