import type { DelayedJob } from '../job/delayed-job.js';

/** The trace context of the code that asks, if there is one. */
export type CurrentTrace = () => Readonly<Record<string, string>> | undefined;

/** What is known of a handler at boot. */
export interface DeliveryHost {
  /** The instance of the handler class, with its injected properties. */
  readonly instance: object;
  readonly queue: string;
  readonly carrier: CurrentTrace;
}

/** Takes what a handler method returned, and is part of the run: when it rejects, the attempt fails. */
export type Delivery = (result: unknown, job: DelayedJob) => Promise<void>;

/** Makes the delivery of one handler at boot. @throws DelayQueueError, whose message gets class and method before it */
export type Delivering = (host: DeliveryHost) => Delivery;
