import { describe, expect, it, jest } from '@jest/globals';
import type { StateResponse } from '../../../lib/dashboard/api.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import type { AdapterName } from '../../helpers/dashboard.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({});
const { serve } = dashboardsIn(here);
const ADAPTERS: AdapterName[] = ['Express', 'Fastify'];

/** Calls of scripts that the server has executed. */
async function calls(): Promise<number> {
  const info = await here.world.redis.info('commandstats');
  const of = (name: string) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return of('evalsha') + of('eval') + of('smembers');
}

describe.each(ADAPTERS)('on %s, the state', (adapter) => {
  it('is read from Redis once a second, however many tabs there are', async () => {
    const { get, producer } = await serve({ adapter });
    await producer.enqueue('tabs', 1, { delay: '1h' });
    const before = await calls();
    const answers = await Promise.all(Array.from({ length: 50 }, () => get('api/state')));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(answers.map(({ headers }) => headers['etag'])).size).toBe(1);
    // Names, counts and timeline of each queue: of two readings at most, where the first was over a second ago.
    const names = (await here.world.redis.smembers(`${here.world.prefix}:queues`)).length;
    expect((await calls()) - before).toBeLessThanOrEqual(2 * (1 + 2 * names) + 1);
  });
});

describe('the clock of a page', () => {
  it('is that of Redis, also where the process that serves it goes wrong by an hour', async () => {
    const { get, producer } = await serve();
    await producer.enqueue('clocks', 1, { delay: '1h' });
    const [real, hour] = [Date.now, 3_600_000];
    const wrong = jest.spyOn(Date, 'now').mockImplementation(() => real() + hour);
    const [{ body: state }, { body: timeline }] = [await get('api/state'), await get('api/timeline?queue=clocks')];
    wrong.mockRestore();
    expect(Math.abs(state.now - timeline.now)).toBeLessThan(5_000);
  });
});

describe('while Redis is away', () => {
  it('the state is what was known, and says so and since when; all else says that it cannot be read', async () => {
    const { get, act, producer, ask } = await serve({ root: { commandTimeout: '500ms' } });
    await producer.enqueue('known', 1, { id: 'A', delay: '1h' });
    const before = (await get('api/state')).body as StateResponse;
    expect(before.redis).toEqual({ up: true });
    await here.server.kill();
    const away = await eventually(async () => {
      const { body } = await get('api/state');
      expect((body as StateResponse).redis.up).toBe(false);
      return body as StateResponse;
    });
    expect(away.redis).toMatchObject({ problem: expect.stringContaining('Redis at') });
    expect(away.queues.find(({ queue }) => queue === 'known')).toMatchObject({ delayed: 1 });
    expect([before.ageMs, before.now]).toEqual([0, expect.any(Number)]);
    expect(away.ageMs).toBeGreaterThan(0);
    expect(away).not.toHaveProperty('now');
    expect((await ask('')).status).toBe(200);
    expect((await get('api/me')).status).toBe(200);
    for (const path of [
      'api/jobs?queue=known&state=delayed',
      'api/job?queue=known&id=A',
      'api/timeline?queue=known',
      'api/timeline',
      'api/dead-groups?queue=known',
      'api/lateness?queue=known',
      'api/processes',
      'api/server',
      'api/find?id=A',
    ]) {
      const { status, problem } = await get(path);
      expect([path, status, problem.code, problem.retryable]).toEqual([path, 503, 'ERR_DQ_UNAVAILABLE', true]);
    }
    const refused = await act('jobs/cancel', { queue: 'known', ids: ['A'] });
    expect([refused.status, refused.problem.code]).toEqual([503, 'ERR_DQ_UNAVAILABLE']);
    await here.server.restart();
    await eventually(async () => expect((await get('api/state')).body.redis).toEqual({ up: true }));
  });
});
