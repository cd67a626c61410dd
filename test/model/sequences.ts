import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Command } from './commands.js';
import { groupedSequence, sequence, slowSequence } from './commands.js';
import { MemorySystem } from './memory-system.js';
import { Play } from './play.js';
import { RedisSystem } from './redis-system.js';
import type { System } from './system.js';
import { Tally } from './tally.js';
import { WANTED, WANTED_OF_GROUPS } from './wanted.js';

const FILES = 2;
/** Sequences that each file plays at a time, as most of a sequence is waiting for an answer. */
const PLAYERS = 4;
const PROCESSES = 2;
/** The jest project `memory` plays them on the store in memory. */
const IN_MEMORY = process.env['REDIS_URL'] === 'memory://';
/** What the contract says is decided on Redis; that the other store is like it takes fewer. */
const ALL = IN_MEMORY ? 400 : 1_000;
/** A slow sequence takes seconds. */
const SEQUENCE = process.env['MODEL_SLOW'] ? slowSequence : sequence;
const RUNS = Math.ceil(Number(process.env['MODEL_RUNS'] ?? ALL) / FILES);
/** Enough on a machine that does a lot besides. */
const limitMs = (runs: number) => Math.max(500_000, runs * 1_500);
/** From so many sequences on nothing that is wanted may be missing. */
const ENOUGH = 400;
/** After that the smallest counterexample so far has to do. */
const SHRINK_MS = Number(process.env['MODEL_SHRINK_MS'] ?? 30_000);

interface SequencesOptions {
  /** On queues that use limits, without having any, in memory: everything is as on queues that use none. */
  readonly limits?: boolean;
  /** With groups, priorities and limits, in so many sequences. */
  readonly grouped?: number;
}

/** For the top of a spec: one part of all sequences, so that the workers of jest share them. */
export function sequences(part: number, { limits = false, grouped }: SequencesOptions = {}): void {
  const plain = IN_MEMORY ? MemorySystem : RedisSystem;
  const open = (lossy: boolean) => (limits ? MemorySystem.openWithLimits(PROCESSES) : plain.open(PROCESSES, lossy));
  const seed = Number(process.env['MODEL_SEED'] ?? Date.now() % 1_000_000_000);
  const tally = new Tally();
  const runs = grouped === undefined ? RUNS : Math.ceil(Number(process.env['MODEL_RUNS'] ?? grouped));
  const isOnRedis = !limits && !IN_MEMORY;
  const players = Array.from(
    { length: Math.min(PLAYERS, runs) },
    () => new Player(tally, open, grouped !== undefined, isOnRedis),
  );

  beforeAll(() => Promise.all(players.map((player) => player.open())), 60_000);
  afterAll(async () => {
    await Promise.all(players.map((player) => player.close()));
    process.stderr.write(`\nmodel, part ${part}: ${tally.toString()}\n`);
  }, 60_000);

  describe(`any ${runs} sequences of commands (MODEL_SEED=${seed})`, () => {
    it(
      'are answered as the model says',
      async () => {
        const numRuns = Math.ceil(runs / players.length);
        const played = players.map((player, n) => player.play(seed + part * PLAYERS + n, numRuns));
        const failures = (await Promise.all(played)).filter((failure) => failure !== undefined);
        if (failures.length > 0) throw new Error(`Replay with MODEL_SEED=${seed}.\n${failures.join('\n\n')}`);
        if (runs < ENOUGH) return;
        expect(tally.missing(grouped === undefined ? WANTED : WANTED_OF_GROUPS)).toEqual([]);
        expect(tally.mean).toBeGreaterThanOrEqual(30);
      },
      limitMs(runs),
    );
  });
}

/** Plays one sequence after the other, on applications of its own. */
class Player {
  #sound: System | undefined;
  #lossy: System | undefined;

  constructor(
    private readonly tally: Tally,
    private readonly make: (lossy: boolean) => Promise<System>,
    private readonly grouped: boolean,
    /** A system that can lose answers costs more than one that cannot. */
    private readonly losesApart: boolean,
  ) {}

  async open(): Promise<void> {
    this.#sound = await this.make(false);
  }

  /** Each is an application of its own: the one that loses answers is made for the first sequence that asks for it. */
  async #systemFor(commands: readonly Command[]): Promise<System> {
    if (this.losesApart && commands.some(({ lose }) => lose)) return (this.#lossy ??= await this.make(true));
    return (this.#sound ??= await this.make(false));
  }

  async close(): Promise<void> {
    await Promise.all([this.#sound?.close(), this.#lossy?.close()]);
    this.#sound = this.#lossy = undefined;
  }

  /** @returns what failed, in its smallest form */
  async play(seed: number, numRuns: number): Promise<string | undefined> {
    let failure: { at: number; log: string } | undefined;
    const property = fc.asyncProperty(this.grouped ? groupedSequence : SEQUENCE, async (commands: Command[]) => {
      if (failure && performance.now() - failure.at > SHRINK_MS) return;
      const system = await this.#systemFor(commands);
      await system.begin();
      const play = new Play(system, this.tally, failure ? 300 : 20_000, this.grouped);
      try {
        await play.run(commands);
        await system.end();
      } catch (error) {
        failure = { at: failure?.at ?? performance.now(), log: play.log.join('\n') };
        await play.letGo();
        await this.close();
        throw error;
      }
    });
    const result = await fc.check(property, { seed, numRuns });
    return result.failed ? reportOf(result, failure?.log) : undefined;
  }
}

function reportOf(result: fc.RunDetails<[Command[]]>, log: string | undefined): string {
  const { numRuns, numShrinks, errorInstance } = result;
  const message =
    errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
  return `${message}\n\nSequence ${numRuns}, after ${numShrinks} shrinks:\n${log}`;
}
