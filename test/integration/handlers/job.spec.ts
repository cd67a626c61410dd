import { describe, expect, it } from '@jest/globals';
import { UsePipes, ValidationPipe } from '@nestjs/common';
import { IsString } from 'class-validator';
import { DiscardJob, JobCancelledError, JobPayload, LeaseLostError, OnDelayed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

describe('the job that a handler gets', () => {
  it('tells all about itself, in server time', async () => {
    let seen: DelayedJob | undefined;
    const { producer } = await here.start({
      providers: [handlerClass('fields', (_, job) => void (seen = job))],
    });
    const before = await here.world.now();
    const { id, dueAt } = await producer.enqueue(
      'fields',
      { n: 1 },
      { at: before - 2_000, attempts: 4, context: { tenant: 'acme' } },
    );
    await eventually(() => expect(seen).toBeDefined());
    const after = await here.world.now();

    expect(seen).toMatchObject({ id, queue: 'fields', payload: { n: 1 }, attempt: 1, maxAttempts: 4, snoozes: 0 });
    expect(seen!.context).toEqual({ tenant: 'acme' });
    expect(seen!.dueAt).toEqual(dueAt);
    expect(dueAt.getTime()).toBe(before - 2_000);
    expect(seen!.enqueuedAt.getTime()).toBeGreaterThanOrEqual(before);
    expect(seen!.enqueuedAt.getTime()).toBeLessThanOrEqual(after);
    expect(seen!.latenessMs).toBeGreaterThanOrEqual(2_000);
    expect(seen!.latenessMs).toBeLessThanOrEqual(after - before + 2_000);
    expect(seen!.signal.aborted).toBe(false);
  });

  it.each<[string, unknown]>([
    ['numbers at the edge of what a double holds', [9007199254740991, -9007199254740991, 1e308, 5e-324, 0.1, -0.5]],
    ['empty arrays and objects, nested', { a: [], b: {}, c: [[], [{}], [[[]]]], d: { e: { f: [] } } }],
    ['text of all kinds', ['', ' ', 'é', '日本語', '🙂👩‍👩‍👧', '\u0000\n\r\t"\\/', '\u2028', '${x}`', '{}', '[]', '%s']],
    ['keys that mean something elsewhere', JSON.parse('{"__proto__":{"a":1},"constructor":1,"":2,"a.b":3,"1":4}')],
    ['null, booleans and sparse-looking values', [null, true, false, 0, { a: null }]],
    ['text that looks like an envelope', '1-,,,,,,,,,,,,,,\n{"a":1}'],
    ['plain text', 'text'],
    ['a number', 42],
    ['null', null],
    ['depth', JSON.parse(`${'['.repeat(200)}1${']'.repeat(200)}`)],
    ['200 KB', { text: 'ä'.repeat(100_000) }],
  ])('has the payload as it was enqueued: %s', async (kind, payload) => {
    const seen: unknown[] = [];
    const queue = `payload ${kind}`;
    const { producer } = await here.start({ providers: [handlerClass(queue, (given) => void seen.push(given))] });
    await producer.enqueue(queue, payload, { context: { given: 'a header' } });
    await producer.enqueue(queue, payload);
    await eventually(() => expect(seen).toHaveLength(2));
    expect(seen).toEqual([payload, payload]);
    expect(JSON.stringify(seen[0])).toBe(JSON.stringify(payload));
  });

  it('has a signal that aborts when it is cancelled, and it is not retried', async () => {
    let signal: AbortSignal | undefined;
    const untilAborted = (_: unknown, job: DelayedJob) =>
      new Promise((_resolve, reject) => {
        signal = job.signal;
        signal.addEventListener('abort', () => reject(signal!.reason as Error));
      });
    const { producer } = await here.start({ providers: [handlerClass('cancel', untilAborted, { lease: 500 })] });
    const { id } = await producer.enqueue('cancel', {});
    await eventually(() => expect(signal).toBeDefined());
    expect(await producer.cancel('cancel', id)).toMatchObject({ outcome: 'running', state: 'running' });
    expect(await producer.cancel('cancel', id, { running: true })).toMatchObject({ outcome: 'running' });
    await eventually(() => expect(signal!.aborted).toBe(true));
    expect(signal!.reason).toBeInstanceOf(JobCancelledError);
    expect(signal!.reason).toMatchObject({ code: 'ERR_DQ_CANCELLED', queue: 'cancel', id });
    await eventually(async () => expect(await producer.get('cancel', id)).toBeUndefined());
    expect(await here.world.read('cancel')).toMatchObject({ due: {}, jobs: {}, dead: {}, followups: {}, attempts: {} });
  });

  it('may extend its lease, also beyond what heartbeats would give it', async () => {
    let extended!: () => void;
    const isExtended = new Promise<void>((resolve) => (extended = resolve));
    let release!: () => void;
    const released = new Promise<void>((resolve) => (release = resolve));
    const handle = async (_: unknown, job: DelayedJob) => {
      await job.extend('2h');
      extended();
      await released;
    };
    const { producer, inspector } = await here.start({ providers: [handlerClass('extend', handle, { lease: '1s' })] });
    await producer.enqueue('extend', {});
    await isExtended;
    const deadlines = Object.values((await here.world.read('extend')).leases);
    expect(deadlines).toHaveLength(1);
    expect((deadlines[0]! - (await here.world.now())) / 3_600_000).toBeCloseTo(2, 1);
    release();
    await eventually(async () => expect((await inspector.totals('extend')).completed).toBe(1));
    expect((await here.world.read('extend')).leases).toEqual({});
  });

  it('cannot extend a lease that somebody else has by now', async () => {
    const outcome = { error: undefined as unknown };
    let signal: AbortSignal | undefined;
    const handle = async (_: unknown, job: DelayedJob) => {
      ({ signal } = job);
      // As if another worker had claimed it.
      await here.world.redis.zadd(here.world.key('stolen', 'running'), 'XX', '1', job.id);
      await job.extend('1h').catch((error: unknown) => (outcome.error = error));
    };
    const { producer } = await here.start({ providers: [handlerClass('stolen', handle)] });
    const { id } = await producer.enqueue('stolen', {});
    await eventually(() => expect(outcome.error).toBeInstanceOf(LeaseLostError));
    expect(outcome.error).toMatchObject({ code: 'ERR_DQ_LEASE_LOST', queue: 'stolen', id });
    expect(signal!.aborted).toBe(true);
  });
});

it('logs say what happened to jobs and never what is in them', async () => {
  class Card {
    @IsString()
    number!: string;
  }
  class ValidatingHandlers {
    @OnDelayed('log.invalid')
    @UsePipes(new ValidationPipe({ transform: true }))
    check(@JobPayload() _card: Card): void {}
  }
  const SECRET = 'hunter2, secret'; // Parsers quote what begins like this.
  const log: string[] = [];
  const { producer, inspector } = await here.start({
    providers: [
      ValidatingHandlers,
      handlerClass('log.ok', () => 'fine'),
      handlerClass('log.failed', () => Promise.reject(new Error('boom')), { backoff: () => '1h' }),
      handlerClass('log.dead', () => Promise.reject(new Error('boom')), { attempts: 1 }),
      handlerClass('log.discarded', () => Promise.reject(new DiscardJob('no use'))),
      handlerClass('log.snoozed', (payload) => Promise.reject(new SnoozeJob('1h', { payload }))),
      handlerClass(
        'log.unstorable',
        (payload) => Promise.reject(new SnoozeJob('1h', { payload: { payload, n: 1n } })),
        {
          attempts: 1,
        },
      ),
      handlerClass('log.timeout', () => new Promise(() => undefined), { timeout: 20, attempts: 1 }),
      handlerClass('log.undecodable', () => undefined),
      handlerClass('log.expired', () => undefined),
    ],
    log,
  });
  const secret = { [SECRET]: SECRET, list: [SECRET], context: { [SECRET]: 1 } };
  await inspector.pause('log.undecodable');
  const { id } = await producer.enqueue('log.undecodable', secret);
  await here.world.redis.hset(here.world.key('log.undecodable', 'jobs'), id, `1-${','.repeat(14)}\n${SECRET}`);
  await inspector.resume('log.undecodable');
  const context = { [SECRET]: SECRET };
  for (const queue of ['ok', 'failed', 'dead', 'discarded', 'snoozed', 'unstorable', 'timeout', 'invalid']) {
    await producer.enqueue(`log.${queue}`, queue === 'invalid' ? { number: { [SECRET]: SECRET } } : secret, {
      context,
    });
  }
  await producer.enqueue('log.expired', secret, { at: 0, expiresIn: 1, context });
  await producer.enqueue('log.ok', { [SECRET]: 10n, [`${SECRET}2`]: SECRET }).catch(() => undefined);

  const said = (queue: string) => log.some((line) => line.includes(`queue "log.${queue}"`));
  const PENDING = ['failed', 'dead', 'discarded', 'unstorable', 'timeout', 'undecodable', 'expired', 'invalid'];
  await eventually(() => expect(PENDING.filter((queue) => !said(queue))).toEqual([]));
  await eventually(async () => expect((await inspector.totals('log.ok')).completed).toBe(1));
  expect(log.filter((line) => line.includes(SECRET))).toEqual([]);
});
