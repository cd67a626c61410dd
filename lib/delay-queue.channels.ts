import { channel } from 'node:diagnostics_channel';
import type { DeadReason } from './job/error-record.js';
import type { JobState } from './redis/letters.js';

export interface JobMessage {
  /** Of `forRoot({ name })`; `'default'` for the unnamed one. */
  readonly instance: string;
  readonly queue: string;
  readonly id: string;
}

export interface EnqueuedMessage extends JobMessage {
  readonly outcome: 'created' | 'kept' | 'replaced' | 'rescheduled';
  /** Of the job that was found under the id; of a created one, its own. */
  readonly state: JobState;
  /** Server time in ms. */
  readonly dueAt: number;
  /** Until it is due, ms. */
  readonly delayMs: number;
}

export interface RunMessage extends JobMessage {
  /** 1 for the first run; of a job that could not be started, how many attempts it has used. */
  readonly attempt: number;
  /** Claim minus due time, by the server's clock. */
  readonly latenessMs: number;
}

export interface EndedMessage extends RunMessage {
  /** From the claim to the outcome; undefined for a job that was not started, or if there was no subscriber then. */
  readonly durationMs: number | undefined;
}

export interface FailedMessage extends EndedMessage {
  /** The thrown value; for a job that was discarded or not started, an Error that says why. */
  readonly error: unknown;
}

export interface LeaseLostMessage extends JobMessage {
  readonly attempt: number | undefined;
}

export interface ConnectionMessage {
  readonly instance: string;
  /** Without credentials. */
  readonly address: string;
}

/** Occurrences of a schedule that do not run. Those of an outage come in one message. */
export interface OccurrencesSkippedMessage {
  readonly instance: string;
  readonly queue: string;
  /** Id of the schedule. */
  readonly schedule: string;
  /** `'missed'`: they could not begin in time; `'overlap'`: an earlier one still ran. */
  readonly reason: 'missed' | 'overlap';
  readonly count: number;
  /** The times for which they were planned, ms. */
  readonly first: number;
  readonly last: number;
}

/** One answered round trip of a worker. */
export interface StepMessage {
  readonly instance: string;
  readonly queue: string;
  readonly kind: 'claim' | 'settle' | 'heartbeat';
  readonly durationMs: number;
}

/** The messages that the library publishes, by name. Never a payload. */
export interface DelayQueueMessages {
  /** Redis answered an enqueue. */
  enqueued: EnqueuedMessage;
  /** A job is about to be handed to its handler, or waits for its batch. */
  claimed: RunMessage;
  /** Redis knows that the job is done. */
  completed: EndedMessage;
  /**
   * An attempt was used up by an error, a timeout or a discard; `retried` or `deadLettered` follows, unless the job was
   * replaced or cancelled while it ran.
   */
  failed: FailedMessage;
  retried: FailedMessage & { readonly delayMs: number };
  snoozed: EndedMessage & { readonly delayMs: number };
  deadLettered: FailedMessage & { readonly reason: DeadReason };
  /** Removed because it could not start in time. With `keepExpired` it is `deadLettered` instead. */
  expired: RunMessage;
  /** A run has no say in its job any more: another one may have begun. */
  leaseLost: LeaseLostMessage;
  /** By `missed` or `overlap` of their schedule. */
  occurrencesSkipped: OccurrencesSkippedMessage;
  connectionLost: ConnectionMessage & { readonly reason: string };
  connectionRestored: ConnectionMessage & { readonly outageMs: number };
  step: StepMessage;
}

interface TypedChannel<Message> {
  /** Asked before a message is made: unheard events cost this question. */
  readonly hasSubscribers: boolean;
  /** Never throws. If a raw subscriber throws, Node raises the error as an uncaught exception. */
  publish(message: Message): void;
}

type Channels = { readonly [Name in keyof DelayQueueMessages]: TypedChannel<DelayQueueMessages[Name]> };

/** Node's own channels, so that subscribers and the library do not need each other. */
export function channelName(name: keyof DelayQueueMessages): string {
  return `nestjs-delay-queue:${name}`;
}

export const channels: Channels = {
  enqueued: channel(channelName('enqueued')),
  claimed: channel(channelName('claimed')),
  completed: channel(channelName('completed')),
  failed: channel(channelName('failed')),
  retried: channel(channelName('retried')),
  snoozed: channel(channelName('snoozed')),
  deadLettered: channel(channelName('deadLettered')),
  expired: channel(channelName('expired')),
  leaseLost: channel(channelName('leaseLost')),
  occurrencesSkipped: channel(channelName('occurrencesSkipped')),
  connectionLost: channel(channelName('connectionLost')),
  connectionRestored: channel(channelName('connectionRestored')),
  step: channel(channelName('step')),
};
