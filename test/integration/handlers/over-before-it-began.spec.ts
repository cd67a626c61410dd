import { expect, it } from '@jest/globals';
import { UseGuards, UsePipes } from '@nestjs/common';
import type {
  ContextProvider,
  DelayedJob,
  DelayQueueRootOptions,
  DelayQueueMiddleware,
  HandlerOptions,
} from '../../../lib/index.js';
import { defineQueue, DelayQueueRegistry, OnDelayed } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

/** What comes before the handler, and waits here for the first job until the test lets it go on. */
class Gate {
  readonly #open: (() => void)[] = [];

  async pass(): Promise<true> {
    if (this.#open.length === 0) await new Promise<void>((resolve) => this.#open.push(resolve));
    return true;
  }

  get isHolding(): boolean {
    return this.#open.length > 0;
  }

  open(): void {
    for (const open of this.#open) open();
  }
}

type Way = (gate: Gate) => {
  schema?: unknown;
  handler?: HandlerOptions;
  options?: DelayQueueRootOptions;
  method?: MethodDecorator;
};

const middleware =
  (gate: Gate): DelayQueueMiddleware =>
  async (_, next) => {
    await gate.pass();
    return next();
  };

const WAYS: [string, Way][] = [
  ['the schema of its queue', (gate) => ({ schema: schemaOf(gate) })],
  ['a middleware', (gate) => ({ handler: { middleware: [middleware(gate)] } })],
  ['a guard', (gate) => ({ method: UseGuards({ canActivate: () => gate.pass() }) })],
  ['a pipe', (gate) => ({ method: UsePipes({ transform: async (value: unknown) => (await gate.pass()) && value }) })],
  [
    'the context of the application',
    (gate) => ({
      options: {
        contextProvider: {
          capture: () => undefined,
          run: (async (_, next) => (await gate.pass()) && next()) as ContextProvider['run'],
        },
      },
    }),
  ],
];

function schemaOf(gate: Gate) {
  const validate = async (value: unknown) => {
    await gate.pass();
    return { value };
  };
  return { '~standard': { version: 1, vendor: 'test', validate } } as const;
}

let queues = 0;

async function application(way: Way, settings: HandlerOptions) {
  const gate = new Gate();
  const { schema, handler, options, method } = way(gate);
  const queue = `over-${queues++}`;
  const begun: string[] = [];
  class Handlers {
    run(_payload: unknown, job: DelayedJob): void {
      begun.push(job.id);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, 'run')!;
  const definition = defineQueue<unknown>(queue, schema ? { schema: schema as never } : {});
  OnDelayed(definition, { concurrency: 2, ...settings, ...handler })(Handlers.prototype, 'run', descriptor);
  method?.(Handlers.prototype, 'run', descriptor);
  // The producer checks a payload too, so that of a queue with a schema is enqueued by its name from elsewhere.
  const elsewhere = await here.start({ options: { consume: false } });
  const app = await here.start({ providers: [Handlers], options: { drainTimeout: 0, ...options } });
  await elsewhere.producer.enqueue(queue, {}, { id: 'slow' });
  await eventually(() => expect(gate.isHolding).toBe(true));
  /** What would begin does so before a job that is enqueued now. */
  const goOn = async () => {
    gate.open();
    await elsewhere.producer.enqueue(queue, {}, { id: 'next' });
    await eventually(() => expect(begun).toContain('next'));
  };
  const stateOf = async () => (await elsewhere.producer.get(queue, 'slow'))?.state;
  return { ...app, elsewhere, queue, gate, begun, goOn, stateOf };
}

it.each(WAYS)('a handler began after the timeout of its run, because %s was slow', async (_, way) => {
  const settings = { timeout: '50ms', attempts: 1 } as const;
  const { begun, goOn, stateOf } = await application(way, settings);
  await eventually(async () => expect(await stateOf()).toBe('dead'));
  await goOn();
  expect(begun).toEqual(['next']);
});

it.each(WAYS)('a handler began although its job was cancelled, because %s was slow', async (_, way) => {
  const { begun, goOn, stateOf, elsewhere, queue, inspector } = await application(way, { lease: '1s' });
  await elsewhere.producer.cancel(queue, 'slow', { running: true });
  const deadlines = new Set<unknown>();
  // The third one since: the answer to the second has come, and the first may have been on its way.
  await eventually(async () => {
    for (const deadline of Object.values((await here.world.read(queue)).leases)) deadlines.add(deadline);
    expect(deadlines.size).toBeGreaterThanOrEqual(4);
  });
  await goOn();
  await eventually(async () => expect(await stateOf()).toBeUndefined());
  expect(begun).toEqual(['next']);
  expect(await inspector.totals(queue)).toMatchObject({ failed: 0, dead: 0 });
});

it('a registered function began after the timeout of its run, because a middleware was slow', async () => {
  const queue = `over-${queues++}`;
  const gate = new Gate();
  const begun: string[] = [];
  const { app, producer } = await here.start();
  const settings = { timeout: '50ms', attempts: 1, concurrency: 2, middleware: [middleware(gate)] } as const;
  app.get(DelayQueueRegistry).register(queue, (_, job) => void begun.push(job.id), settings);
  await producer.enqueue(queue, {}, { id: 'slow' });
  await eventually(async () => expect((await producer.get(queue, 'slow'))?.state).toBe('dead'));
  gate.open();
  await producer.enqueue(queue, {}, { id: 'next' });
  await eventually(() => expect(begun).toContain('next'));
  expect(begun).toEqual(['next']);
});

it('a handler began after its process had handed the job back, because its middleware was slow', async () => {
  const { begun, gate, close, elsewhere, queue } = await application(WAYS[1]![1], {});
  await close();
  gate.open();
  await new Promise(setImmediate);
  expect(begun).toEqual([]);
  expect(await elsewhere.producer.get(queue, 'slow')).toMatchObject({ state: 'due', attempts: 0 });
});

it('what a middleware notes when next() is over is only what was done, and nothing that it does completes the job', async () => {
  const heard: unknown[] = [];
  let signal: AbortSignal | undefined;
  const noting: DelayQueueMiddleware = async (job, next) => {
    ({ signal } = job);
    await next().then(
      () => heard.push(`${job.id} was done`),
      (error: Error) => heard.push(error.name),
    );
  };
  const way: Way = (gate) => ({ handler: { middleware: [noting, middleware(gate)], lease: '1s' } });
  const { begun, gate, queue, elsewhere } = await application(way, {});
  // As if another worker had claimed it, which this one hears with its next heartbeat. Nobody runs it again meanwhile.
  await here.world.redis.hset(here.world.key(queue, 'meta'), 'paused', '1');
  await here.world.redis.zadd(here.world.key(queue, 'running'), 'XX', '1', 'slow');
  await eventually(() => expect(signal!.aborted).toBe(true));
  gate.open();
  await eventually(() => expect(heard).toEqual(['LeaseLostError']));
  expect(begun).toEqual([]);
  expect(await elsewhere.producer.get(queue, 'slow')).toMatchObject({ attempts: 0 });
});

it('a batch that a slow guard let in began with a job whose run was over: the others begin without it', async () => {
  const queue = `over-${queues++}`;
  const gate = new Gate();
  const begun: unknown[][] = [];
  class Handlers {
    run(payloads: unknown[]): void {
      begun.push(payloads);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, 'run')!;
  OnDelayed(queue, { batch: { size: 3 } })(Handlers.prototype, 'run', descriptor);
  UseGuards({ canActivate: () => gate.pass() })(Handlers.prototype, 'run', descriptor);
  const { producer, inspector } = await here.start({ providers: [Handlers] });
  await inspector.pause(queue);
  const jobs = ['A', 'B', 'C'].map((id) => ({ id, payload: id }));
  await producer.enqueueMany(queue, [{ ...jobs[0]!, timeout: '50ms', attempts: 1 }, jobs[1]!, jobs[2]!]);
  await inspector.resume(queue);
  await eventually(async () => expect((await producer.get(queue, 'A'))?.state).toBe('dead'));
  expect(gate.isHolding).toBe(true);
  gate.open();
  await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 2, dead: 1 }));
  expect(begun).toEqual([['B', 'C']]);
});
