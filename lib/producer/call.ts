import type { AnyScriptName } from '../lua/scripts.js';
import { bytesOf } from '../redis/enqueue.protocol.js';
import type { EnqueueItem, EnqueueReply } from '../redis/enqueue.protocol.js';

/** Why there is no answer, in words for one id. */
export type Failure = (id: string) => Error;

/** How a script call is told of in errors, and what it holds. */
export interface ScriptCallWords {
  /** What the caller called. Default: the name of the script. */
  readonly call?: string;
  /** It only prepares for `call`: without an answer that is not sent, and what was prepared does no harm. */
  readonly prepares?: boolean;
  readonly bytes?: number;
  /** Runs before each time that the call leaves. If it fails, the call does not leave, and is tried again. */
  readonly before?: () => Promise<void>;
}

export type ScriptArgs = readonly (string | number)[];

interface PendingCall {
  readonly script: AnyScriptName;
  readonly call?: string | undefined;
  readonly bytes: number;
  /** Monotonic ms. */
  readonly deadline: number;
  settled: boolean;
  reject(failure: Failure): void;
}

/** Of the script `enqueue`; travels with others of its kind. */
export interface JobsCall extends PendingCall {
  readonly prepares?: undefined;
  readonly before?: undefined;
  readonly items: readonly EnqueueItem[];
  resolve(replies: EnqueueReply[]): void;
}

/** Of any other script, one at a time. */
interface ScriptCall extends PendingCall {
  readonly items?: undefined;
  readonly prepares?: boolean | undefined;
  readonly before?: (() => Promise<void>) | undefined;
  readonly args: ScriptArgs;
  resolve(answer: string): void;
}

export type Call = JobsCall | ScriptCall;

/** Of one job, as most are: a class, because two functions more for each would be felt. */
export class JobCall implements JobsCall {
  readonly script = 'enqueue';
  readonly items: readonly [EnqueueItem];
  readonly bytes: number;
  settled = false;

  constructor(
    item: EnqueueItem,
    readonly deadline: number,
    private readonly tell: (reply: EnqueueReply) => void,
    private readonly fail: (error: Error) => void,
  ) {
    this.items = [item];
    this.bytes = bytesOf(item);
  }

  resolve(replies: EnqueueReply[]): void {
    this.tell(replies[0]!);
  }

  reject(failure: Failure): void {
    this.fail(failure(this.items[0].id));
  }
}
