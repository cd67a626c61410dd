import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { handlerClass } from '../../helpers/app.js';
import { BullmqLayout } from '../../helpers/bullmq-layout.js';
import type { BullmqJob } from '../../helpers/bullmq-layout.js';
import { commandLine } from '../../helpers/command-line.js';
import type { RunSettings } from '../../helpers/command-line.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { monitoring } from '../../helpers/monitoring.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
let proxy: Proxy | undefined;
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});
const HOUR = 3_600_000;
const JOBS = Number(process.env['IMPORTED_JOBS'] ?? 20_000);
/** Jobs that are due then are on their way. */
const PARKED = Date.UTC(2100, 0, 1);
/** Of BullMQ; below the prefix of the world, which is removed afterwards. */
const prefix = () => `${here.world.prefix}:bull`;
const layout = (queue: string) => new BullmqLayout(here.world.redis, prefix(), queue);
const run = (args: string[], settings?: RunSettings) =>
  commandLine(here.world, ['import', 'bullmq', ...args, '--from-prefix', prefix()], settings);
const ids = (count: number, of: (n: number) => Partial<BullmqJob>): BullmqJob[] =>
  Array.from({ length: count }, (_, n) => ({ id: `j${n}`, ...of(n) }));

describe('import bullmq', () => {
  it('brings delayed, waiting and prioritized jobs with ids, due times and what is left of their attempts', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const bull = layout('mail');
    const now = await here.world.now();
    await bull.add(
      [
        {
          id: 'later',
          name: 'remind',
          data: { to: 'x' },
          delay: HOUR,
          opts: { attempts: 5, backoff: { type: 'exponential', delay: 50 } },
          fields: { atm: '2' },
        },
        { id: 'now', name: 'welcome', fields: { deid: 'dd' } },
        { id: 'first', name: 'welcome', priority: 3 },
      ],
      now,
    );
    await here.world.redis.set(bull.key('de:dd'), 'now');
    const dry = await run(['mail', 'mail.{name}', '--dry-run', '--json']);
    expect([dry.code, dry.objects]).toMatchObject([
      0,
      [{ imported: 3, queues: { 'mail.remind': 1, 'mail.welcome': 2 }, dryRun: true }],
    ]);
    expect(await producer.get('mail.remind', 'later')).toBeUndefined();
    expect((await run(['mail', 'mail.{name}'])).code).toBe(2);
    const { code, objects } = await run(['mail', 'mail.{name}', '--yes', '--json']);
    expect([code, objects]).toMatchObject([0, [{ source: 'mail', imported: 3, stayed: {}, dryRun: false }]]);
    const later = { state: 'delayed', payload: { to: 'x' }, dueAt: new Date(now + HOUR), maxAttempts: 3 };
    expect(await producer.get('mail.remind', 'later')).toMatchObject(later);
    expect(await producer.get('mail.welcome', 'now')).toMatchObject({
      state: 'due',
      dueAt: new Date(now),
      maxAttempts: 1,
    });
    expect(await producer.get('mail.welcome', 'first')).toMatchObject({ state: 'due' });
    expect(await bull.left()).toEqual([]);
    expect((await run(['mail', 'mail.{name}', '--yes'])).code).toBe(3);
    expect((await run(['nothing', 'x', '--yes'])).code).toBe(3);
  });

  it('leaves in BullMQ what cannot come, as it was, and says why', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const bull = layout('left');
    await producer.enqueue('left', 'ours', { id: 'taken' });
    const jobs: BullmqJob[] = [
      { id: 'repeat:s:1', delay: HOUR, fields: { rjk: 's' } },
      { id: 'child', fields: { parentKey: 'bull:x:1' } },
      { id: 'parent' },
      { id: 'taken', delay: HOUR },
      { id: '{braces}' },
      { id: 'large', data: 'x'.repeat(300_000) },
      { id: 'fine' },
    ];
    await bull.add(jobs, await here.world.now());
    await here.world.redis.hset(bull.key('parent:processed'), 'bull:x:2', '"what the child has found"');
    const before = await here.world.redis.zrange(bull.key('delayed'), '0', '-1', 'WITHSCORES');
    const { code, objects } = await run(['left', 'left', '--yes', '--json']);
    expect([code, objects]).toMatchObject([
      6,
      [{ imported: 1, stayed: { scheduler: 1, flow: 2, conflict: 1, id: 1, refused: 1 } }],
    ]);
    expect(await here.world.redis.zrange(bull.key('delayed'), '0', '-1', 'WITHSCORES')).toEqual(before);
    expect(new Set(await here.world.redis.lrange(bull.key('wait'), '0', '-1'))).toEqual(
      new Set(['child', 'parent', '{braces}', 'large']),
    );
    expect(await producer.get('left', 'taken')).toMatchObject({ payload: 'ours' });
    const others = await run(['left', 'left', '--yes', '--json', '--id-prefix', 'bull.']);
    expect(others.objects).toMatchObject([{ imported: 1, queues: { left: 1 } }]);
    expect(await producer.get('left', 'bull.taken')).toMatchObject({ payload: 'taken' });
  });

  it('is held up by no job whose data are odd: what can be read comes, and the rest stays as it was', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const bull = layout('odd');
    const now = await here.world.now();
    await bull.add(
      [
        { id: 'noTime', fields: { timestamp: 'soon' } },
        { id: 'early', fields: { timestamp: '-5' } },
        { id: 'noOptions', fields: { opts: 'null' } },
        { id: 'attempts', opts: { attempts: 'many' } },
        { id: 'fractions', opts: { attempts: 2.5, backoff: { type: 'exponential', delay: 1e300 } } },
        { id: 'brokenOptions', fields: { opts: '{' } },
        { id: 'brokenData', fields: { data: '{' } },
        { id: 'digits', fields: { data: '{"order":12345678901234567890}' } },
        { id: 'exact', fields: { data: '{"order":12345678901234567000}' } },
        { id: 'with:colons and spaces', name: 'a:b' },
        { id: 'fine', data: { to: 'x' } },
      ],
      now,
    );
    for (const [id, score] of [['never', '+inf'], ['tooLate', '1e300'], ['ghost', String(now * 4_096)]] as const) {
      await here.world.redis.zadd(bull.key('delayed'), score, id);
      if (id !== 'ghost') await here.world.redis.hset(bull.key(id), { name: 'job', data: '1', opts: '{}', timestamp: now });
    } // prettier-ignore
    await here.world.redis.lpush(bull.key('wait'), 'noHash', 'gone');
    await here.world.redis.set(bull.key('noHash'), 'x');
    await here.world.redis.hset(bull.key('meta'), 'paused', '1');
    const stays = ['noTime', 'brokenOptions', 'brokenData', 'digits', 'noHash', 'gone'];
    const { code, objects, stderr } = await run(['odd', 'odd', '--yes', '--json']);
    expect([code, objects]).toMatchObject([6, [{ imported: 7, stayed: { unreadable: 8, digits: 1 } }]]);
    expect(stderr).toContain('Queue "odd" of BullMQ is paused.');
    expect(new Set(await here.world.redis.lrange(bull.key('wait'), '0', '-1'))).toEqual(new Set(stays));
    expect(new Set(await here.world.redis.zrange(bull.key('delayed'), '0', '-1'))).toEqual(
      new Set(['never', 'tooLate', 'ghost']),
    );
    expect(await here.world.redis.hlen(bull.key('dq-import'))).toBe(0);
    expect(await producer.get('odd', 'early')).toMatchObject({ state: 'due', dueAt: new Date(0) });
    expect(await producer.get('odd', 'attempts')).toMatchObject({ state: 'due', maxAttempts: 1 });
    expect(await producer.get('odd', 'fractions')).toMatchObject({ state: 'due', maxAttempts: 2 });
    expect(await producer.get('odd', 'exact')).toMatchObject({ payload: { order: 12345678901234567000 } });
    expect(await producer.get('odd', 'with:colons and spaces')).toMatchObject({ state: 'due' });
  });

  it('ends between two parts when it is interrupted, and goes on when it is called again', async () => {
    await here.start({ options: { consume: false } });
    const bull = layout('paused');
    await bull.add(ids(20_000, () => ({ delay: HOUR })), await here.world.now()); // prettier-ignore
    const first = await run(['paused', 'paused', '--yes', '--json'], {
      with: (child) => void endWhenImporting(child, 'SIGINT', 'paused'),
    });
    expect(first.code).toBe(130);
    expect(first.stderr).toContain('Interrupted: call it again, and it goes on.');
    const [{ imported }] = first.objects;
    expect(imported).toBeLessThan(20_000);
    expect(await here.world.redis.hlen(bull.key('dq-import'))).toBe(0);
    expect((await run(['paused', 'paused', '--yes', '--json'])).objects).toMatchObject([
      { imported: 20_000 - imported },
    ]);
  });

  it('goes on from whatever step the import before it has reached, and brings nothing a second time', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const bull = layout('steps');
    const now = await here.world.now();
    const dueAt = now + HOUR;
    const steps = ['held', 'heldAndHere', 'parked', 'released', 'over', 'withoutData'];
    await bull.add(
      steps.map((id) => ({ id, delay: HOUR })),
      now,
    );
    const score = String(BigInt(dueAt) * 4_096n);
    await here.world.redis.unlink(bull.key('delayed'));
    for (const id of steps) {
      const phase = id.startsWith('held') ? 'h' : 'p';
      await here.world.redis.hset(
        bull.key('dq-import'),
        id,
        `${phase} d ${score} ${JSON.stringify(['steps', id, dueAt])}`,
      );
    }
    await here.world.redis.unlink(bull.key('withoutData'));
    const parked = ['heldAndHere', 'parked', 'withoutData'].map((id) => ({ payload: id, id, at: PARKED }));
    await producer.enqueueMany('steps', [...parked, { payload: 'released', id: 'released', at: dueAt + 5 }]);
    const { code, objects } = await run(['steps', 'steps', '--yes', '--json']);
    expect([code, objects]).toMatchObject([0, [{ resumed: 6 }]]);
    expect((await here.world.read('steps')).due).toEqual({
      held: dueAt,
      heldAndHere: dueAt,
      parked: dueAt,
      withoutData: dueAt,
      // It had its due time, and somebody has given it another one; the last one has run meanwhile.
      released: dueAt + 5,
    });
    expect(await bull.left()).toEqual([]);
  });

  it('gives back a held job whose data were changed to what cannot come, and leaves no copy of one that is gone', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const bull = layout('changed');
    const now = await here.world.now();
    const held = ['digits', 'digitsAndHere', 'removedAndHere'];
    await bull.add(held.map((id) => ({ id, delay: HOUR, fields: { data: '{"order":12345678901234567890}' } })), now); // prettier-ignore
    const before = await here.world.redis.zrange(bull.key('delayed'), '0', '-1', 'WITHSCORES');
    await here.world.redis.unlink(bull.key('delayed'), bull.key('removedAndHere'));
    for (const id of held) {
      const note = `h d ${String(BigInt(now + HOUR) * 4_096n)} ${JSON.stringify(['changed', id, now + HOUR])}`;
      await here.world.redis.hset(bull.key('dq-import'), id, note);
    }
    const copies = held.slice(1).map((id) => ({ payload: 'as it was', id, at: PARKED }));
    await producer.enqueueMany('changed', [...copies, { payload: 'ours', id: 'digits', at: now + HOUR }]);
    const { code, objects } = await run(['changed', 'changed', '--yes', '--json']);
    expect([code, objects]).toMatchObject([4, [{ imported: 0, stayed: { digits: 2 } }]]);
    expect(await here.world.redis.zrange(bull.key('delayed'), '0', '-1', 'WITHSCORES')).toEqual(before.slice(0, 4));
    expect(await here.world.redis.hget(bull.key('digits'), 'data')).toBe('{"order":12345678901234567890}');
    expect((await here.world.read('changed')).due).toEqual({ digits: now + HOUR });
    expect(await here.world.redis.exists(bull.key('dq-import'))).toBe(0);
  });

  it('gives a job that BullMQ puts off while it is imported the due time that it has got there, and not the one before', async () => {
    await here.start({ options: { consume: false } });
    const bull = layout('putOff');
    const now = await here.world.now();
    const all = ids(1_000, () => ({ delay: HOUR }));
    const restless = all.slice(0, 100);
    await bull.add(all, now);
    // As BullMQ does it, and so often that it comes between the moments at which a page is read and taken.
    const putOff = `if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) return 1`;
    const due = new Map(all.map(({ id }) => [id, now + HOUR]));
    const imported = new AbortController();
    const puttingOff = (async () => {
      for (let n = 2; !imported.signal.aborted; n++) {
        const calls = restless.map(async ({ id }) => {
          const score = String(BigInt(now + n * HOUR) * 4_096n);
          if (await here.world.redis.eval(putOff, 1, bull.key('delayed'), id, score)) due.set(id, now + n * HOUR);
        });
        await Promise.all(calls);
      }
    })();
    const some = eventually(async () => expect(await here.world.redis.hlen(here.world.key('putOff', 'jobs'))).toBeGreaterThan(0)); // prettier-ignore
    const running = run(['putOff', 'putOff', '--yes', '--json']);
    await some.finally(() => imported.abort());
    await puttingOff;
    expect((await running).code).toBe(0);
    expect((await here.world.read('putOff')).due).toEqual(Object.fromEntries(due));
    expect(await bull.left()).toEqual([]);
  });

  it.each([
    { place: 'wait', pages: ['-1000', '-2000'], delay: undefined },
    { place: 'delayed', pages: ['0', '1000'], delay: HOUR },
  ])(
    'takes a job in `$place` also when one before it leaves while a thousand that stay there are read',
    async (kind) => {
      const { place, pages, delay } = kind;
      const { producer } = await here.start({ options: { consume: false } });
      const { redis } = here.world;
      const bull = layout(`moved.${place}`);
      const key = bull.key(place);
      const later = (n: number) => (delay === undefined ? {} : { delay: delay + n });
      const jobs = ids(1_500, (n) => ({ ...later(n), ...(n !== 1_000 && { fields: { parentKey: 'bull:x:1' } }) }));
      await bull.add(jobs, await here.world.now());
      // The job is behind the first page until that was read, and then not any more.
      const monitor = await monitoring(redis);
      let looks = 0;
      monitor.on('monitor', (_: string, [, read, from]: string[]) => {
        if (read !== key) return;
        // The first look is that before the question.
        if (from === pages[0] && ++looks > 1) void (delay === undefined ? redis.rpop(key) : redis.zpopmin(key));
        if (from === pages[1] && looks > 1)
          void (delay === undefined ? redis.rpush(key, `next${looks}`) : redis.zadd(key, 0, `next${looks}`));
      });
      const { code, objects } = await run([bull.queue, bull.queue, '--yes', '--json']).finally(() =>
        monitor.disconnect(),
      );
      expect([code, objects]).toMatchObject([6, [{ imported: 1 }]]);
      expect(looks).toBeGreaterThanOrEqual(2);
      expect(await producer.get(bull.queue, 'j1000')).toMatchObject({ state: delay === undefined ? 'due' : 'delayed' });
    },
  );

  /** An import whose queue here is behind a proxy. */
  function behind(proxy: Proxy, queue: string) {
    const world = { url: proxy.url, connection: proxy.url, prefix: here.world.prefix };
    const from = ['--from-redis', here.world.url, '--from-prefix', prefix()];
    return commandLine(world, ['import', 'bullmq', queue, queue, ...from, '--yes', '--json']);
  }

  it('brings those jobs by few calls that lie beside one that is refused', async () => {
    await here.start({ options: { consume: false } });
    const bull = layout('refusing');
    const jobs = ids(1_000, (n) => ({ delay: HOUR, ...(n === 500 && { data: 'x'.repeat(300_000) }) }));
    await bull.add(jobs, await here.world.now());
    proxy = await Proxy.before(here.world.url);
    let calls = 0;
    proxy.judge = (direction) => {
      if (direction === 'request') calls++;
      return 'pass';
    };
    const { code, objects } = await behind(proxy, 'refusing');
    expect([code, objects]).toMatchObject([6, [{ imported: 999, stayed: { refused: 1 } }]]);
    expect(calls).toBeLessThan(200);
  });

  it('keeps its lock while it waits longer for an answer than a lock lasts', async () => {
    await here.start({ options: { consume: false } });
    const bull = layout('slow');
    await bull.add(ids(10, () => ({ delay: HOUR })), await here.world.now()); // prettier-ignore
    const slow = (proxy = await Proxy.before(here.world.url));
    let isSent = false;
    let longAnswers = 0;
    proxy.judge = (direction, chunk) => {
      // The call that brings the jobs, and then its answer.
      if (direction === 'request') isSent ||= chunk.includes('"j5"');
      else slow.replyAfterMs = isSent && ++longAnswers === 1 ? 11_000 : 0;
      return 'pass';
    };
    const { code, objects } = await behind(proxy, 'slow');
    expect([code, objects]).toMatchObject([0, [{ imported: 10, resumed: 0 }]]);
    expect(longAnswers).toBeGreaterThan(0);
  }, 60_000);

  /** As soon as the import has brought so much. One that has come to its end before is left alone. */
  async function endWhenImporting(
    child: ChildProcess,
    signal: NodeJS.Signals,
    queue: string,
    atLeast = 1,
  ): Promise<void> {
    await eventually(async () => {
      const brought = await here.world.redis.zcard(here.world.key(queue, 'due'));
      expect(child.exitCode !== null || brought >= atLeast).toBe(true);
    });
    child.kill(signal);
  }

  it('each of many jobs runs on one side, once, though workers of both go on and the import is killed again and again', async () => {
    const runs = new Map<string, number>();
    const ran = (id: string) => runs.set(id, (runs.get(id) ?? 0) + 1);
    await here.start({
      providers: [handlerClass('big', (_: unknown, job: any) => void ran(job.id), { concurrency: 100 })],
    });
    const bull = layout('big');
    const all = ids(JOBS, (n) => (n % 4 === 0 ? {} : { delay: HOUR + n }));
    const now = await here.world.now();
    await bull.add(all, now);
    const there = new AbortController();
    const worker = (async () => {
      while (!there.signal.aborted) {
        const id = await bull.runOne();
        if (id !== undefined) ran(id);
        await sleep(5);
      }
    })();
    // Of few jobs the kills have to come sooner.
    const step = Math.min(1_000, JOBS / 20);
    let ended: { code: number | null } = { code: null };
    for (let kills = 0; ended.code !== 0 && kills < 30; kills++) {
      const before = await here.world.redis.hlen(here.world.key('big', 'jobs'));
      const killed = (child: ChildProcess) => {
        // At whatever step it is by then. The last time it may come to its end.
        if (kills < 3) void endWhenImporting(child, 'SIGKILL', 'big', before + step * (1 + 1.137 * kills));
      };
      ended = await run(['big', 'big', '--yes'], { with: killed });
    }
    there.abort();
    await worker;
    expect(ended.code).toBe(0);
    const delayed = all.filter(({ delay }) => delay !== undefined);
    await eventually(() => expect(runs.size).toBe(all.length - delayed.length));
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([]);
    const { due } = await here.world.read('big');
    expect(Object.keys(due)).toHaveLength(delayed.length);
    expect(delayed.filter(({ id, delay }) => due[id] !== now + delay!)).toEqual([]);
    expect(Object.values(due).filter((time) => time >= PARKED)).toEqual([]);
    expect(await bull.left()).toEqual([]);
  }, 600_000);
});
