import { afterEach, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld({ appendfsync: 'always' });
const setting = (name: string, value: string) => here.world.redis.config('SET', name, value);

afterEach(async () => {
  await setting('maxmemory', '0');
  await setting('maxmemory-policy', 'noeviction');
});

it('memory that runs out is degraded', async () => {
  const used = Number(/used_memory:(\d+)/.exec(await here.world.redis.info('memory'))![1]);
  await setting('maxmemory', String(used * 2));
  const { app } = await here.start();
  const health = app.get(DelayQueueHealth);
  expect(await health.check()).toMatchObject({ status: 'up', redis: { memory: expect.any(Number) } });
  const low = await health.check({ memory: { degraded: 0.3 } });
  expect(low).toMatchObject({ status: 'degraded', redis: { status: 'up' } });
  expect(low.reasons).toEqual([expect.stringMatching(/^Redis uses \d+ % of its maxmemory\.$/)]);

  await setting('maxmemory', String(Math.round(used * 1.15)));
  const { app: later } = await here.start();
  expect((await later.get(DelayQueueHealth).check()).status).toBe('degraded');
});

it.each([
  ['allkeys-lru', 'which deletes jobs'],
  ['volatile-ttl', 'which deletes keys with a TTL'],
])('a policy that evicts is down, also when it came after boot: %s', async (policy, why) => {
  const { app } = await here.start();
  await setting('maxmemory-policy', policy);
  expect(await app.get(DelayQueueHealth).check()).toMatchObject({
    status: 'down',
    reasons: [expect.stringContaining(`maxmemory-policy ${policy}, ${why}`)],
    redis: { status: 'up', evictionPolicy: policy },
  });
});

it('a Redis that is gone is down, and up again when it is back', async () => {
  const { app } = await here.start({ providers: [handlerClass('gone', () => undefined)] });
  const health = app.get(DelayQueueHealth);
  const before = await health.check();
  expect(before).toMatchObject({ status: 'up', queues: { gone: { status: 'up', due: 0, paused: false, lagMs: 0 } } });
  await here.server.kill();
  await eventually(async () => {
    expect(await health.check()).toMatchObject({
      status: 'down',
      reasons: [expect.stringContaining(`Redis at 127.0.0.1:${here.server.port} is not reachable`)],
      redis: { status: 'down' },
    });
  });
  // What nobody knows does not look like 0: no number of jobs, and no orphans.
  const { reasons: _reasons, ...rest } = await health.check();
  expect(rest).toEqual({
    status: 'down',
    redis: { status: 'down' },
    queues: { gone: { status: 'down', zombies: 0, lastClaimMs: expect.any(Number) } },
  });
  await here.server.restart();
  await eventually(async () => expect((await health.check()).status).toBe('up'), 10_000);
  expect(await health.check()).toMatchObject({ queues: { gone: { status: 'up', due: 0 } }, orphans: [] });
});

it('a Redis that is frozen is down within seconds, and nothing is thrown', async () => {
  const { app } = await here.start();
  const health = app.get(DelayQueueHealth);
  await here.server.kill('SIGSTOP');
  let longest = 0;
  try {
    await eventually(async () => {
      const waited = waiting();
      const result = await health.check();
      longest = Math.max(longest, waited());
      expect(result).toMatchObject({ status: 'down', redis: { status: 'down' } });
    }, 10_000);
  } finally {
    await here.server.kill('SIGCONT');
  }
  expect(longest).toBeLessThan(4_500);
});
