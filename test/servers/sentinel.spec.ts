import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { DelayQueueRootOptions, Durability } from '../../lib/index.js';
import { createApp } from '../helpers/app.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { eventually } from '../helpers/eventually.js';
import { WorkerProcess } from '../helpers/worker-process.js';
import type { World } from '../helpers/world.js';
import { Load, notRun, report } from './load.js';
import { SentinelSetup } from './sentinels.js';

const COPY: Durability = { replicas: 1, timeout: '1s' };
const queue = 'failover';
let setup: SentinelSetup;
let world: World;
beforeEach(async () => {
  setup = await SentinelSetup.start(2);
  world = { prefix: `t${randomBytes(6).toString('hex')}` } as World;
});
afterEach(() => setup?.stop());
// After the hook above: the last one to be declared runs first.
const ends = endingWithEachTest();

const options = (): DelayQueueRootOptions => ({ connection: setup.connection, drainTimeout: 0 });
const producing = async () => ends(await createApp(world, { options: { ...options(), consume: false } }));
const worker = async () =>
  ends(await WorkerProcess.start(world, { queue, handler: { lease: '2s' }, options: options() }));

async function underLoad(disturb: (load: Load) => Promise<void>, durability: Durability) {
  const { producer, inspector } = await producing();
  const workers = [await worker(), await worker()];
  const load = ends(new Load(producer, queue, durability));
  await load.more(500);
  await disturb(load);
  await load.more(500);
  await load.finish();
  expect(load.refused).toEqual([]);
  return { load, workers, inspector };
}

it('a master that is killed under load loses no job that a replica had acknowledged', async () => {
  const { load, workers, inspector } = await underLoad(async () => {
    const old = await setup.master();
    await old.server.kill('SIGKILL');
    await setup.replaced(old);
  }, COPY);
  await eventually(() => expect(notRun(load, workers)).toEqual([]), 30_000);
  await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ due: 0, running: 0, dead: 0 }));
  report(`Sentinel, master killed: ${load.acknowledged.size} jobs, none of them lost; ${load.longestGapMs} ms without an acknowledgement`); // prettier-ignore
});

it('a planned failover and the return of the old master lose nothing, and workers change over by themselves', async () => {
  const { load, workers } = await underLoad(async (during) => {
    const old = await setup.master();
    await setup.failover();
    await setup.replaced(old);
    await during.more(200);
    await setup.whole(); // the old one is a replica by now
  }, COPY);
  await eventually(() => expect(notRun(load, workers)).toEqual([]), 30_000);
  report(`Sentinel, planned failover: ${load.acknowledged.size} jobs, none of them lost; ${load.longestGapMs} ms without an acknowledgement`); // prettier-ignore
});

it('without durability, what replicas did not have yet is lost with the master; with it, no call said that it is safe', async () => {
  const { producer } = await producing();
  const held = { delay: '1h' } as const;
  await producer.enqueue(queue, {}, { ...held, id: 'copied', durability: COPY });
  const old = await setup.master();
  const others = setup.members.filter((member) => member !== old);
  for (const { server } of others) await server.kill('SIGSTOP');
  await old.redis.call('CLIENT', 'KILL', 'TYPE', 'replica'); // so that nothing lies in their sockets

  await producer.enqueue(queue, {}, { ...held, id: 'alone' });
  const doubted = producer.enqueue(queue, {}, { ...held, id: 'doubted', durability: { replicas: 1, timeout: 200 } });
  await expect(doubted).rejects.toMatchObject({ code: 'ERR_DQ_NOT_DURABLE', maybeAccepted: true, retryable: true });

  await old.server.kill('SIGKILL');
  for (const { server } of others) await server.kill('SIGCONT');
  await setup.replaced(old);
  const kept = () => Promise.all(['copied', 'alone', 'doubted'].map(async (id) => !!(await producer.get(queue, id))));
  await eventually(async () => expect(await kept()).toEqual([true, false, false]), 20_000);
});

it('applications that start while there is no master wait for the next one', async () => {
  const old = await setup.master();
  await old.server.kill('SIGKILL');
  const [{ producer }, { messages }] = await Promise.all([producing(), worker()]);
  await producer.enqueue(queue, {}, { id: 'first' });
  await eventually(
    () => expect(messages).toContainEqual(expect.objectContaining({ kind: 'end', id: 'first' })),
    20_000,
  );
});
