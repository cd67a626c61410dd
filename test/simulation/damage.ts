import type { Inject } from './injection.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';

/** As the keys of a shard are named after its base. */
const INDEXES = ['due', 'running', 'quarantine', 'dead', 'leases'];
const JUNK = 'junk';
/** A claim that nobody has. */
const NOBODYS = '5';
const MEND_AGAIN_MS = 500;

type Write = readonly [command: string, key: string, ...args: string[]];

interface Damage {
  readonly writes: readonly Write[];
  /** Fields of `meta` that become what they were. As long as they are wrong the whole shard may be refused. */
  readonly fields?: readonly string[];
  /** What else is taken out. */
  readonly mends?: readonly Write[];
}

/** What a foreign hand writes. Entries of an index are of jobs that nobody knows. */
function damagesOf(junk: string): readonly Damage[] {
  const meta = (field: string, value: string): Damage => ({
    writes: [['HSET', 'meta', field, value]],
    fields: [field],
  });
  const record = (text: string): Write => ['HSET', 'jobs', junk, text];
  return [
    meta('layout', JUNK),
    meta('layout', '2'),
    meta('needs', 'priority'),
    meta('needs', 'shards:7/9'),
    { writes: [['HSET', 'meta', 'graceUntil', '1e300']] },
    // No times, no payload; and an envelope that a newer library wrote.
    { writes: [record('1-??????????????\nno JSON'), ['ZADD', 'due', '0', junk]] },
    { writes: [record('1-??????????????\nno JSON'), ['ZADD', 'quarantine', '0', junk]] },
    { writes: [record('9-,,,,,,,,,,,,,,\n{}'), ['ZADD', 'due', '0', junk]] },
    { writes: [record('9-??????????????\n{}'), ['ZADD', 'due', 'inf', junk]] },
    { writes: [['ZADD', 'due', '0', junk]] },
    { writes: [['ZADD', 'due', '0', junk, '0', `${junk}.2`]] },
    { writes: [['ZADD', 'quarantine', '0', junk]] },
    {
      writes: [
        ['ZADD', 'quarantine', '0', junk],
        ['HSET', 'attempts', junk, 'no numbers at all'],
      ],
    },
    { writes: [['ZADD', 'running', NOBODYS, junk]] },
    { writes: [['ZADD', 'running', '1.5', junk]] },
    { writes: [['ZADD', 'leases', '1', junk]] },
    {
      writes: [
        ['ZADD', 'running', NOBODYS, junk],
        ['ZADD', 'leases', 'inf', NOBODYS],
      ],
    },
    { writes: [['ZADD', 'idle', '9e15', junk]], mends: [['ZREM', 'idle', junk]] },
    {
      writes: [
        ['DEL', 'idle'],
        ['SET', 'idle', JUNK],
      ],
      // Who rests enters again when something has changed, which else the next job would be, up to four seconds late.
      mends: [
        ['DEL', 'idle'],
        ['DEL', 'changed'],
      ],
    },
  ];
}

/** @param place of a job in its group, which says its priority too: see lib/lua/shared/groups.lua */
function groupOf(place: string): string {
  return String(Number(place) - (Number(place) % 16) + 9);
}

/** After a rollback all is mended anew, also where another damage has put a text in place of the key: that one's own mend removes it. */
function writeWhereTypesAgree(server: Server, command: string, args: string[]): void {
  try {
    server.write(command, args);
  } catch (problem) {
    if (!(problem instanceof Error) || !problem.message.startsWith('WRONGTYPE')) throw problem;
  }
}

/** Jobs that nobody knows, by their ids. */
export function isJunk(id: string): boolean {
  return id.startsWith(JUNK);
}

/** What was written into keys of the library by somebody else, until it is taken out again. */
export class Damages {
  /** By base: shards in which something is that is none of the library's. */
  readonly #present = new Map<string, number>();
  readonly #mends = new Set<() => void>();
  /** That held something of this: a mend may be lost with the tail but for its first writes. */
  readonly #claims = new Set<string>();

  constructor(private readonly simulation: Simulation) {}

  isIn(base: string): boolean {
    return (this.#present.get(base) ?? 0) > 0;
  }

  /** What was taken out is there again when writes were lost. */
  afterRollback(): void {
    for (const mend of this.#mends) mend();
  }

  do(base: string, damage: Damage, ms: number, took: () => void): void {
    const { engine, oracle } = this.simulation;
    const write = (writes: readonly Write[]) => {
      const server = this.#server();
      // A queue that was removed meanwhile needs no mending.
      if (oracle.peek('EXISTS', `${base}meta`) === 0) return;
      for (const [command, key, ...args] of writes) writeWhereTypesAgree(server, command, [base + key, ...args]);
    };
    const before = this.simulation.server.commands;
    const old = (damage.fields ?? []).map((field): Write => {
      const value = oracle.peek('HGET', `${base}meta`, field) as string | null;
      return value === null ? ['HDEL', 'meta', field] : ['HSET', 'meta', field, value];
    });
    this.#present.set(base, (this.#present.get(base) ?? 0) + 1);
    write(damage.writes);
    // Not what was written since: a queue may have got limits, and a rollback may have taken the damage back.
    const isDamaged = ([, , field]: Write) =>
      damage.writes.some(([, , name, value]) => name === field && oracle.peek('HGET', `${base}meta`, field!) === value);
    const mend = () => write([...old.filter(isDamaged), ...(damage.mends ?? []), ...this.#takeOut(base, damage)]);
    const end = () => {
      if (!this.simulation.server.isListening) return void engine.after(MEND_AGAIN_MS, end);
      // Somebody was there meanwhile.
      if (this.simulation.server.commands > before + 2) took();
      mend();
      this.#mends.add(mend);
      this.#present.set(base, this.#present.get(base)! - 1);
    };
    engine.after(ms, end);
  }

  #takeOut(base: string, { writes }: Damage): Write[] {
    const ids = writes.flatMap(([command, , ...args]) => (command === 'ZADD' ? args.filter(isJunk) : []));
    if (ids.length === 0) return [];
    return [
      ...INDEXES.map((key): Write => ['ZREM', key, ...ids]),
      ...this.#groupsOf(base, ids),
      ['HDEL', 'jobs', ...ids],
      ['HDEL', 'attempts', ...ids],
      ['HDEL', 'errors', ...ids],
      ...this.#claimsOf(base, ids).map((claim): Write => ['ZREM', 'leases', claim]),
    ];
  }

  /** An operator may have requeued one: it is in a group then, behind the digits of its due time, and the group may have no other job. */
  #groupsOf(base: string, ids: readonly string[]): Write[] {
    const { oracle } = this.simulation;
    const flat = oracle.peek('ZRANGE', `${base}grouped`, '0', '-1', 'WITHSCORES') as string[];
    const entries = flat.flatMap((member, i) => (i % 2 === 0 ? [{ member, group: groupOf(flat[i + 1]!) }] : []));
    const ours = entries.filter(({ member }) => ids.includes(member.slice(7)));
    const others = new Set(entries.filter((entry) => !ours.includes(entry)).map(({ group }) => group));
    const empty = [...new Set(ours.map(({ group }) => group))].filter(
      (group) => !others.has(group) && oracle.peek('HEXISTS', `${base}rates`, group) === 0,
    );
    return [
      ...ours.map(({ member }): Write => ['ZREM', 'grouped', member]),
      ...empty.map((group): Write => ['ZREM', 'ring', group]),
    ];
  }

  /** The claims that hold nothing but `ids`. A worker may have claimed one of them, alone or beside sound jobs. */
  #claimsOf(base: string, ids: readonly string[]): string[] {
    const { oracle } = this.simulation;
    const scores = ids.map((id) => oracle.peek('ZSCORE', `${base}running`, id) as string | null);
    for (const score of scores) if (score !== null) this.#claims.add(score);
    return [NOBODYS, '1', '2', ...this.#claims].filter((claim) => {
      const ours = scores.filter((score) => score === claim).length;
      return Number(oracle.peek('ZCOUNT', `${base}running`, claim, claim)) === ours;
    });
  }

  #server(): Server {
    return this.simulation.nodes[0]!;
  }
}

export const DAMAGE_INJECTIONS: Readonly<Record<'damaged', Inject>> = {
  damaged({ simulation, fault, took, allTroubles }) {
    const { shardBases, server, configuration, damages, oracle } = simulation;
    const base = shardBases[Math.floor(fault.c * shardBases.length)]!;
    if (simulation.cluster || configuration.reshards.length > 0 || !server.isListening) return;
    if (damages.isIn(base) || oracle.peek('EXISTS', `${base}meta`) === 0) return;
    const all = damagesOf(`${JUNK}${fault.n}`);
    const damage = all[Math.floor(fault.b * all.length)]!;
    const ms = 500 + 3 * Math.min(configuration.leaseMs, 5_000) * (0.5 + fault.a);
    damages.do(base, damage, ms, took);
    allTroubles(ms + 5_000);
  },
};
