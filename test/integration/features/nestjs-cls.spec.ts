import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Inject, Injectable, Module, Param, Post } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsModule, ClsService } from 'nestjs-cls';
import type { ClsStore } from 'nestjs-cls';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from '../../../lib/index.js';
import type { ContextProvider } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let open: INestApplication | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

// docs/context.md shows the lines between the two marks.
// <docs>
interface RequestStore extends ClsStore {
  requestId?: string;
}

function requestContext(cls: ClsService<RequestStore>): ContextProvider {
  return {
    capture: () => {
      const requestId = cls.get('requestId');
      return requestId === undefined ? undefined : { requestId };
    },
    run: (context, next) => cls.runWith({ requestId: context['requestId'] }, next),
  };
}
// </docs>

async function application() {
  const seen: [payload: string, requestId: unknown][] = [];
  let held = 0;

  @Injectable()
  class Log {
    constructor(@Inject(ClsService) private readonly cls: ClsService) {}

    async write(payload: string): Promise<void> {
      held++;
      await eventually(() => expect(held).toBeGreaterThanOrEqual(2));
      seen.push([payload, this.cls.get('requestId')]);
    }
  }

  @Controller('orders')
  class Orders {
    constructor(
      @Inject(DelayQueueProducer) private readonly producer: DelayQueueProducer,
      @Inject(ClsService) private readonly cls: ClsService,
      @Inject(Log) private readonly log: Log,
    ) {}

    @Post(':id')
    async create(@Param('id') id: string): Promise<void> {
      await this.producer.enqueue('order.created', id, { id, delay: '1h' });
    }

    @OnDelayed('order.created')
    async created(id: string): Promise<void> {
      await this.log.write(id);
      // As if it knew nothing of queues: the value is there for what is enqueued from here too.
      if (!this.cls.get('requestId')) return;
      await this.producer.enqueue('order.billed', id, { id, delay: '1h' });
    }
  }

  @Module({
    imports: [
      ClsModule.forRoot({
        global: true,
        middleware: {
          mount: true,
          setup: (cls, request: { headers: Record<string, string> }) =>
            cls.set('requestId', request.headers['x-request-id']),
        },
      }),
      DelayQueueModule.forRootAsync({
        inject: [ClsService],
        useFactory: (cls: ClsService) => ({
          contextProvider: requestContext(cls),
          connection: here.world.connection,
          prefix: here.world.prefix,
          shutdownHooksWarning: false,
        }),
      }),
    ],
    controllers: [Orders],
    providers: [Log],
  })
  class App {}
  const app = (open = await NestFactory.create(App, { logger: false }));
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const post = async (id: string) => {
    const headers = { 'x-request-id': `request of ${id}` };
    const response = await fetch(`http://127.0.0.1:${port}/orders/${id}`, { method: 'POST', headers });
    expect(response.status).toBe(201);
  };
  return { post, seen, producer: app.get(DelayQueueProducer), cls: app.get<ClsService>(ClsService) };
}

describe('a contextProvider for nestjs-cls', () => {
  it('carries a value of the request to the handler, of each job its own while two run at once', async () => {
    const { post, seen, producer } = await application();
    await Promise.all([post('a'), post('b')]);
    expect((await producer.get('order.created', 'a'))?.context).toEqual({ requestId: 'request of a' });
    await producer.runNow('order.created', 'a');
    await producer.runNow('order.created', 'b');
    await eventually(() => expect(seen).toHaveLength(2));
    expect(Object.fromEntries(seen)).toEqual({ a: 'request of a', b: 'request of b' });
    // And on to what the handlers enqueued.
    for (const id of ['a', 'b']) {
      await eventually(async () =>
        expect((await producer.get('order.billed', id))?.context).toEqual({ requestId: `request of ${id}` }),
      );
    }
  });

  it('carries it from cls.run(), and nothing from where it is not set', async () => {
    const { seen, producer, cls } = await application();
    await cls.run(async () => {
      cls.set('requestId', 'nightly');
      await producer.enqueue('order.created', 'c');
    });
    await cls.run(() => producer.enqueue('order.created', 'd'));
    await producer.enqueue('order.created', 'e');
    await eventually(() => expect(seen).toHaveLength(3));
    expect(Object.fromEntries(seen)).toStrictEqual({ c: 'nightly', d: undefined, e: undefined });
  });

  it('is the code that the documentation shows', () => {
    const [source, docs] = [fileURLToPath(import.meta.url), 'docs/context.md'].map((file) =>
      readFileSync(file, 'utf8'),
    );
    const code = /\/\/ <docs>\n([^]*?)\/\/ <\/docs>/.exec(source!)![1]!;
    expect(docs).toContain(code);
  });
});
