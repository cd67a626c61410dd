import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { DiscardJob, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { logArguments } from '../../../lib/delay-queue.logger.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();
afterEach(() => {
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
});

interface Line {
  level: string;
  message: string;
  context?: string;
  params?: Record<string, unknown>;
}

/** What Nest's own logger prints, as JSON. */
async function printing(queue: string, handle: (payload: any, job: DelayedJob) => unknown, options?: HandlerOptions) {
  const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle, options)] });
  const lines: Line[] = [];
  const take = (text: unknown) => {
    for (const line of String(text).trim().split('\n')) lines.push(JSON.parse(line) as Line);
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(take);
  jest.spyOn(process.stderr, 'write').mockImplementation(take);
  Logger.overrideLogger(new ConsoleLogger({ json: true }));
  const about = (id: string) => lines.filter(({ params }) => params?.['id'] === id);
  return { producer, inspector, lines, about };
}

describe('A line about a job', () => {
  it('has text for people and fields for programs: queue, id, attempt, lateness', async () => {
    const fail = (_: unknown, { attempt }: DelayedJob) => {
      throw new Error(`no luck ${attempt}`);
    };
    const { producer, about } = await printing('fields', fail, { attempts: 2, backoff: fixed(1) });
    await producer.enqueue('fields', { secret: 'of the payload' }, { id: 'a' });
    await eventually(() => expect(about('a')).toHaveLength(2));
    const params = (attempt: number) => ({ queue: 'fields', id: 'a', attempt, latenessMs: expect.any(Number) });
    expect(about('a')).toMatchObject([
      {
        level: 'warn',
        context: 'DelayQueue',
        message: 'Job "a" of queue "fields" attempt 1 of 2 failed, next in 1 ms: Error: no luck 1',
        params: params(1),
      },
      {
        level: 'error',
        context: 'DelayQueue',
        message: 'Job "a" of queue "fields" is now a dead letter (exhausted) after attempt 2 of 2: Error: no luck 2',
        params: params(2),
      },
    ]);
    expect(JSON.stringify(about('a'))).not.toContain('secret');
  });

  it('tells of each way to an end that somebody should know of, and of no other', async () => {
    const handle = (payload: string) => {
      if (payload === 'discard') throw new DiscardJob('pointless');
      if (payload === 'snooze') throw new SnoozeJob(1, { max: 1 });
    };
    const { producer, inspector, lines, about } = await printing('ends', handle);
    for (const id of ['ok', 'discard', 'snooze']) await producer.enqueue('ends', id, { id });
    const at = (await here.world.now()) - 5_000;
    await producer.enqueue('ends', 'late', { id: 'late', at, expiresIn: 1_000 });
    await eventually(async () =>
      expect(await inspector.totals('ends')).toMatchObject({ completed: 1, dead: 2, expired: 1 }),
    );
    const told = (id: string) => about(id).map(({ level, message }) => `${level} ${message}`);
    expect(told('discard')).toEqual([
      'error Job "discard" of queue "ends" is now a dead letter (discarded) after attempt 1 of 10: pointless',
    ]);
    expect(told('snooze')).toEqual([expect.stringMatching(/: it was snoozed as often as SnoozeJob allowed$/)]);
    expect(told('late')).toEqual([expect.stringMatching(/^warn .*"late".*expired \d+ ms before it could start\.$/)]);
    expect(about('late')[0]!.params!['latenessMs']).toBeGreaterThanOrEqual(5_000);
    expect(told('ok')).toEqual([]);
    expect(lines).toHaveLength(3);
  });

  it('never quotes a payload that cannot be decoded', async () => {
    const { producer, about } = await printing('broken', () => {});
    await producer.enqueue('broken', {}, { id: 'x', delay: '1h' });
    const key = here.world.key('broken', 'jobs');
    const envelope = (await here.world.redis.hget(key, 'x'))!;
    await here.world.redis.hset(key, 'x', envelope.replace('{}', '{"secret'));
    await producer.runNow('broken', 'x');
    await eventually(() => expect(about('x')).toHaveLength(1));
    expect(about('x')[0]!.message).toMatch(/cannot be decoded and is now a dead letter/);
    expect(JSON.stringify(about('x'))).not.toContain('secret');
  });

  it('is text alone where the logger of Nest has no fields', () => {
    expect(logArguments('text', 'warn', 'late', { queue: 'q' })).toEqual(['late']);
    expect(logArguments('fields', 'warn', 'late', { queue: 'q' })).toEqual(['late', { queue: 'q' }]);
  });
});

describe('An outage', () => {
  it('is one line, and its end another, however often connecting fails meanwhile', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    const log: string[] = [];
    await here.start({ providers: [handlerClass('out', () => {})], options: { connection: proxy.url }, log });
    const before = proxy.connections;
    const booted = log.length;
    proxy.judge = () => 'cut';
    proxy.cut();
    await eventually(() => expect(proxy.connections).toBeGreaterThanOrEqual(before + 6));
    proxy.judge = () => 'pass';
    await eventually(() => expect(log.slice(booted)).toHaveLength(2));
    expect(log.slice(booted)).toEqual([
      expect.stringMatching(/^warn Redis at .* is not reachable .* Retrying; jobs wait\. DelayQueue$/),
      expect.stringMatching(/^log Redis at .* is back after \d+\.\d s\. DelayQueue$/),
    ]);
  });
});
