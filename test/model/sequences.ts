import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Command } from './commands.js';
import { sequence } from './commands.js';
import { Play } from './play.js';
import { RedisSystem } from './redis-system.js';
import type { System } from './system.js';
import { Tally } from './tally.js';
import { WANTED } from './wanted.js';

const FILES = 4;
const RUNS = Math.ceil(Number(process.env['MODEL_RUNS'] ?? 2_000) / FILES);
const PROCESSES = 2;
/** From so many sequences on nothing that is wanted may be missing. */
const ENOUGH = 400;
/** After that the smallest counterexample so far has to do. */
const SHRINK_MS = Number(process.env['MODEL_SHRINK_MS'] ?? 30_000);

/** For the top of a spec: one part of all sequences, so that the workers of jest share them. */
export function sequences(part: number): void {
  const seed = Number(process.env['MODEL_SEED'] ?? Date.now() % 1_000_000_000) + part;
  const tally = new Tally();
  let sound: System;
  let lossy: System;
  const open = async () => {
    [sound, lossy] = await Promise.all([RedisSystem.open(PROCESSES), RedisSystem.open(PROCESSES, { lossy: true })]);
  };
  const close = () => Promise.all([sound.close(), lossy.close()]);

  beforeAll(open, 60_000);
  afterAll(async () => {
    await close();
    process.stderr.write(`\nmodel, part ${part}: ${tally.toString()}\n`);
  }, 60_000);

  describe(`any ${RUNS} sequences of commands (MODEL_SEED=${seed - part})`, () => {
    it('are answered as the model says', async () => {
      let failure: { at: number; log: string } | undefined;
      const property = fc.asyncProperty(sequence, async (commands: Command[]) => {
        if (failure && performance.now() - failure.at > SHRINK_MS) return;
        const system = commands.some(({ lose }) => lose) ? lossy : sound;
        await system.begin();
        const play = new Play(system, tally, failure ? 300 : 5_000);
        try {
          await play.run(commands);
          await system.end();
        } catch (error) {
          failure = { at: failure?.at ?? performance.now(), log: play.log.join('\n') };
          await play.letGo();
          await close();
          await open();
          throw error;
        }
      });
      const result = await fc.check(property, { seed, numRuns: RUNS });
      if (result.failed) throw new Error(reportOf(result, seed - part, failure?.log));
      if (RUNS < ENOUGH) return;
      expect(tally.missing(WANTED)).toEqual([]);
      expect(tally.mean).toBeGreaterThanOrEqual(30);
    }, 500_000);
  });
}

function reportOf(result: fc.RunDetails<[Command[]]>, seed: number, log: string | undefined): string {
  const { numRuns, numShrinks, errorInstance } = result;
  const found = `sequence ${numRuns}, after ${numShrinks} shrinks`;
  const message =
    errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
  return `${message}\n\nReplay it with MODEL_SEED=${seed} (${found}):\n${log}`;
}
