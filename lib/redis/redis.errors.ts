import {
  ClosedError,
  ConnectionError,
  DelayQueueError,
  LayoutError,
  RedisFullError,
  StoredDataError,
  UnavailableError,
} from '../delay-queue.errors.js';
import { otherShardError } from '../shards/shard-state.js';

/** Our own mark on a call that found no usable connection: it was certainly not executed. */
export class NotSentError extends Error {
  constructor(cause?: unknown) {
    super('No connection to Redis is ready.', { cause });
    this.name = 'NotSentError';
  }
}

/** The same, because it was closed by us: no call will ever be sent again. */
export class AfterCloseError extends NotSentError {}

/** Our own mark on a call that got no answer, because the deadline passed or the connection closed: it may have run. */
export class NoAnswerError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'NoAnswerError';
  }
}

// Answers of a server that is busy with itself. Waiting helps, another payload does not.
const TRANSIENT_REPLY =
  /^(READONLY|LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|OOM|NOSCRIPT|UNKILLABLE|MOVED|ASK|DQMOVING|DQLATE|ERR max number of clients)\b/;
/** Those of them that concern every call; a slot that moves, or a script that was flushed, concerns one. */
const REFUSAL = /^(READONLY|LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|UNKILLABLE)\b/;
const TRANSIENT_DRIVER =
  /ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOTFOUND|Command timed out|Connection is closed|isn't writeable|aborted due to connection close|max retries per request|None of startup nodes|Failed to refresh slots|Cluster isn't ready|Too many Cluster redirections|All sentinels are unreachable/i;

/** The words of the server. Before 7.0 it wraps an error inside a script: `ERR Error running script (...): @...: 1: -OOM ...`. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/^ERR Error running script .*?: -(?=[A-Z]+ )/s, '');
}

/** May the very same call succeed a moment later? */
export function isTransient(error: unknown): boolean {
  if (error instanceof NotSentError || error instanceof NoAnswerError) return true;
  const message = messageOf(error);
  return TRANSIENT_REPLY.test(message) || TRANSIENT_DRIVER.test(message);
}

/** A demoted master keeps its connections and refuses writes for ever: only a new connection finds the new one. */
export function isReadOnlyReply(error: unknown): boolean {
  return messageOf(error).startsWith('READONLY');
}

/** Another node of the Cluster has the slot of this key, or is about to have it. */
export function isElsewhere(error: unknown): boolean {
  return /^(MOVED|ASK)\b/.test(messageOf(error));
}

/** The server answers, and refuses everything for now: LOADING, BUSY, NOREPLICAS, ... */
export function isRefusal(error: unknown): boolean {
  return REFUSAL.test(messageOf(error));
}

/** The user may not do it, or a script of the user's may not. */
export function isNotPermitted(error: unknown): boolean {
  return /\bNOPERM\b|ACL failure in script|user executing the script can't/.test(messageOf(error));
}

/** A script does not learn which one. */
const OF_A_SCRIPT = 'a script';

/**
 * Of a command that the server does not have, perhaps because it was renamed, the name in small letters; also when a
 * script calls it.
 */
export function unknownCommand(error: unknown): string | undefined {
  const message = messageOf(error);
  const [, name] = /^ERR unknown command [`'"]?([^`'",\s]+)/i.exec(message) ?? [];
  if (name !== undefined) return name.toLowerCase();
  return /Unknown Redis command called from/i.test(message) ? OF_A_SCRIPT : undefined;
}

/** @param where what has it not, and what for. The reply is not kept: it quotes the arguments, which may hold a payload. */
export function noCommand(name: string, where: string): ConnectionError {
  const what = name === OF_A_SCRIPT ? 'a command that scripts call' : `the command ${name.toUpperCase()}`;
  return new ConnectionError(
    'command',
    `${where} does not know ${what}. ${ofSentinels(name)}Take it out of \`rename-command\` in its redis.conf, or use a server that has it. ` +
      'docs/operations.md, "A user of its own", lists what is needed.',
  );
}

/** Where the port of a Sentinel stands for that of a server, this is the first command that it does not know. */
function ofSentinels(name: string): string {
  if (!/^(eval|evalsha|script)$/.test(name)) return '';
  return 'A Sentinel has no scripts: if it is one, connect by { sentinels: [{ host, port }], name }. ';
}

/** Redis remembers a later call of the same session: this one will never be answered. */
export function isOfOlderCall(error: unknown): boolean {
  return messageOf(error).startsWith('DQSTALE');
}

/** The number of shards of the queue is being changed; jobs wait. */
export function isMoving(error: unknown): boolean {
  return messageOf(error).startsWith('DQMOVING');
}

/** The keys are not those of the shard that the caller takes them for. */
export function isOtherShard(error: unknown): boolean {
  return messageOf(error).startsWith('DQSHARDS');
}

/** The scripts are those for queues with groups, priorities or limits and the queue uses none, or the other way round. */
export function wantsOtherBuild(error: unknown, isLimited: boolean): boolean {
  if (isLimited) return hasNoGroups(error);
  return /^DQLAYOUT unknown features "(?:[^"]* )?limits[" ]/.test(messageOf(error));
}

/** The queue has no groups, priorities or limits yet. */
export function hasNoGroups(error: unknown): boolean {
  return messageOf(error).startsWith('DQPLAIN');
}

/** Server time, ms, of a call that was refused because it came later than it said it could; undefined for any other error. */
export function serverTimeOfLate(error: unknown): number | undefined {
  const [, time] = /^DQLATE (\d+)/.exec(messageOf(error)) ?? [];
  return time === undefined ? undefined : Number(time);
}

/** The reply without details, for one line of a log. */
export function replyCode(error: unknown): string {
  return messageOf(error).split(' ', 1)[0]!;
}

export function isFull(error: unknown): boolean {
  return messageOf(error).startsWith('OOM');
}

const DAMAGED_LAYOUT = 'DQDAMAGED layout ';

/** The whole queue is left alone, which its worker tells. */
export function isOfLayout(error: unknown): boolean {
  const reply = messageOf(error instanceof DelayQueueError ? error.cause : error);
  return reply.startsWith('DQLAYOUT') || reply.startsWith(DAMAGED_LAYOUT);
}

const WRONG_TYPE = 'One of its keys is not what docs/internals.md says it is: find it by TYPE and rename it.';

export const MOVING = 'the number of shards of the queue is being changed.';

/** What ioredis says of a connection that closes is about its own options and streams. */
function inOurWords(message: string): string {
  return /isn't writeable|Connection is closed|aborted due to connection close/i.test(message)
    ? 'the connection was closed.'
    : message;
}

/** The typed error for a failed call. `what` names the operation and the queue. */
export function typedError(error: unknown, what: string): DelayQueueError {
  if (error instanceof DelayQueueError) return error;
  const message = messageOf(error);
  if (error instanceof AfterCloseError) return new ClosedError(`The application was closed: ${what} was not done.`);
  if (isFull(error))
    return new RedisFullError(`Redis is full and refused ${what}. Raise maxmemory or work off the queues.`, {
      cause: error,
    });
  if (isMoving(error)) return new UnavailableError(`Redis refused ${what}: ${MOVING}`, { cause: error });
  if (isTransient(error))
    return new UnavailableError(`Redis could not be reached for ${what}: ${inOurWords(message)}`, { cause: error });
  if (message.startsWith('DQLAYOUT')) {
    return new LayoutError(
      `${message.slice('DQLAYOUT '.length)}. Upgrade nestjs-delay-queue in this process (${what}).`,
      { cause: error },
    );
  }
  if (message.startsWith(DAMAGED_LAYOUT)) {
    const key = message.slice(DAMAGED_LAYOUT.length);
    return new StoredDataError(
      `Redis refused ${what}: field "layout" of ${key} is no number, so the queue is left alone. Unless a newer ` +
        `nestjs-delay-queue has used it, mend it: HSET "${key}" layout 2`,
      { cause: error },
    );
  }
  if (isOtherShard(error)) return otherShardError(message);
  if (isNotPermitted(error)) {
    return new ConnectionError(
      'permission',
      `Redis does not permit ${what} to this user (${message}). docs/operations.md, "A user of its own", lists what a user needs.`,
      { cause: error },
    );
  }
  const missing = unknownCommand(error);
  if (missing) return noCommand(missing, `Redis refused ${what}: it`);
  const advice = message.startsWith('WRONGTYPE') ? `. ${WRONG_TYPE}` : '';
  return new StoredDataError(`Redis refused ${what}: ${message}${advice}`, { cause: error });
}
