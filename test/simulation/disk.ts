import type { MemoryStore } from '../../lib/memory/memory.store.js';

export type Persistence = 'always' | 'everysec' | 'no' | 'none';

/** One write, with the server's time at which it ran. */
export interface WriteRecord {
  readonly at: number;
  /** Simulated ms. */
  readonly time: number;
  /** Of all writes of all servers; undefined where there is one server. */
  readonly n: number | undefined;
  readonly name: string;
  readonly args: readonly string[];
  /** Of a script: its source is `name`. */
  readonly keys?: readonly string[];
}

interface Snapshot {
  readonly at: number;
  /** After how many writes. */
  readonly length: number;
  readonly keys: readonly (readonly [key: string, ttl: number, dump: string])[];
}

/** From so many records on, what is on disk becomes a snapshot. */
const LONGEST_LOG = 4_000;
/** After so many there is one beside the log, from which a state is made anew: the scripts of a whole log take as long as all else. */
const SNAPSHOT_EVERY = 128;
/** A large state is written down more seldom: after one more write for so many characters of it. */
const CHARACTERS_FOR_A_WRITE = 4_096;

/**
 * The append-only file of the server, and what its replica has of it. The state after a number of writes can be made anew: a restart
 * without the last second and a failover to a replica that lags behind are the same thing.
 */
export class Disk {
  /** How many writes are safe on disk. */
  synced = 0;
  /** What writes it down at once, every second or when the system likes; or nothing does. */
  persistence: Persistence = 'everysec';
  #log: WriteRecord[] = [];
  #base: Snapshot | undefined;
  #later: Snapshot[] = [];
  #baseLength = 0;
  #baseStamp = 0;
  #floor = 0;
  /** Of the last snapshot. */
  #characters = 0;

  /** All writes so far. */
  get length(): number {
    return this.#baseLength + this.#log.length;
  }

  /** The fewest writes that a restart can go back to. */
  get oldest(): number {
    return Math.max(this.#baseLength, this.#floor);
  }

  /** As many of these writes as can be gone back to. */
  within(length: number): number {
    return Math.min(Math.max(length, this.oldest), this.length);
  }

  /** From now on nothing is undone any more. */
  keepsAll(): void {
    this.#floor = this.length;
  }

  /** By which the rules know the last of so many writes. */
  stampOf(length: number): number {
    const last = this.#log[length - this.#baseLength - 1];
    return last ? (last.n ?? length) : this.#baseStamp;
  }

  append(record: WriteRecord): void {
    this.#log.push(record);
    if (this.persistence === 'always') this.synced = this.length;
  }

  /** How many writes there were at a time. @param time simulated ms */
  lengthAt(time: number): number {
    let length = this.#log.length;
    while (length > 0 && this.#log[length - 1]!.time > time) length--;
    return this.#baseLength + length;
  }

  /** What a server without an append-only file, and without snapshots, has after a restart. */
  get afterRestart(): number {
    return this.persistence === 'none' ? this.oldest : this.synced;
  }

  /** @param store holds the state after all writes */
  sync(store: MemoryStore, now: number): void {
    if (this.persistence !== 'none') this.synced = this.length;
    const since = this.length - (this.#later.at(-1)?.length ?? this.#baseLength);
    if (since < Math.max(SNAPSHOT_EVERY, this.#characters / CHARACTERS_FOR_A_WRITE)) return;
    const [, names] = store.command('SCAN', ['0', 'COUNT', '1000000']) as [string, string[]];
    const read = (command: string, key: string) => store.command(command, [key]);
    const keys = names.map((key) => [key, Number(read('PTTL', key)), read('DUMP', key) as string] as const);
    this.#characters = keys.reduce((sum, [, , dump]) => sum + dump.length, 0);
    const snapshot = { at: now, length: this.length, keys };
    if (this.#log.length < LONGEST_LOG) return void this.#later.push(snapshot);
    this.#base = snapshot;
    this.#later = [];
    this.#baseStamp = this.stampOf(this.length);
    this.#baseLength = this.length;
    this.#log = [];
  }

  copy(): Disk {
    const copy = new Disk();
    copy.#log = [...this.#log];
    copy.#base = this.#base;
    copy.#later = [...this.#later];
    copy.#baseLength = this.#baseLength;
    copy.#baseStamp = this.#baseStamp;
    copy.#floor = this.#floor;
    copy.#characters = this.#characters;
    copy.synced = this.synced;
    copy.persistence = this.persistence;
    return copy;
  }

  /** Forgets what came after so many writes, and writes the rest into an empty store. @param setTime of its clock */
  rewind(length: number, fresh: MemoryStore, setTime: (at: number) => void): void {
    this.#log.length = length - this.#baseLength;
    this.synced = length;
    while (this.#later.length > 0 && this.#later.at(-1)!.length > length) this.#later.pop();
    const base = this.#later.at(-1) ?? this.#base;
    if (base) {
      setTime(base.at);
      for (const [key, ttl, dump] of base.keys) fresh.command('RESTORE', [key, String(Math.max(0, ttl)), dump]);
    }
    for (const { at, name, keys, args } of this.#log.slice((base?.length ?? 0) - this.#baseLength)) {
      setTime(at);
      try {
        if (keys) fresh.script(name, keys, args);
        else fresh.command(name, args);
      } catch {
        // It failed the first time, too: the error was the client's.
      }
    }
  }
}
