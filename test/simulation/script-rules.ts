import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Member } from './fleet.js';
import type { StepArguments } from './step-arguments.js';
import type { ScriptCall } from './witness.js';

/** A script that runs now. */
export interface RunningScript extends ScriptCall {
  readonly name: string;
  readonly step: StepArguments | undefined;
  /** The process that speaks; the connection may be an old one of it. */
  readonly member: Member | undefined;
  /** Why nobody will hear of what it claims. */
  readonly unheard: string | undefined;
  readonly takenBack: Set<string>;
  /** Of each job that it settles. */
  readonly before: readonly StoredJob[];
}

/** What is stored of a job. */
export interface StoredJob {
  /** The claim that holds it. */
  readonly held: string | null;
  readonly isQuarantined: boolean;
  readonly isStored: boolean;
  /** A replacement or a cancellation waits for the end of its run. */
  readonly isFollowed: boolean;
  readonly attempts: StoredAttempts;
}

/** See lib/lua/shared/record.lua. */
export interface StoredAttempts {
  readonly charged: number;
  /** Leases lost in a row. */
  readonly losses: number;
}

export function storedAttempts(text: string | null): StoredAttempts {
  const [charged = 0, losses = 0] = (text ?? '0 0').split(' ').map(Number);
  return { charged, losses };
}

/** Rules about one matter. They hear each script of a shard, and judge by what is stored before and after it. */
export interface ScriptRules {
  begins?(script: RunningScript): void;
  /** Before the command runs. */
  runs?(script: RunningScript, name: string, args: readonly string[]): void;
  /** It did not fail. */
  ends?(script: RunningScript, reply: Reply): void;
}

/** They know one server, which nobody deposes, and one build of the library. */
export const CLOSE_RULES = new Set([
  'untold',
  'chatter',
  'handedBack',
  'delayed',
  'charge',
  'uncharged',
  'chargedTogether',
  'apart',
  'killer',
]);
