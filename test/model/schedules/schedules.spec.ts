import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { Tally } from '../tally.js';
import { sequence } from './commands.js';
import type { Sequence } from './commands.js';
import { SchedulePlay } from './play.js';
import { ScheduleSystem } from './system.js';

const IN_MEMORY = process.env['REDIS_URL'] === 'memory://';
/** In each run of all tests. `MODEL_RUNS` plays more. */
const FEW = IN_MEMORY ? 40 : 12;
const RUNS = Number(process.env['MODEL_RUNS'] ?? FEW);
const PLAYERS = 4;
const SHRINK_MS = Number(process.env['MODEL_SHRINK_MS'] ?? 30_000);
const seed = Number(process.env['MODEL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const tally = new Tally();
const systems: ScheduleSystem[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  for (let n = 0; n < Math.min(PLAYERS, RUNS); n++) systems.push(await ScheduleSystem.open());
}, 60_000);
afterAll(async () => {
  await Promise.all(systems.map((system) => system.close()));
  process.stderr.write(`\nschedules (MODEL_SEED=${seed}): ${tally.toString()}\n`);
}, 60_000);

describe(`any ${RUNS} sequences of what may be asked of schedules (MODEL_SEED=${seed})`, () => {
  it(
    'come to what the model says',
    async () => {
      const numRuns = Math.ceil(RUNS / systems.length);
      const played = systems.map((_, n) => play(n, seed + n, numRuns));
      const failures = (await Promise.all(played)).filter((failure) => failure !== undefined);
      if (failures.length > 0) throw new Error(`Replay with MODEL_SEED=${seed}.\n${failures.join('\n\n')}`);
      expect(tally.sequences).toBeGreaterThanOrEqual(RUNS);
    },
    Math.max(500_000, RUNS * 1_500),
  );
});

/** @returns what failed, in its smallest form */
async function play(player: number, seedOfPlayer: number, numRuns: number): Promise<string | undefined> {
  let failure: { at: number; log: string } | undefined;
  const property = fc.asyncProperty(sequence, async (drawn: Sequence) => {
    if (failure && performance.now() - failure.at > SHRINK_MS) return;
    const one = new SchedulePlay(systems[player]!, tally, failure ? 300 : 10_000);
    try {
      await one.run(drawn);
      await systems[player]!.end();
    } catch (error) {
      failure = { at: failure?.at ?? performance.now(), log: one.log.join('\n') };
      await one.letGo();
      await systems[player]!.end();
      throw error;
    }
  });
  const { failed, numRuns: ran, numShrinks, errorInstance } = await fc.check(property, { seed: seedOfPlayer, numRuns });
  if (!failed) return undefined;
  const said = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
  return `${said}\n\nSequence ${ran}, after ${numShrinks} shrinks:\n${failure?.log}`;
}
