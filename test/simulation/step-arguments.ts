/** Where the scripts expect the keys of a shard; see lib/redis/keys.ts. */
export const SHARD_KEYS = {
  due: 0,
  running: 1,
  leases: 2,
  jobs: 3,
  followups: 4,
  attempts: 5,
  quarantine: 6,
  dead: 7,
  idle: 11,
  meta: 12,
  completed: 13,
  history: 14,
  changed: 15,
  session: 16,
} as const;

export interface Settled {
  readonly claim: string;
  readonly id: string;
  readonly verb: string;
  /** Of a dead letter: why. */
  readonly reason: string;
  /** Of a failure, and of a dead letter: the error as JSON; else whatever stands in its place. */
  readonly error: string;
  /** Of a job that is handed back: nothing of it has begun. */
  readonly isUnbegun: boolean;
  /** Of one that is handed back because it waits for another one: it is to keep no place in its group, whatever it did before. */
  readonly isPassable: boolean;
}

/** What one step asks for; see lib/lua/step.lua. */
export interface StepArguments {
  readonly worker: string;
  /** Number of this call in its session. */
  readonly call: number;
  /** When it left, by the server's clock, epoch ms; undefined where its process has not heard from that shard. */
  readonly leftAt: number | undefined;
  readonly leaseMs: number;
  /** Claims whose leases it renews. */
  readonly renewed: ReadonlySet<string>;
  /** Those of them that end when they were to end. */
  readonly staying: ReadonlySet<string>;
  readonly settled: readonly Settled[];
}

const FIRST_RENEWAL = 13;
/** How many completed jobs are kept, and for how long. */
const KEPT_ARGUMENTS = 2;

export function readStep(args: readonly string[]): StepArguments {
  const [renewals, groups, outcomes] = [Number(args[10]), Number(args[11]), Number(args[12])];
  const [renewed, staying] = [new Set<string>(), new Set<string>()];
  let at = FIRST_RENEWAL;
  for (let i = 0; i < renewals; i++, at += 3) {
    renewed.add(args[at]!);
    if (Number(args[at + 2]) < 0) staying.add(args[at]!);
  }
  const settled: Settled[] = [];
  for (let i = 0; i < groups; i++) {
    const count = Number(args[at + 1]);
    for (const id of args.slice(at + 2, at + 2 + count))
      settled.push({ claim: args[at]!, id, verb: 'complete', reason: '', error: '', isUnbegun: false, isPassable: false }); // prettier-ignore
    at += 2 + count;
  }
  for (let i = 0; i < outcomes; i++, at += 6) {
    const [verb, claim, id, reason, error, last] = args.slice(at, at + 6) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const [isUnbegun, isPassable] = ['1', '2'].map((flag) => verb === 'l' && last === flag) as [boolean, boolean];
    settled.push({ claim, id, verb, reason, error, isUnbegun, isPassable });
  }
  // Else the rules would judge by something that nobody has said.
  const end = at + (args[5]!.includes('k') ? KEPT_ARGUMENTS : 0);
  if (end !== args.length) throw new Error(`A step has ${args.length} arguments, of which ${end} were read.`);
  return {
    worker: args[0]!,
    call: parseInt(args[1]!, 10),
    leftAt: args[1]!.includes(' ') ? Number(args[1]!.split(' ')[1]) : undefined,
    leaseMs: Number(args[2]),
    renewed,
    staying,
    settled,
  };
}
