import { wakeChannel } from '../../lib/redis/keys.js';
import { NOTHING_ASKED, parseStep, STEP_SEQUENCE_AT, stepArgs } from '../../lib/redis/step.protocol.js';
import type { StepReply, StepRequest } from '../../lib/redis/step.protocol.js';
import type { AnyScriptName } from '../../lib/lua/scripts.js';
import { LeaseRenewal } from '../../lib/worker/lease-renewal.js';
import type { Claim } from '../../lib/worker/lease-renewal.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { SettlementBuffer } from '../../lib/worker/settlement-buffer.js';
import type { Shard } from './shard.js';

/** A numbered line of calls, as lib/redis/session.ts makes them, that a test can resend at will. */
export class TestSession {
  readonly key: string;
  sequence = 0;
  #resend: (() => Promise<unknown>) | undefined;

  constructor(private readonly shard: Shard) {
    this.key = shard.keys.session(`test.${sessions++}`);
  }

  /** `args[at]` is for the sequence number. */
  call(script: AnyScriptName, args: (string | number)[], at = 0): Promise<unknown> {
    const all = [...args];
    all[at] = ++this.sequence;
    this.#resend = () => this.shard.run(script, this.key, all);
    return this.#resend();
  }

  /** The last call once more, byte for byte: its answer was lost. */
  again(): Promise<unknown> {
    return this.#resend!();
  }
}

let sessions = 0;
let peers = 0;

export interface Ask extends Partial<Omit<StepRequest, 'settle' | 'renewals'>> {
  settle?: readonly Ending[];
  renew?: readonly { claim: number; held?: number; sole?: boolean; ownMs?: number }[];
  /** Most bytes of a claim. */
  bytes?: number;
}

export type Ending = readonly [claim: number, id: string, settlement: Settlement];

/** A worker as the scripts see it: a name, which begins with the channel of its process, and sessions. */
export class Peer {
  readonly channel: string;
  readonly name: string;
  session: TestSession;

  constructor(readonly shard: Shard) {
    this.channel = wakeChannel(shard.world.prefix, `peer${peers++}`);
    this.name = `${this.channel}#0`;
    this.session = this.newSession();
  }

  newSession(): TestSession {
    return new TestSession(this.shard);
  }

  async step(ask: Ask = {}, session = this.session): Promise<StepReply> {
    return parseStep(await session.call('step', argsOf(ask, this.name), STEP_SEQUENCE_AT));
  }

  /** The arguments of a step, to be changed and sent by hand. */
  args(ask: Ask = {}): (string | number)[] {
    return argsOf(ask, this.name);
  }

  async again(session = this.session): Promise<StepReply> {
    return parseStep(await session.again());
  }

  claim(limit: number, ask: Ask = {}): Promise<StepReply> {
    return this.step({ limit, ...ask });
  }

  /** Claims one job, which must be this one. @returns its claim number */
  async take(id: string, ask: Ask = {}): Promise<number> {
    const { claim, jobs } = await this.claim(1, ask);
    if (jobs.length !== 1 || jobs[0]!.id !== id) throw new Error(`claimed ${JSON.stringify(jobs)} instead of ${id}`);
    return claim;
  }

  settle(claim: number, id: string, settlement: Settlement): Promise<StepReply> {
    return this.step({ settle: [[claim, id, settlement]] });
  }

  async leave(): Promise<void> {
    await this.shard.run('leave', this.session.key, [this.name]);
  }
}

const BYTES_AT = 4;

function argsOf({ settle = [], renew = [], bytes, ...ask }: Ask, worker: string): (string | number)[] {
  const buffer = new SettlementBuffer();
  for (const [number, id, settlement] of settle) buffer.add({ id, claim: claimOf(number), settlement });
  const request: StepRequest = {
    ...NOTHING_ASKED,
    idleForMs: 7_000,
    deadLetters: { max: 10_000, maxAgeMs: 90 * 86_400_000 },
    ...ask,
    settle: buffer.take(settle.length),
    renewals: renew.map(({ claim, held = 1, sole = false, ownMs = 0 }) => ({
      claim: { ...claimOf(claim), ownMs },
      held,
      sole,
    })),
  };
  const args = stepArgs(request, worker);
  if (bytes !== undefined) args[BYTES_AT] = bytes;
  return args;
}

function claimOf(number: number): Claim {
  return new LeaseRenewal(30_000).open(number, 1, 0, false);
}
