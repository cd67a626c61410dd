import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, NotDurableError, UnsafeServerError } from '../../../lib/index.js';
import type { DelayQueueRootOptions, EnqueueResult } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Replica } from '../../helpers/replica.js';

const here = inAWorld({ config: { 'repl-diskless-sync-delay': '0' } });
const ONE = { replicas: 1 };
/** Longer than any test, so that whatever ends a wait is the replica. */
const PATIENT = { commandTimeout: '25s' };
const patiently = { replicas: 1, timeout: '20s' };
let replica: Replica;
let queues = 0;
const newQueue = () => `durable-${queues++}`;

beforeAll(async () => {
  replica = await Replica.of(here.server);
});
afterEach(() => replica.thaw());
afterAll(() => replica.stop());

const produce = (options: DelayQueueRootOptions = {}) => here.start({ options: { consume: false, ...options } });
const clients = async () => (await here.world.clientNames()).filter((name) => name.startsWith('dq:'));
const calls = async (command: string) =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await here.world.redis.info('commandstats'))?.[1] ?? 0);
const waits = () => calls('wait');
/** Until the WAIT of a call holds up its connection; the client's id. */
const waiting = () =>
  eventually(async () => {
    const list = (await here.world.redis.client('LIST')) as string;
    const id = /^id=(\d+).* name=dq:default:durable .*flags=b.*cmd=wait/m.exec(list)?.[1];
    if (!id) throw new Error(`No WAIT is on its way:\n${list}`);
    return id;
  });

describe('a job that replicas must have', () => {
  it('is on so many of them once its call resolves, which tells how many', async () => {
    const queue = newQueue();
    const { producer } = await produce();
    const result = await producer.enqueue(queue, 'kept', { durability: ONE, delay: '1h' });
    expect(result).toMatchObject({ outcome: 'created', state: 'delayed', durability: { replicas: 1 } });
    expect(await replica.redis.hget(here.world.key(queue, 'jobs'), result.id)).toContain('"kept"');
    expect(await producer.get(queue, result.id)).toMatchObject({ payload: 'kept' });
  });

  it('needs a third client, which exists only once it was asked for, and ends with the application', async () => {
    const queue = newQueue();
    const { producer, close } = await produce();
    const plain = await producer.enqueue(queue, 1);
    expect(plain).not.toHaveProperty('durability');
    expect(await clients()).toEqual(['dq:default:commands', 'dq:default:wake']);
    await producer.enqueue(queue, 1, { durability: ONE });
    await producer.enqueueMany(newQueue(), [{ payload: 1 }], { durability: ONE });
    expect(await clients()).toEqual(['dq:default:commands', 'dq:default:durable', 'dq:default:wake']);
    await close();
    await eventually(async () => expect(await clients()).toEqual([]));
    expect((await here.world.keys(queue)).filter((key) => key.startsWith('session'))).toEqual([]);
  });

  it('is what the module says, unless the call says otherwise', async () => {
    const queue = newQueue();
    const { producer } = await produce({ durability: ONE });
    expect(await producer.enqueue(queue, 1)).toMatchObject({ durability: { replicas: 1 } });
    expect(await producer.enqueue(queue, 1, { durability: 'async' })).not.toHaveProperty('durability');
    const [first, second] = await producer.enqueueMany(queue, [{ payload: 1 }, { payload: 2, durability: 'async' }]);
    expect(first).toMatchObject({ durability: { replicas: 1 } });
    expect(second).not.toHaveProperty('durability');
    const bulk = await producer.enqueueMany(queue, [{ payload: 1 }], { durability: 'async' });
    expect(bulk[0]).not.toHaveProperty('durability');
  });

  it('shares its wait with the jobs of the same turn, and of its chunk', async () => {
    const queue = newQueue();
    const { producer } = await produce({ durability: ONE });
    await producer.enqueue(queue, 0);
    const before = await waits();
    const scripts = await calls('evalsha');
    await Promise.all(Array.from({ length: 100 }, (_, n) => producer.enqueue(queue, n)));
    expect([(await waits()) - before, (await calls('evalsha')) - scripts]).toEqual([1, 1]);
    const items = Array.from({ length: 600 }, (_, n) => ({ payload: n }));
    const results = await producer.enqueueMany(queue, items);
    expect(results.every(({ durability }) => durability && 'replicas' in durability)).toBe(true);
    expect((await waits()) - before - 1).toBeLessThanOrEqual(3);
  });

  it('is refused as a duplicate like any other', async () => {
    const queue = newQueue();
    const { producer } = await produce();
    await producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    const again = producer.enqueue(queue, 1, { id: 'a', onDuplicate: 'reject', durability: ONE });
    await expect(again).rejects.toMatchObject({ code: 'ERR_DQ_DUPLICATE_JOB' });
  });
});

describe('when the replica does not answer', () => {
  it('the call says so in time, the job is there, and resending it waits again', async () => {
    const queue = newQueue();
    const { producer } = await produce();
    await replica.freeze();
    const options = { id: 'a', delay: '1h', durability: { replicas: 1, timeout: 200 } };
    const failure = await producer.enqueue(queue, 'x', options).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotDurableError);
    expect(failure).toMatchObject({
      code: 'ERR_DQ_NOT_DURABLE',
      id: 'a',
      ids: ['a'],
      queue,
      maybeAccepted: true,
      retryable: true,
      reached: { replicas: 0 },
      message: expect.stringContaining('0 of 1 replicas had it within 200 ms'),
    });
    expect(await producer.get(queue, 'a')).toMatchObject({ state: 'delayed', payload: 'x' });
    await expect(producer.enqueue(queue, 'x', options)).rejects.toBeInstanceOf(NotDurableError);
    await replica.thaw();
    const resent = await producer.enqueue(queue, 'x', { ...options, durability: { replicas: 1, timeout: '5s' } });
    expect(resent).toMatchObject({ outcome: 'kept', durability: { replicas: 1 } });
    expect(await replica.redis.hget(here.world.key(queue, 'jobs'), 'a')).toContain('"x"');
    expect((await here.world.read(queue)).meta['enqueued']).toBe('1');
  });

  it('jobs of a batch are reported one by one', async () => {
    const queue = newQueue();
    const { producer } = await produce();
    await replica.freeze();
    const items = [{ payload: 1, id: 'a', delay: '1h' }, { payload: 2, id: 'b', delay: '1h', durability: 'async' as const }]; // prettier-ignore
    const failure = await producer
      .enqueueMany(queue, items, { durability: { replicas: 1, timeout: 100 } })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BulkEnqueueError);
    expect(failure).toMatchObject({
      retryable: true,
      results: [{ id: 'a', error: { code: 'ERR_DQ_NOT_DURABLE', reached: { replicas: 0 } } }, { id: 'b', outcome: 'created' }], // prettier-ignore
    });
    expect(Object.keys((await here.world.read(queue)).jobs).sort()).toEqual(['a', 'b']);
  });

  it('workers and other calls go on meanwhile', async () => {
    const queue = newQueue();
    const runs: unknown[] = [];
    const { producer, inspector } = await here.start({
      providers: [handlerClass(queue, (payload) => void runs.push(payload))],
      options: PATIENT,
    });
    await replica.freeze();
    let settled = false;
    const slow = producer.enqueue(queue, 'slow', { durability: patiently, delay: '1h' }).finally(() => (settled = true)); // prettier-ignore
    await waiting();
    await producer.enqueue(queue, 'due');
    await eventually(() => expect(runs).toEqual(['due']));
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(settled).toBe(false);
    await replica.thaw();
    expect(await slow).toMatchObject({ durability: { replicas: 1 } });
  });

  it('calls that come meanwhile wait for one more, together', async () => {
    const { producer } = await produce({ ...PATIENT, durability: patiently });
    const [one, two] = [newQueue(), newQueue()];
    await producer.enqueueMany(one, [{ payload: 1 }]);
    await replica.freeze();
    const before = await waits();
    const calls: Promise<EnqueueResult>[] = [producer.enqueue(one, 1)];
    await waiting();
    for (const queue of [one, two, one, two]) {
      calls.push(producer.enqueue(queue, 1));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await replica.thaw();
    for (const { durability } of await Promise.all(calls)) expect(durability).toEqual({ replicas: 1 });
    expect((await waits()) - before).toBeLessThanOrEqual(3);
  });

  it('a connection that is lost meanwhile makes no second job, and nobody vouches for it before', async () => {
    const queue = newQueue();
    const { producer } = await produce(PATIENT);
    await replica.freeze();
    let settled = false;
    const call = producer.enqueue(queue, 1, { durability: patiently, delay: '1h' }).finally(() => (settled = true));
    const id = await waiting();
    await here.world.redis.client('KILL', 'ID', id);
    await eventually(async () => expect(await waiting()).not.toBe(id));
    expect(settled).toBe(false);
    await replica.thaw();
    expect(await call).toMatchObject({ outcome: 'created', durability: { replicas: 1 } });
    expect((await here.world.read(queue)).meta['enqueued']).toBe('1');
  });

  it('a server that forgot the job meanwhile is given it again', async () => {
    const queue = newQueue();
    const { producer } = await produce(PATIENT);
    await replica.freeze();
    const call = producer.enqueue(queue, 1, { id: 'a', durability: patiently, delay: '1h' });
    await waiting();
    await here.server.kill('SIGKILL');
    await here.server.restart();
    await replica.thaw();
    expect(await call).toMatchObject({ outcome: 'created', durability: { replicas: 1 } });
    expect(Object.keys((await here.world.read(queue)).due)).toEqual(['a']);
    expect(await replica.redis.hexists(here.world.key(queue, 'jobs'), 'a')).toBe(1);
  });
});

describe('a server that cannot do it', () => {
  const CANNOT_FSYNC = /durability 'fsync' needs Redis 7\.2 or Valkey|writes no append-only file/;

  it('is refused at boot, with too few replicas or nothing to sync', async () => {
    const boot = produce({ durability: { replicas: 3 } });
    await expect(boot).rejects.toBeInstanceOf(UnsafeServerError);
    await expect(boot).rejects.toThrow('has 1 connected replicas, but durability asks for 3.');
    await expect(produce({ durability: 'fsync' })).rejects.toBeInstanceOf(UnsafeServerError);
    await expect(produce({ durability: 'fsync' })).rejects.toThrow(CANNOT_FSYNC);
    await eventually(async () => expect(await clients()).toEqual([]));
  });

  it("is a warning with startupChecks: 'warn'", async () => {
    const log: string[] = [];
    const options = { startupChecks: 'warn', durability: { replicas: 3 }, consume: false } as const;
    await here.start({ options, log });
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([expect.stringContaining('asks for 3')]);
  });

  it("is not sent a job with 'fsync' when it is known not to sync", async () => {
    const queue = newQueue();
    const { producer } = await produce();
    const calls = [
      () => producer.enqueue(queue, 1, { durability: 'fsync' }),
      () => producer.enqueueMany(queue, [{ payload: 1 }], { durability: 'fsync' }),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toBeInstanceOf(UnsafeServerError);
      await expect(call()).rejects.toThrow(CANNOT_FSYNC);
    }
    expect(await here.world.keys(queue)).toEqual([]);
  });

  it('and does not tell so beforehand, stores the job and does not vouch for it', async () => {
    const queue = newQueue();
    await here.world.redis.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-info', '-wait');
    const connection = here.world.url.replace('://', '://app:secret@');
    const { producer } = await produce({ connection, startupChecks: 'off' });
    for (const durability of ['fsync', ONE] as const) {
      const failure = await producer.enqueue(queue, 1, { durability, delay: '1h' }).catch((error: unknown) => error);
      expect(failure).toMatchObject({
        code: 'ERR_DQ_NOT_DURABLE',
        reached: durability === 'fsync' ? { fsync: false } : { replicas: 0 },
        message: expect.stringContaining('Redis could not tell whether it is durable'),
        cause: expect.any(Error),
      });
      expect(await producer.get(queue, (failure as NotDurableError).id)).toMatchObject({ state: 'delayed' });
    }
  });
});

it('a wait that is longer than a command may take is refused before anything is sent', async () => {
  const queue = newQueue();
  const { producer } = await produce({ commandTimeout: '1s' });
  const tooLong = { replicas: 1, timeout: '2s' };
  const message = 'timeout: 2000 ms is longer than commandTimeout (1000 ms)';
  for (const call of [
    () => producer.enqueue(queue, 1, { durability: tooLong }),
    () => producer.enqueueMany(queue, [{ payload: 1 }, { payload: 2, durability: tooLong }]),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
    await expect(call()).rejects.toThrow(message);
  }
  await expect(produce({ commandTimeout: '1s', durability: tooLong })).rejects.toThrow(message);
  expect(await here.world.keys(queue)).toEqual([]);
});
