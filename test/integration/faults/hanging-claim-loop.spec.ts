import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({});
afterEach(async () => {
  jest.restoreAllMocks();
  await here.world.redis.replicaof('NO', 'ONE');
});

async function watched(queue: string) {
  const runs: unknown[] = [];
  const log: string[] = [];
  const { app, producer } = await here.start({
    // An idle worker steps three times per lease.
    providers: [handlerClass(queue, (payload) => runs.push(payload), { lease: 900 })],
    options: { drainTimeout: 200, commandTimeout: '1s' },
    log,
  });
  await producer.enqueue(queue, 'first');
  await eventually(() => expect(runs).toEqual(['first']));
  const health = () => app.get(DelayQueueHealth).check({ lastClaim: { down: '1s' } });
  expect((await health()).status).toBe('up');
  /** Health says down because of the claim loop of `queue`, and of nothing else. */
  const loopIsDead = (why: RegExp) =>
    eventually(async () => {
      const result = await health();
      expect(result).toMatchObject({
        status: 'down',
        redis: { status: 'up' },
        queues: { [queue]: { status: 'down' } },
      });
      expect(result.reasons.join()).toMatch(why);
    });
  return { runs, log, producer, health, loopIsDead };
}

describe('Health is down, although Redis answers PING, when the claim loop', () => {
  // One connection answers in order, so a proxy that swallowed claims would keep PING from being answered too.
  it('waits for ever for one claim', async () => {
    const { health, loopIsDead } = await watched('hang');
    const run = jest.spyOn(RedisConnection.prototype, 'run');
    const original = run.getMockImplementation()!;
    run.mockImplementation(function (this: RedisConnection, script, ...rest) {
      return script === 'step' ? new Promise(() => {}) : original.call(this, script, ...rest);
    });
    await loopIsDead(/claim loop of queue "hang" had no answer for [^:]*\d m?s\./);
    expect((await health()).reasons).toHaveLength(1);
  });

  it('is refused for good by a server that became a replica', async () => {
    const { runs, producer, health, loopIsDead } = await watched('replica');
    await here.world.redis.replicaof('127.0.0.1', '1');
    await loopIsDead(/claim loop of queue "replica" had no answer for \d/);

    await here.world.redis.replicaof('NO', 'ONE');
    await producer.enqueue('replica', 'second');
    await eventually(() => expect(runs).toEqual(['first', 'second']));
    expect((await health()).status).toBe('up');
  });

  it('fails with an error that waiting does not cure, which is logged once', async () => {
    const { runs, log, producer, health, loopIsDead } = await watched('wrong');
    const due = here.world.key('wrong', 'due');
    await here.world.redis.set(due, 'not a sorted set');
    await here.world.markChanged('wrong');
    await loopIsDead(/claim loop of queue "wrong" had no answer for .*: .*WRONGTYPE/);
    expect(log.filter((line) => /^error .*WRONGTYPE/.test(line))).toHaveLength(1);

    await here.world.redis.unlink(due);
    await producer.enqueue('wrong', 'second');
    await eventually(() => expect(runs).toEqual(['first', 'second']));
    expect((await health()).status).toBe('up');
  });
});
