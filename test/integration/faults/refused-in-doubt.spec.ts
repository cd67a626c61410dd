import { afterEach, expect, it } from '@jest/globals';
import type { DelayedJob, DelayQueueError } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld({});
const ends = endingWithEachTest();
/** Far longer than a test: what is forgotten stays so. */
const LEASE = '1m';
let queues = 0;

afterEach(() => here.world.redis.call('ACL', 'DELUSER', 'app'));

/** A worker whose answers can be lost, and whose user may be refused scripts. Others enqueue. */
async function worker(handle: (job: DelayedJob) => unknown) {
  const queue = `doubt${queues++}`;
  const proxy = ends(await Proxy.before(here.world.url));
  const permit = (...rules: string[]) => here.world.redis.call('ACL', 'SETUSER', 'app', ...rules);
  await permit('reset', 'on', '>secret', '~*', '&*', '+@all');
  const url = new URL(proxy.url);
  [url.username, url.password] = ['app', 'secret'];
  const log: string[] = [];
  const handler = handlerClass(queue, (_, job) => handle(job), { lease: LEASE, concurrency: 1 });
  const options = { connection: url.toString(), commandTimeout: 500, drainTimeout: 0, startupChecks: 'off' } as const;
  const { producer } = await here.start();
  await here.start({ providers: [handler], options, log });
  return {
    log,
    enqueue: (id: string) => producer.enqueue(queue, {}, { id }),
    /** The first answer that names this job, or follows a request that does, is lost with its connection; the next one calls no script. */
    loseAnswer: (id: string) => {
      let isNamed = false;
      let isLost = false;
      proxy.judge = (direction, chunk) => {
        isNamed ||= chunk.includes(id);
        if (isLost) return direction === 'request' && /eval/i.test(chunk.toString()) ? 'swallow' : 'pass';
        isLost = isNamed && direction === 'reply';
        return isLost ? 'cut' : 'pass';
      };
    },
    /** Scripts are called again, and Redis does not permit them. @returns when a request with this text was refused */
    refuse: async (text: string) => {
      await permit('-evalsha', '-eval');
      let isAsked = false;
      let isRefused = false;
      proxy.judge = (direction, chunk) => {
        if (direction === 'request') isAsked ||= chunk.includes(text);
        else isRefused ||= isAsked && chunk.includes('NOPERM');
        return 'pass';
      };
      await eventually(() => expect(isRefused).toBe(true), 20_000);
    },
    permit: () => permit('+evalsha', '+eval'),
    /** Under which number Redis holds the job. */
    claimOf: async (id: string) => (await here.world.read(queue)).running[id],
    stored: async () => (await here.world.read(queue)).jobs,
  };
}

it('a claim whose answer was lost was forgotten when Redis refused to repeat it, and its job waited for the end of its lease', async () => {
  const attempts: number[] = [];
  const { log, enqueue, loseAnswer, refuse, permit, claimOf, stored } = await worker((job) => {
    attempts.push(job.attempt);
  });
  await enqueue('before');
  await eventually(async () => expect(await stored()).toEqual({}), 10_000);
  loseAnswer('claimed');
  await enqueue('claimed');
  await eventually(async () => expect(await claimOf('claimed')).toBeDefined(), 10_000);
  await refuse('#');
  await eventually(() => expect(log.join()).toMatch(/does not permit a step/), 10_000);
  await permit();
  await eventually(() => expect(attempts).toEqual([1, 1]), 10_000);
});

it('a lease that extend() had moved was forgotten when Redis refused to tell of it, and the run lost its job', async () => {
  let extend!: () => void;
  const asked = new Promise<void>((resolve) => (extend = resolve));
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const signals: AbortSignal[] = [];
  let extending: Promise<DelayQueueError | undefined> | undefined;
  const { enqueue, loseAnswer, refuse, permit, claimOf, stored } = await worker(async (job) => {
    signals.push(job.signal);
    await asked;
    extending = job.extend('2m').then(
      () => undefined,
      (error: DelayQueueError) => error,
    );
    await ended;
  });
  await enqueue('extended');
  await eventually(() => expect(signals).toHaveLength(1), 10_000);
  const claim = await claimOf('extended');
  loseAnswer('extended');
  extend();
  await eventually(async () => expect(await claimOf('extended')).not.toBe(claim), 10_000);
  await refuse('extended');
  expect(await extending).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true });
  end();
  await permit();
  await eventually(async () => expect(await stored()).toEqual({}), 10_000);
  expect(signals).toMatchObject([{ aborted: false }]);
});
