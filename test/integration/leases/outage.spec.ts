import { describe, expect, it } from '@jest/globals';
import { DelayQueueConsumer, InvalidOptionError, UnavailableError } from '../../../lib/index.js';
import type { ClaimedJob } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const COMMAND_TIMEOUT_MS = 300;

/** A process whose Redis can be taken away. */
async function beforeAnOutage(queue: string, providers: unknown[] = []) {
  const proxy = await Proxy.before(here.world.url);
  const app = await createApp(here.world, {
    options: { connection: proxy.url, commandTimeout: COMMAND_TIMEOUT_MS, drainTimeout: 0 },
    providers: providers as never,
  });
  const begin = () => {
    proxy.judge = () => 'cut';
    proxy.cut();
  };
  const end = () => {
    proxy.judge = () => 'pass';
  };
  const close = async () => {
    await app.close();
    await proxy.close();
  };
  const pull = async (): Promise<ClaimedJob> => {
    await app.producer.enqueue(queue, {}, { id: 'A' });
    const [job] = await app.app.get(DelayQueueConsumer).pull(queue);
    return job!;
  };
  return { ...app, begin, end, close, pull };
}

const SETTLES: [string, (job: ClaimedJob) => Promise<void>, object][] = [
  ['complete', (job) => job.complete(), { completed: 1 }],
  ['fail', (job) => job.fail(new Error('no luck')), { retried: 1 }],
  ['discard', (job) => job.discard('useless'), { dead: 1 }],
];

describe('in an outage', () => {
  it.each(SETTLES)(
    'a pulled job settles in time with an error, and counts once Redis is back: %s',
    async (how, settle, counted) => {
      const queue = `outage-${how}`;
      const process = await beforeAnOutage(queue);
      const other = await here.start();
      const job = await process.pull();
      process.begin();
      const error = await settle(job).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error).toMatchObject({ maybeAccepted: true, ids: ['A'] });
      await expect(job.release()).rejects.toThrow(InvalidOptionError);
      process.end();
      await eventually(() => settle(job), 20_000); // Again means: wait on.
      expect(await other.inspector.totals(queue)).toMatchObject(counted);
      await process.close();
    },
  );

  it('extend() fails in time, of a pulled job and of a handler that runs, and the lease stays whose it is', async () => {
    const errors: unknown[] = [];
    let begun!: () => void;
    const started = new Promise<void>((resolve) => (begun = resolve));
    let outage!: Promise<void>;
    const handler = handlerClass('outage-extend', async (_, job) => {
      begun();
      await outage;
      errors.push(await job.extend('1h').catch((thrown: unknown) => thrown));
      errors.push(await job.extend('1h').catch((thrown: unknown) => thrown));
    });
    const process = await beforeAnOutage('outage-pulled', [handler]);
    const other = await here.start();
    const pulled = await process.pull();
    let announce!: () => void;
    outage = new Promise<void>((resolve) => (announce = resolve));
    await process.producer.enqueue('outage-extend', {});
    await started;
    process.begin();
    announce();
    await expect(pulled.extend('1h')).rejects.toThrow(UnavailableError);
    await eventually(() => expect(errors).toHaveLength(2));
    expect(errors.every((error) => error instanceof UnavailableError)).toBe(true);
    process.end();
    await eventually(async () => {
      expect(await other.inspector.totals('outage-extend')).toMatchObject({ completed: 1 });
    }, 20_000);
    await eventually(() => pulled.complete(), 20_000);
    expect(await other.inspector.totals('outage-pulled')).toMatchObject({ completed: 1 });
    await process.close();
  });
});
