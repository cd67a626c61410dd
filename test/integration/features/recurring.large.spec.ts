import { expect, it } from '@jest/globals';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { monitoring } from '../../helpers/monitoring.js';
import { idsByShard } from '../../helpers/sharded-groups.js';

// Of its own: all that it is asked is looked at.
const here = inAWorld({});
const PAYLOAD = 'x'.repeat(250 * 1024);

it('a change of a schedule whose occurrences have 15 MB is made in parts, and what was cancelled does not come back', async () => {
  const { producer } = await here.start({ options: { consume: false } });
  const queue = 'large';
  const times = { cron: '* * * * * *' };
  const ahead = async () => {
    const now = await here.world.now();
    const ids = (await idsByShard(here.world, queue, 1))[0]!;
    return ids.map((id) => parseOccurrenceId(id)!.at).filter((at) => at > now + 15_000);
  };
  await producer.schedule(queue, 's', times, PAYLOAD);
  const before = await ahead();
  expect(before.length).toBeGreaterThan(30);
  const [cancelled] = (await idsByShard(here.world, queue, 1))[0]!.slice(-1);
  expect(await producer.cancel(queue, cancelled!)).toMatchObject({ outcome: 'cancelled' });
  const changed = `${PAYLOAD}y`;
  const monitor = await monitoring(here.world.redis);
  const sizes: number[] = [];
  monitor.on('monitor', (_: string, args: string[]) => sizes.push(args.reduce((sum, { length }) => sum + length, 0)));
  const isHeard = async () => {
    const mark = `mark-${Math.random()}`;
    const heard = new Promise<void>((resolve) => {
      monitor.on('monitor', (_: string, args: string[]) => args.includes(mark) && resolve());
    });
    await here.world.redis.echo(mark);
    await heard;
  };
  expect(await producer.schedule(queue, 's', times, changed)).toMatchObject({ outcome: 'replaced' });
  await isHeard();
  monitor.disconnect();
  // A megabyte of occurrences, and the record as it was read and as it follows.
  expect(Math.max(...sizes)).toBeGreaterThan(750_000);
  expect(Math.max(...sizes)).toBeLessThan(2_000_000);
  const after = await ahead();
  const gone = parseOccurrenceId(cancelled!)!.at;
  expect(after).not.toContain(gone);
  expect(after).toEqual(expect.arrayContaining(before.filter((at) => at !== gone && at > Date.now() + 30_000)));
  const last = (await idsByShard(here.world, queue, 1))[0]!.at(-1)!;
  expect(await producer.get(queue, last)).toMatchObject({ payload: changed });
});
