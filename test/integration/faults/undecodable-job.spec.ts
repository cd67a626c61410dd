import { describe, expect, it } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const SECRET = 'card-4111-1111';

/** What can happen to a stored job whose envelope was `text`. */
const BROKEN: Record<string, (text: string) => string> = {
  'payload cut off': (text) => text.slice(0, -3),
  'payload that is no JSON': (text) => text.replace(/\n.*/s, `\n${SECRET}`),
  'no payload': (text) => text.slice(0, 24),
  'header that is no JSON': (text) => text.replace('\n', `{"a":${SECRET}\n`),
  'times that are none': (text) => `1-${'~'.repeat(14)}${text.slice(16)}`,
  'foreign text': () => `hello ${SECRET}`,
  nothing: () => '',
};

describe('A job that cannot be decoded', () => {
  it('becomes a dead letter with its raw record, and its neighbours run', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const healthy = await producer.enqueueMany(
      'mail',
      Array.from({ length: 40 }, (_, n) => ({ payload: n })),
    );
    const at = healthy[20]!.dueAt;
    const stored: Record<string, string> = {};
    for (const [id, spoil] of Object.entries(BROKEN)) {
      await producer.enqueue('mail', { card: SECRET }, { id, at });
      const jobs = here.world.key('mail', 'jobs');
      stored[id] = spoil((await here.world.redis.hget(jobs, id))!);
      await here.world.redis.hset(jobs, id, stored[id]);
    }
    await here.world.redis.zadd(here.world.key('mail', 'due'), at.getTime(), 'index without a record');

    const runs: string[] = [];
    const log: string[] = [];
    const handle = (_: unknown, { id }: DelayedJob) => void runs.push(id);
    await here.start({ providers: [handlerClass('mail', handle, { attempts: 5 })], log });
    const dead = Object.keys(BROKEN).length + 1;
    await eventually(async () => expect(await inspector.totals('mail')).toMatchObject({ completed: 40, dead }));

    expect(runs.sort()).toEqual(healthy.map(({ id }) => id).sort());
    const { jobs } = await inspector.list('mail', 'dead');
    expect(new Set(jobs.map(({ id }) => id))).toEqual(new Set([...Object.keys(BROKEN), 'index without a record']));
    for (const { deadReason, attempts, lastError } of jobs) {
      expect({ deadReason, attempts }).toEqual({ deadReason: 'undecodable', attempts: 0 });
      expect(lastError?.message).toEqual(expect.stringMatching(/\w/));
    }
    expect((await here.world.read('mail')).jobs).toEqual(stored);
    expect(await here.world.violations('mail')).toEqual([]);

    expect(log.filter((line) => /^error .*cannot be decoded/.test(line))).toHaveLength(dead - 1);
    expect(log.join('\n')).not.toContain('4111');
  });
});
