import { Body, Controller, Inject, Module, Post } from '@nestjs/common';
import type { ArgumentsHost, INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  BulkEnqueueError,
  defineQueue,
  DelayQueueExceptionFilter,
  DelayQueueModule,
  DelayQueueProducer,
  DuplicateJobError,
  InvalidDelayError,
  InvalidOptionError,
  QueueFullError,
  SchemaError,
  UnavailableError,
} from '../../lib/index.js';
import type { DelayQueueError, StandardSchema } from '../../lib/index.js';

const ADDRESS = 'redis-7.internal:6379';

const schema: StandardSchema<{ to: string }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof (value as { to?: unknown }).to === 'string'
        ? { value: value as { to: string } }
        : { issues: [{ message: 'must be text', path: ['to'] }] },
  },
};
const mail = defineQueue('mail.send', { schema });

@Controller()
class Mails {
  constructor(@Inject(DelayQueueProducer) private readonly producer: DelayQueueProducer) {}

  @Post('mails')
  async send(@Body() { delay, id, ...body }: { delay?: string; id?: string; to: string }) {
    return this.producer.enqueue(mail, body, { delay, id, onDuplicate: 'reject' });
  }

  @Post('outage')
  outage(): never {
    throw new UnavailableError(`Redis at ${ADDRESS} did not answer for 5000 ms.`);
  }

  @Post('mistake')
  mistake() {
    return this.producer.enqueue(mail, { to: 'a@b.example' }, { dealy: 5 } as object);
  }
}

@Module({ controllers: [Mails], imports: [DelayQueueModule.forRoot({ connection: 'memory://' })] })
class AppModule {}

describe('in HTTP', () => {
  let app: INestApplication;
  let url: string;

  beforeAll(async () => {
    app = await NestFactory.create(AppModule, { logger: false });
    app.useGlobalFilters(new DelayQueueExceptionFilter());
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  });
  afterAll(() => app.close());

  const post = async (path: string, body: object = {}) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, body: await response.json(), retry: response.headers.get('retry-after') };
  };

  it('input that is refused is a 400 that says why', async () => {
    expect(await post('mails', { to: 7 })).toMatchObject({
      status: 400,
      body: {
        statusCode: 400,
        error: 'Bad Request',
        code: 'ERR_DQ_SCHEMA',
        message: ['payload.to: must be text'],
        issues: [{ path: 'payload.to', message: 'must be text' }],
      },
    });
    expect(await post('mails', { to: 'a', delay: 'soon' })).toMatchObject({
      status: 400,
      body: { code: 'ERR_DQ_INVALID_DELAY', message: expect.stringContaining('"soon" is not a duration') },
    });
    expect(await post('mails', { to: 'a', id: '{}' })).toMatchObject({
      status: 400,
      body: { code: 'ERR_DQ_INVALID_ID' },
    });
  });

  it('an id that is taken is a 409, and what is fine goes through', async () => {
    const body = { to: 'a@b.example', delay: '1h', id: 'A' };
    expect(await post('mails', body)).toMatchObject({ status: 201, body: { outcome: 'created' } });
    expect(await post('mails', body)).toMatchObject({ status: 409, body: { code: 'ERR_DQ_DUPLICATE_JOB' } });
  });

  it('a Redis that is away is a 503 that says when to come back, and nothing of the server', async () => {
    const answer = await post('outage');
    expect(answer).toMatchObject({ status: 503, retry: '1', body: { code: 'ERR_DQ_UNAVAILABLE' } });
    expect(JSON.stringify(answer)).not.toContain(ADDRESS);
  });

  it('a mistake of the application stays a 500', async () => {
    expect(await post('mistake')).toMatchObject({ status: 500, body: { message: 'Internal server error' } });
  });
});

describe('the filter', () => {
  /** A reply of Fastify has `sent`, and no `json()`. */
  function replying(error: DelayQueueError, already: object = {}) {
    const done: unknown[] = [];
    const reply = {
      ...already,
      status: (code: number) => (done.push(code), reply),
      header: (name: string, value: string) => (done.push([name, value]), reply),
      send: (body: object) => (done.push(body), reply),
    };
    const host = { getType: () => 'http', switchToHttp: () => ({ getResponse: () => reply }) };
    new DelayQueueExceptionFilter().catch(error, host as unknown as ArgumentsHost);
    return done;
  }

  it('answers by a reply of Fastify, and leaves alone what was answered', () => {
    expect(replying(new InvalidDelayError('no'))).toEqual([
      400,
      { statusCode: 400, error: 'Bad Request', code: 'ERR_DQ_INVALID_DELAY', message: 'no' },
    ]);
    expect(replying(new InvalidDelayError('no'), { sent: true })).toEqual([]);
    expect(replying(new InvalidDelayError('no'), { headersSent: true })).toEqual([]);
  });

  it.each<[string, DelayQueueError, number]>([
    ['many jobs of which some are refused', new BulkEnqueueError('q', [], new SchemaError('q', [])), 400],
    ['many jobs in an outage', new BulkEnqueueError('q', [], new UnavailableError('away')), 503],
    ['a full queue', new QueueFullError('q', 5), 503],
    ['an id that is taken', new DuplicateJobError('q', 'A', 'due'), 409],
  ])('%s', (_, error, status) => {
    expect(replying(error).filter((part) => typeof part === 'number')).toEqual([status]);
  });

  it('in a job and wherever there is no HTTP, lets the error go on', () => {
    const host = { getType: () => 'delay-queue' } as ArgumentsHost;
    const error = new InvalidOptionError('no');
    expect(() => new DelayQueueExceptionFilter().catch(error, host)).toThrow(error);
  });
});
