import { describe, expect, it } from '@jest/globals';
import type { ScheduleRow, SchedulesResponse } from '../../../lib/dashboard/api.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import type { Dashboard } from '../../helpers/dashboard.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve } = dashboardsIn(here);
const HOUR = 3_600_000;
let queues = 0;
const fresh = () => `recurring-${queues++}`;

async function schedulesOf({ get }: Dashboard, query: string): Promise<ScheduleRow[]> {
  const rows: ScheduleRow[] = [];
  let cursor: string | undefined;
  do {
    const { status, body } = await get(
      `api/schedules?${query}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
    );
    expect(status).toBe(200);
    rows.push(...(body as SchedulesResponse).schedules);
    cursor = body.cursor;
  } while (cursor !== undefined);
  return rows;
}

describe('schedules', () => {
  it('are shown with their next ten times, by the clock of their zone', async () => {
    const dashboard = await serve();
    const queue = fresh();
    const payload = { report: 7 };
    await dashboard.producer.schedule(queue, 'morning', { cron: '0 9 * * *', timeZone: 'Europe/Berlin' }, payload);
    await dashboard.producer.schedule(queue, 'thrice', { every: '1h' }, 1, { limit: 3 });
    const rows = await schedulesOf(dashboard, `queue=${queue}`);
    const [morning, thrice] = ['morning', 'thrice'].map((id) => rows.find((row) => row.id === id)!);
    expect(morning).toMatchObject({
      queue,
      cron: '0 9 * * *',
      timeZone: 'Europe/Berlin',
      owner: 'call',
      paused: false,
    });
    expect(morning!.payload).toEqual({ kind: 'json', text: '{"report":7}' });
    expect(morning!.next).toHaveLength(10);
    const berlin = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit' });
    expect(new Set(morning!.next.map((at) => berlin.format(at)))).toEqual(new Set(['09:00']));
    expect(new Set(morning!.next).size).toBe(10);
    expect(morning!.next).toEqual(morning!.next.toSorted((a, b) => a - b));
    expect(thrice!.everyMs).toBe(HOUR);
    expect(thrice!.next).toHaveLength(3);
    expect(thrice!.next[2]! - thrice!.next[0]!).toBe(2 * HOUR);
  });

  it('of all queues come page after page, each once, and a queue that cannot be read hides no other', async () => {
    const dashboard = await serve();
    const names = Array.from({ length: 30 }, () => fresh());
    for (const queue of names) {
      for (const id of ['a', 'b', 'c']) await dashboard.producer.schedule(queue, id, { every: '1d' }, 1);
    }
    const spoilt = names[11]!;
    const key = here.world.key(spoilt, 'meta');
    await here.world.redis.del(key);
    await here.world.redis.set(key, 'no hash');
    const rows = await schedulesOf(dashboard, '');
    const found = rows.filter(({ queue }) => names.includes(queue)).map(({ queue, id }) => `${queue} ${id}`);
    expect(found.toSorted()).toEqual(
      names
        .filter((queue) => queue !== spoilt)
        .flatMap((queue) => ['a', 'b', 'c'].map((id) => `${queue} ${id}`))
        .toSorted(),
    );
    expect((await dashboard.get('api/schedules?cursor=x')).problem.code).toBe('DASHBOARD_BAD_REQUEST');
  });

  it('have payloads that are hidden as those of jobs are', async () => {
    const options = { access: 'unprotected' as const, payloads: 'hide' as const };
    const dashboard = await serve({ options });
    const queue = fresh();
    await dashboard.producer.schedule(queue, 'a', { every: '1h' }, { secret: 'tiger' });
    const { text } = await dashboard.get(`api/schedules?queue=${queue}`);
    expect(text).not.toContain('tiger');
    const [row] = await schedulesOf(dashboard, `queue=${queue}`);
    expect(row!.payload).toEqual({ kind: 'hidden' });
  });

  it('are paused and resumed, and begin once more on demand; the job that is made says which schedule made it', async () => {
    const dashboard = await serve();
    const { act, get } = dashboard;
    const queue = fresh();
    await dashboard.producer.schedule(queue, 'a', { every: '1h' }, 1);
    const at = { queue, id: 'a' };
    expect((await act('schedules/pause', { ...at, dryRun: true })).body).toEqual({ id: 'a', paused: false });
    expect((await act('schedules/pause', at)).body).toEqual({ id: 'a', paused: true });
    expect(await schedulesOf(dashboard, `queue=${queue}`)).toMatchObject([{ paused: true, next: [] }]);
    expect((await act('schedules/resume', at)).body).toEqual({ id: 'a', paused: false });
    expect((await act('schedules/trigger', { ...at, dryRun: true })).body).toEqual({ id: 'a' });
    const { job } = (await act('schedules/trigger', at)).body;
    const shown = (await get(`api/job?queue=${queue}&id=${encodeURIComponent(job)}`)).body;
    expect(shown).toMatchObject({ id: job, state: 'due', schedule: { id: 'a', at: expect.any(Number) } });
    expect((await act('jobs/cancel', { queue, ids: [job] })).body.results).toMatchObject([{ outcome: 'cancelled' }]);
  });

  it('are run for a stretch of the past', async () => {
    const { act, producer, inspector } = await serve();
    const queue = fresh();
    await producer.schedule(queue, 'a', { cron: '0 * * * *', timeZone: 'UTC' }, 1);
    const now = await here.world.now();
    const stretch = { queue, id: 'a', from: now - 5 * HOUR, to: now - 1 };
    const { body } = await act('schedules/backfill', { ...stretch, dryRun: true });
    expect(body).toEqual({ id: 'a', made: 5 });
    expect((await inspector.counts(queue)).due).toBe(0);
    expect((await act('schedules/backfill', stretch)).body).toEqual(body);
    expect((await inspector.counts(queue)).due).toBe(body.made);
    const refused = await act('schedules/backfill', { ...stretch, from: now - 2_000 * HOUR });
    expect([refused.status, refused.problem.code]).toEqual([400, 'ERR_DQ_INVALID_OPTION']);
  });

  it('that do not exist are not found by any act', async () => {
    const { act } = await serve();
    for (const name of ['pause', 'resume', 'trigger', 'backfill']) {
      for (const dryRun of [true, false]) {
        const stretch = name === 'backfill' ? { from: 0, to: 1 } : {};
        const { status, problem } = await act(`schedules/${name}`, { queue: fresh(), id: 'none', dryRun, ...stretch });
        expect([name, dryRun, status, problem.code]).toEqual([name, dryRun, 404, 'DASHBOARD_NOT_FOUND']);
      }
    }
  });
});
