import { ClosedError, UnavailableError } from '../delay-queue.errors.js';
import type { EnqueueItem } from '../redis/enqueue.protocol.js';
import { isMoving, isRefusal, MOVING, replyCode } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import type { Failure } from './call.js';
import { REPEAT_MS } from './doubtful-jobs.js';

export interface Unanswered {
  readonly store: ShardStore;
  readonly timeoutMs: number;
  /** The application was closed: nothing will ever be sent again. */
  readonly isOver: boolean;
  /** Redis answers, but calls that were made before it took all the time. */
  readonly isBusy?: boolean;
  /** It may have taken effect. */
  readonly sent: boolean;
  readonly cause?: unknown;
}

/** Of a call, or of a read before it. */
interface Unavailable {
  readonly script?: string;
  readonly call?: string | undefined;
  readonly items?: readonly EnqueueItem[] | undefined;
  readonly prepares?: boolean | undefined;
}

/** Why a call got no answer, in words for one id. */
export function unavailable(
  { script = 'call', call = script, items, prepares }: Unavailable,
  why: Unanswered,
): Failure {
  const { store, isOver, cause } = why;
  const { queue } = store;
  const sent = why.sent && !prepares;
  if (isOver && !sent)
    return (id) =>
      new ClosedError(
        `The application was closed: ${call} of "${id}" (queue "${queue}") was not sent. Await such calls before app.close(), ` +
          'or make them in onModuleDestroy().',
      );
  const what = whatHappened(why);
  return (id) => {
    const consequence = sent
      ? `${call} of "${id}" may have taken effect. ${adviceFor(items?.find((item) => item.id === id)?.spec)}`
      : `${call} of "${id}" was not sent. ${why.isBusy ? 'Repeat it, and make fewer at a time.' : 'Call again once Redis answers.'}`;
    const message = `${what} (queue "${queue}"): ${consequence}`;
    return new UnavailableError(message, { cause, maybeAccepted: sent, ids: [id] });
  };
}

function whatHappened({ store, timeoutMs, isOver, isBusy, cause }: Unanswered): string {
  if (cause !== undefined && isMoving(cause)) return MOVING;
  const { address, refusal } = store.connection;
  if (isOver) return `The application was closed before Redis at ${address} answered`;
  if (refusal) return refusal.message;
  if (isBusy) return `Redis at ${address} was busy for ${timeoutMs} ms with calls that this process had made before`;
  const refused =
    cause !== undefined && isRefusal(cause) ? `refused all writes (${replyCode(cause)})` : 'did not answer';
  return `Redis at ${address} ${refused} for ${timeoutMs} ms`;
}

/** What to do about a call in doubt; `spec` is that of an enqueue. */
function adviceFor(spec: string | undefined): string {
  if (spec === undefined) return 'Repeat it to know, unless another job may have got this id meanwhile.';
  if (/^[pur]/.test(spec)) return 'Repeated with this id it makes one more run if the job has started by then.';
  return (
    `Repeat it with this id: in this process that gets the answer of this call for ${REPEAT_MS / 1000} s; later, or elsewhere, it makes ` +
    'a second job if the first has ended by then, unless both say `uniqueFor`.'
  );
}
