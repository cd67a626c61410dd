import { describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DASHBOARD_ACT_CHANNEL } from '../../../lib/dashboard/index.js';
import type { DashboardActMessage, DelayQueueDashboardRootOptions } from '../../../lib/dashboard/index.js';
import { ACTS, READS } from '../../../lib/dashboard/routes.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import { FROM_THE_PAGE } from '../../helpers/dashboard.js';
import type { AdapterName, Answered, Asked, Dashboard } from '../../helpers/dashboard.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve } = dashboardsIn(here);
const ADAPTERS: AdapterName[] = ['Express', 'Fastify'];
let queues = 0;
const fresh = () => `guarded-${queues++}`;
const JSON_TYPE = { 'content-type': 'application/json' };

/** One delayed job, and a dashboard. */
async function withJob(adapter: AdapterName, options: DelayQueueDashboardRootOptions = { access: 'unprotected' }) {
  const dashboard = await serve({ adapter, options });
  const queue = fresh();
  await dashboard.producer.enqueue(queue, { secret: 'tiger' }, { id: 'A', delay: '1h' });
  const isThere = async () => (await dashboard.producer.get(queue, 'A')) !== undefined;
  return { ...dashboard, queue, isThere };
}

const cancelling = (queue: string, headers: Asked['headers']): Asked => ({
  method: 'POST',
  headers,
  body: JSON.stringify({ queue, ids: ['A'] }),
});

const codeOf = ({ status, problem }: Answered) => [status, problem?.code];

describe.each(ADAPTERS)('on %s, an act', (adapter) => {
  it.each([
    ['from another site', { ...JSON_TYPE, 'sec-fetch-site': 'cross-site' }, 403, 'DASHBOARD_CROSS_SITE'],
    ['from another host of the site', { ...JSON_TYPE, 'sec-fetch-site': 'same-site' }, 403, 'DASHBOARD_CROSS_SITE'],
    ['typed into the browser', { ...JSON_TYPE, 'sec-fetch-site': 'none' }, 403, 'DASHBOARD_CROSS_SITE'],
    [
      'from another site, with an Origin that it cannot have',
      { ...JSON_TYPE, 'sec-fetch-site': 'cross-site', origin: 'HOST' },
      403,
      'DASHBOARD_CROSS_SITE',
    ],
    ['from nowhere', JSON_TYPE, 403, 'DASHBOARD_CROSS_SITE'],
    ['with the Origin of another host', { ...JSON_TYPE, origin: 'http://evil.example' }, 403, 'DASHBOARD_CROSS_SITE'],
    ['with the Origin of another port', { ...JSON_TYPE, origin: 'http://127.0.0.1:1' }, 403, 'DASHBOARD_CROSS_SITE'],
    [
      'with an Origin that begins alike',
      { ...JSON_TYPE, host: 'jobs.example', origin: 'http://jobs.example.evil.org' },
      403,
      'DASHBOARD_CROSS_SITE',
    ],
    ['of a sandboxed frame', { ...JSON_TYPE, origin: 'null' }, 403, 'DASHBOARD_CROSS_SITE'],
    ['with an Origin that is none', { ...JSON_TYPE, origin: ':' }, 403, 'DASHBOARD_CROSS_SITE'],
    [
      'as a form',
      { ...FROM_THE_PAGE, 'content-type': 'application/x-www-form-urlencoded' },
      415,
      'DASHBOARD_MEDIA_TYPE',
    ],
    ['as text, which is sent unasked', { ...FROM_THE_PAGE, 'content-type': 'text/plain' }, 415, 'DASHBOARD_MEDIA_TYPE'],
  ])('%s is refused, and nothing is done', async (_, headers, status, code) => {
    const { ask, queue, isThere, port } = await withJob(adapter);
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('HOST', `http://127.0.0.1:${port}`)]),
    );
    expect(codeOf(await ask('/api/jobs/cancel', cancelling(queue, given)))).toEqual([status, code]);
    expect(await isThere()).toBe(true);
  });

  it('without a content type is refused, and nothing is done', async () => {
    const { ask, queue, isThere } = await withJob(adapter);
    const answered = await ask('/api/jobs/cancel', cancelling(queue, { 'sec-fetch-site': 'same-origin' }));
    expect(answered.status).toBe(415);
    expect(await isThere()).toBe(true);
  });

  it('of the page is taken, by Sec-Fetch-Site or by an Origin of the same host', async () => {
    const one = await withJob(adapter);
    expect((await one.ask('/api/jobs/cancel', cancelling(one.queue, FROM_THE_PAGE))).status).toBe(200);
    expect(await one.isThere()).toBe(false);
    const other = await withJob(adapter);
    const headers = { ...JSON_TYPE, origin: `http://127.0.0.1:${other.port}` };
    expect((await other.ask('/api/jobs/cancel', cancelling(other.queue, headers))).status).toBe(200);
    expect(await other.isThere()).toBe(false);
    // Some clients name the port that goes without saying.
    const named = { ...JSON_TYPE, host: 'jobs.example:80', origin: 'http://jobs.example' };
    expect((await other.ask('/api/jobs/cancel', cancelling(other.queue, named))).status).toBe(200);
  });

  it('by GET does nothing, whatever it looks like', async () => {
    const { ask, queue, isThere } = await withJob(adapter);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const sent = method === 'GET' || method === 'HEAD' ? {} : { headers: FROM_THE_PAGE, body: '{}' };
      const answered = await ask(`/api/jobs/cancel?queue=${queue}&ids=A`, { method, ...sent });
      expect([method, answered.status, answered.headers['allow']]).toEqual([method, 405, 'POST']);
    }
    expect(await isThere()).toBe(true);
  });

  it('of a user who may only read is refused on the server, each of them, also when it only asks', async () => {
    const { act, queue, isThere } = await withJob(adapter, { access: () => 'read' });
    for (const name of ACTS.keys()) {
      for (const dryRun of [false, true]) {
        const answered = await act(name, { queue, ids: ['A'], dryRun });
        expect([name, ...codeOf(answered)]).toEqual([name, 403, 'DASHBOARD_FORBIDDEN']);
      }
    }
    expect(await isThere()).toBe(true);
  });
});

describe.each(ADAPTERS)('on %s, access', (adapter) => {
  it('none sees nothing: not the page, not a file, not a read', async () => {
    const { ask, act, queue } = await withJob(adapter, { access: () => ({ user: 'eve', level: 'none' }) });
    const reads = [...READS.keys(), 'me', 'state'].map((name) => `/api/${name}?queue=${queue}&id=A&state=delayed`);
    for (const path of ['', '/', '/assets/index-1a2b.js', '/nothing', ...reads]) {
      const answered = await ask(path);
      expect([path, ...codeOf(answered)]).toEqual([path, 403, 'DASHBOARD_FORBIDDEN']);
      expect(answered.text).not.toContain('tiger');
    }
    expect((await act('jobs/cancel', { queue, ids: ['A'] })).status).toBe(403);
  });

  it('is asked for each request anew', async () => {
    let level: 'write' | 'read' | 'none' = 'write';
    const { ask, act, queue } = await withJob(adapter, { access: () => level });
    expect((await act('queue/pause', { queue })).status).toBe(200);
    level = 'read';
    expect((await act('queue/resume', { queue })).status).toBe(403);
    expect((await ask('/api/me')).body).toMatchObject({ level: 'read' });
    level = 'none';
    expect((await ask('/api/me')).status).toBe(403);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('tiger');
      },
    ],
    ['rejects', () => Promise.reject(new Error('tiger'))],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
    ],
    ['answers nothing', () => undefined],
    ['answers true', () => true],
    ['answers another word', () => 'admin'],
    [
      'answers a level in a class',
      () =>
        new (class {
          level = 'write';
        })(),
    ],
    ['names a user that is no text', () => ({ user: 7, level: 'write' })],
    [
      'answers an object that throws',
      () =>
        Object.defineProperty({}, 'level', {
          enumerable: true,
          get: () => {
            throw new Error('tiger');
          },
        }),
    ],
  ])('that %s lets nobody in, and the application goes on', async (_, access) => {
    const log: string[] = [];
    const { ask, act } = await serve({ adapter, options: { access: access as never }, log });
    for (const answered of [await ask('/api/me'), await ask(''), await act('queue/pause', { queue: fresh() })]) {
      expect(codeOf(answered)).toEqual([500, 'DASHBOARD_ACCESS_FAILED']);
      expect(answered.text).not.toContain('tiger');
    }
    // Each request failed; a page asks every two seconds.
    expect(log.filter((line) => line.includes('access() of DelayQueueDashboardModule failed'))).toHaveLength(1);
  });
});

describe.each(ADAPTERS)('on %s, headers', (adapter) => {
  const POLICY =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

  it('forbid the browser what the page does not need, on every answer', async () => {
    const { ask, act, queue } = await withJob(adapter);
    const answers = [
      ...(await Promise.all(
        ['', '/assets/index-1a2b.js', '/api/state', '/api/nothing', '/nothing'].map((path) => ask(path)),
      )),
      await act('jobs/cancel', { queue, ids: ['none'] }),
      await act('jobs/cancel', { queue }),
    ];
    for (const { headers } of answers) {
      expect(headers['content-security-policy']).toBe(POLICY);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
    }
  });

  it('keep every answer of the API out of caches', async () => {
    const { ask, act, queue } = await withJob(adapter);
    const tag = (await ask('/api/state')).headers['etag']!;
    const answers = [
      await ask('/api/state'),
      await ask('/api/state', { headers: { 'if-none-match': tag } }),
      await ask(`/api/job?queue=${queue}&id=A`),
      await ask('/api/nothing'),
      await act('queue/pause', { queue }),
    ];
    expect(answers.map(({ headers }) => headers['cache-control'])).toEqual(answers.map(() => 'no-store'));
  });
});

describe.each(ADAPTERS)('on %s, requests that no page makes', (adapter) => {
  it.each([
    '/../package.json',
    '/assets/../assets.json',
    '/..%2f..%2fpackage.json',
    '/%00',
    '/assets/index-1a2b.js%00.css',
    '/assets.json',
    '/api/',
    '/api',
    '/api/jobs/',
    '/api/state/',
    '/api/toString',
    '/__proto__',
    '/api/__proto__',
    '/a/b/c/d/e/f',
    '//api/me',
    '/./api/me',
    '/API/me',
    '/api%2fme',
  ])('find nothing at %s', async (path) => {
    const { ask } = await serve({ adapter });
    const { status, text } = await ask(path);
    expect([path, status]).toEqual([path, 404]);
    expect(text).not.toContain('nestjs-delay-queue/');
  });

  it('of a wrong encoding are refused by the application', async () => {
    const { ask } = await serve({ adapter });
    expect((await ask('/%zz')).status).toBe(400);
  });

  it('by HEAD are answered as by GET, without a body', async () => {
    const { ask } = await serve({ adapter });
    for (const path of ['', '/assets/index-1a2b.js', '/api/me']) {
      const [head, get] = [await ask(path, { method: 'HEAD' }), await ask(path)];
      expect([path, head.status, head.text]).toEqual([path, 200, '']);
      expect(head.headers['content-length']).toBe(get.headers['content-length']);
      expect(head.headers['content-type']).toBe(get.headers['content-type']);
    }
    expect((await ask('/nothing', { method: 'HEAD' })).status).toBe(404);
  });

  it('by other methods are told which there are', async () => {
    const { ask } = await serve({ adapter });
    for (const path of ['', '/api/state', '/assets/index-1a2b.js']) {
      const answered = await ask(path, { method: 'POST', headers: FROM_THE_PAGE, body: '{}' });
      expect([path, ...codeOf(answered), answered.headers['allow']]).toEqual([path, 405, 'DASHBOARD_METHOD', 'GET']);
    }
  });

  it('with 10 MB are refused, whoever reads them, and the application goes on', async () => {
    const body = JSON.stringify({ queue: 'q', ids: ['x'.repeat(10 * 1024 * 1024)] });
    const parsing = await serve({ adapter });
    const asked = { method: 'POST', headers: FROM_THE_PAGE, body };
    expect((await parsing.ask('/api/jobs/cancel', asked)).status).toBe(413);
    expect((await parsing.ask('/api/me')).status).toBe(200);
    if (adapter === 'Fastify') return;
    const streaming = await serve({ adapter, withoutParser: true });
    expect(codeOf(await streaming.ask('/api/jobs/cancel', asked))).toEqual([413, 'DASHBOARD_TOO_LARGE']);
    expect((await streaming.ask('/api/me')).status).toBe(200);
  });

  it.each([
    '',
    '[]',
    'null',
    '"a"',
    '1',
    '{',
    '{"queue":1}',
    '{"queue":"{q}"}',
    '{"queue":"q","ids":"A"}',
    '{"queue":"q","ids":[1]}',
    '{"queue":"q","ids":[""]}',
    '{"queue":"q"}',
    '{"queue":"q","ids":["A"],"range":{"from":0}}',
    '{"queue":"q","range":{}}',
    '{"queue":"q","range":{"form":1}}',
    '{"queue":"q","range":[]}',
    '{"queue":"q","ids":["A"],"dryrun":true}',
    '{"queue":"q","ids":["A"],"dryRun":"yes"}',
    '{"queue":"q","ids":["A"],"cursor":"x"}',
    '{"queue":"q","ids":["A"],"__proto__":{"running":true}}',
  ])('with the body %s are refused', async (body) => {
    const { ask, producer } = await serve({ adapter });
    await producer.enqueue('q', 1, { id: 'there', delay: '1h' });
    const answered = await ask('/api/jobs/cancel', { method: 'POST', headers: FROM_THE_PAGE, body });
    expect([body, answered.status]).toEqual([body, 400]);
    expect(answered.text).not.toMatch(/\.ts\b|\.js\b|node_modules/);
  });

  it('name what is wrong with them', async () => {
    const { act, get, producer } = await serve({ adapter });
    await producer.enqueue('q', 1, { id: 'there', delay: '1h' });
    const detailOf = (answered: Answered) => [answered.status, answered.problem.code, answered.problem.detail];
    expect(
      detailOf(
        await act('jobs/cancel', {
          queue: 'q',
          ids: Array(1_001)
            .fill('A')
            .map((id, n) => id + n),
        }),
      ),
    ).toEqual([400, 'ERR_DQ_INVALID_OPTION', expect.stringContaining('1001 ids')]);
    expect(detailOf(await act('jobs/cancel', { ids: ['A'] }))).toEqual([
      400,
      'DASHBOARD_BAD_REQUEST',
      expect.stringContaining('`queue`'),
    ]);
    expect(detailOf(await act('jobs/cancel', { queue: 'q', ids: ['A'], instance: 'eu' }))).toEqual([
      404,
      'ERR_DQ_UNKNOWN_INSTANCE',
      expect.stringContaining('"eu"'),
    ]);
    expect(detailOf(await get('api/jobs?queue=q&state=gone'))).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('state'),
    ]);
    expect(detailOf(await get('api/jobs?queue=q&state=due&limit=9999'))).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('limit'),
    ]);
    expect(detailOf(await get('api/jobs?queue=q&state=due&limit=many'))).toEqual([
      400,
      'DASHBOARD_BAD_REQUEST',
      expect.stringContaining('`limit`'),
    ]);
    expect(detailOf(await get('api/timeline?queue=q&buckets=100000'))).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('buckets'),
    ]);
    expect(detailOf(await get('api/state?quue=q'))).toEqual([
      400,
      'DASHBOARD_BAD_REQUEST',
      expect.stringContaining('`quue`'),
    ]);
  });
});

describe('what is private', () => {
  const hidden = (dashboard: Dashboard, queue: string) =>
    Promise.all([
      dashboard.get(`api/jobs?queue=${queue}&state=delayed`),
      dashboard.get(`api/job?queue=${queue}&id=A`),
      dashboard.get('api/find?id=A'),
    ]);

  it('payloads that are hidden leave the server in no answer, nor does the context', async () => {
    const dashboard = await serve({ options: { access: 'unprotected', payloads: 'hide' } });
    const queue = fresh();
    await dashboard.producer.enqueue(queue, { secret: 'tiger' }, { id: 'A', delay: '1h', context: { user: 'tiger' } });
    for (const { status, text } of await hidden(dashboard, queue)) {
      expect(status).toBe(200);
      expect(text).not.toContain('tiger');
      expect(text).not.toContain('preview');
    }
    const { body } = await dashboard.get(`api/job?queue=${queue}&id=A`);
    expect(body.payload).toEqual({ kind: 'hidden' });
    expect((await dashboard.get('api/me')).body.payloads).toBe('hide');
  });

  it('payloads are what the function of the application makes of them, also in lists', async () => {
    const seen: unknown[] = [];
    const payloads = async (payload: any, job: object) => {
      seen.push(job);
      return { ...payload, secret: '***' };
    };
    const dashboard = await serve({ options: { access: 'unprotected', payloads } });
    const queue = fresh();
    await dashboard.producer.enqueue(queue, { secret: 'tiger', sum: 5 }, { id: 'A', delay: '1h' });
    for (const { text } of await hidden(dashboard, queue)) {
      expect(text).not.toContain('tiger');
      expect(text).toContain('***');
    }
    expect(seen[0]).toEqual({ instance: 'default', queue, id: 'A' });
    expect((await dashboard.get('api/me')).body.payloads).toBe('custom');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('tiger is no cat');
      },
    ],
    ['rejects', () => Promise.reject(new Error('tiger is no cat'))],
    [
      'throws a text that is cut within a value, in the line, the stack and the message',
      ({ whole }: { whole?: string } = {}) => {
        if (whole === undefined) return undefined; // Of another test.
        const ends = [190, 480, 4_080].reduce((text, end) => `${text.padEnd(end, '.')}${whole}`, '');
        throw new Error(ends);
      },
    ],
    [
      'answers what throws when it is read',
      () =>
        new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error('tiger is no cat');
            },
          },
        ),
    ],
  ])('a payload whose function %s is not shown, and all else is', async (_, payloads) => {
    const log: string[] = [];
    const dashboard = await serve({ options: { access: 'unprotected', payloads }, log });
    const queue = fresh();
    for (const id of ['A', 'B', 'C']) {
      const payload = { secret: 'tiger', whole: 'panther in a cage' };
      await dashboard.producer.enqueue(queue, payload, { id, delay: '1h' });
    }
    for (const { status, text } of await hidden(dashboard, queue)) {
      expect(status).toBe(200);
      expect(text).not.toMatch(/tiger|panther/);
    }
    // Neither once for each job, nor with what its error quotes of the payload.
    expect(log.filter((line) => line.includes('payloads() of DelayQueueDashboardModule failed'))).toHaveLength(1);
    expect(log.join('\n')).not.toMatch(/tiger|panther/);
    const { body } = await dashboard.get(`api/job?queue=${queue}&id=A`);
    expect(body).toMatchObject({ id: 'A', state: 'delayed', payload: { kind: 'hidden' } });
  });

  it.each([
    [
      'a circle',
      () => {
        const circle: Record<string, unknown> = {};
        circle['circle'] = circle;
        return circle;
      },
      'Circular',
    ],
    ['a BigInt', () => ({ big: 12345678901234567890n }), '12345678901234567890n'],
    ['a Map', () => new Map([['a', 1]]), "'a' => 1"],
    ['text', () => 'masked', '"masked"'],
    [
      'billions of values by few references',
      () => {
        let all: unknown[] = [1];
        for (let n = 0; n < 40; n++) all = [all, all];
        return all;
      },
      'Array',
    ],
  ])('a function may answer %s', async (_, payloads, shown) => {
    const dashboard = await serve({ options: { access: 'unprotected', payloads } });
    const queue = fresh();
    await dashboard.producer.enqueue(queue, 1, { id: 'A', delay: '1h' });
    const { body } = await dashboard.get(`api/job?queue=${queue}&id=A`);
    expect(body.payload.text).toContain(shown);
  });

  it('errors that are hidden leave their names and times', async () => {
    const dashboard = await serve({ options: { access: 'unprotected', errors: 'hide' } });
    const queue = fresh();
    await dashboard.producer.enqueue(queue, 1, { id: 'A' });
    const dead = await here.world.now();
    await here.world.redis.zrem(here.world.key(queue, 'due'), 'A');
    await here.world.redis.zadd(here.world.key(queue, 'dead'), dead, 'A');
    const error = JSON.stringify({
      name: 'CardError',
      message: 'card 4711 of tiger',
      stack: 'at tiger',
      at: dead,
      cause: { name: 'E', message: 'tiger' },
    });
    await here.world.redis.hset(here.world.key(queue, 'errors'), 'A', `exhausted\n${error}\n${error}`);
    const answers = await Promise.all([
      dashboard.get(`api/jobs?queue=${queue}&state=dead`),
      dashboard.get(`api/job?queue=${queue}&id=A`),
      dashboard.get(`api/dead-groups?queue=${queue}`),
    ]);
    for (const { status, text } of answers) {
      expect(status).toBe(200);
      expect(text).not.toMatch(/tiger|4711/);
      expect(text).toContain('CardError');
    }
  });
});

describe('every act', () => {
  it('is a line of the log and an event: who, what, where and how many', async () => {
    const log: string[] = [];
    const messages: DashboardActMessage[] = [];
    const listen = (message: unknown) => void messages.push(message as DashboardActMessage);
    subscribe(DASHBOARD_ACT_CHANNEL, listen);
    try {
      const dashboard = await serve({ options: { access: () => ({ user: 'al\nice', level: 'write' }) }, log });
      const queue = fresh();
      await dashboard.producer.enqueueMany(
        queue,
        ['A', 'B'].map((id) => ({ payload: 'tiger', id, delay: '1h' })),
      );
      await dashboard.act('jobs/cancel', { queue, ids: ['A', 'X'] });
      await dashboard.act('jobs/cancel', { queue, ids: ['B'], dryRun: true });
      await dashboard.act('queue/purge', { queue, confirm: 'other' });
      const done = { instance: 'default', queue, user: 'al?ice' };
      expect(messages).toEqual([
        { ...done, act: 'jobs/cancel', count: 1, outcomes: { cancelled: 1, notFound: 1 }, dryRun: false },
        { ...done, act: 'jobs/cancel', count: 1, outcomes: { cancelled: 1 }, dryRun: true },
        { ...done, act: 'queue/purge', count: 0, outcomes: {}, dryRun: false, error: expect.any(Error) },
      ]);
      const lines = log.filter((line) => line.includes('DelayQueueDashboard') && line.includes('al?ice'));
      expect(lines).toEqual([
        `log "al?ice": jobs/cancel of queue "${queue}": 1 cancelled, 1 notFound. DelayQueueDashboard`,
        expect.stringMatching(/^debug .*nothing was changed/),
        expect.stringMatching(/^warn An act of the dashboard failed: "al\?ice", queue\/purge of queue/),
      ]);
      expect(log.join('\n')).not.toContain('tiger');
    } finally {
      unsubscribe(DASHBOARD_ACT_CHANNEL, listen);
    }
  });

  it('that is refused again and again is an event each time, and one line of the log', async () => {
    const log: string[] = [];
    let events = 0;
    const listen = () => void events++;
    subscribe(DASHBOARD_ACT_CHANNEL, listen);
    try {
      const dashboard = await serve({ options: { access: 'unprotected' }, log });
      const queue = fresh();
      await dashboard.producer.enqueue(queue, 1, { delay: '1h' });
      for (let n = 0; n < 20; n++) expect((await dashboard.act('queue/purge', { queue })).status).toBe(409);
      expect(events).toBe(20);
      expect(log.filter((line) => line.includes('An act of the dashboard failed'))).toHaveLength(1);
    } finally {
      unsubscribe(DASHBOARD_ACT_CHANNEL, listen);
    }
  });

  it('on a queue that was never used is refused, and makes none', async () => {
    const dashboard = await serve({ options: { access: 'unprotected' } });
    const slip = fresh();
    const bodies = [{ ids: ['A'] }, { ids: ['A'], to: { delay: 5 } }, { ids: ['A'], target: fresh() }, { id: 'A' }, {}];
    for (const name of ACTS.keys()) {
      for (const body of bodies) {
        const answered = await dashboard.act(name, { queue: slip, confirm: slip, ...body });
        expect([name, ...codeOf(answered)]).toEqual([name, 404, 'DASHBOARD_NOT_FOUND']);
      }
    }
    for (const name of READS.keys()) await dashboard.get(`api/${name}?queue=${slip}&state=delayed&id=A`);
    expect(await dashboard.inspector.queues()).not.toContain(slip);
    // A queue of which this process has not heard yet is known all the same.
    await dashboard.producer.enqueue(slip, 1, { id: 'A' });
    expect((await dashboard.act('queue/pause', { queue: slip })).status).toBe(200);
  });
});
