import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { ShiftedRedis, whyNoShiftedClock } from '../../helpers/shifted-redis.js';
import { World } from '../../helpers/world.js';

const why = whyNoShiftedClock();
const MINUTE = 60_000;
let redis: ShiftedRedis;
let world: World;
beforeAll(async () => {
  if (why) return void process.stderr.write(`The log of an outage is not tested: ${why}.\n`);
  redis = await ShiftedRedis.start();
  world = await World.open(redis.url);
});
afterAll(async () => {
  await world?.close();
  await redis?.stop();
});

/** How many occurrences a line tells of. */
function toldIn(line: string): number {
  const [, many] = /: (\d+) occurrences from \S+Z to \S+Z were missed\./.exec(line) ?? [];
  return many ? Number(many) : /: the occurrence of \S+Z was missed\./.test(line) ? 1 : 0;
}

it('what was stored ahead before an outage, and is missed, is told in few lines that count it, all of it when the process stops', async () => {
  if (why) return;
  const queue = 'outage';
  const away = await createApp(world, { options: { consume: false } });
  await away.producer.schedule(queue, 'second', { every: '1s' }, null);
  const { delayed } = await away.inspector.counts(queue);
  expect(delayed).toBeGreaterThan(50);
  redis.shift(5 * MINUTE);
  const log: string[] = [];
  const worker = await createApp(world, { providers: [handlerClass(queue, () => undefined, { concurrency: 1 })], log });
  const missed = async () => (await away.producer.listSchedules(queue)).schedules[0]!.counts.missed;
  // What the ticker has missed, and what was stored.
  await eventually(async () => expect(await missed()).toBeGreaterThan(290));
  await worker.close();
  const lines = log.filter((line) => toldIn(line) > 0);
  expect(lines.reduce((sum, line) => sum + toldIn(line), 0)).toBe(await missed());
  expect(lines.length).toBeLessThan(15);
  await away.close();
});
