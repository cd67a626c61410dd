import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { groupIn } from '../../helpers/sharded-groups.js';
import { World } from '../../helpers/world.js';

const MINUTE = 60_000;

@Injectable()
class Mails {
  readonly log: string[] = [];
  harness!: DelayQueueHarness;
  begin = 0;

  @OnDelayed('mail.send', { concurrency: 10, groups: { concurrency: 1, rateLimit: { max: 2, per: '10m' } } })
  send(_: unknown, job: DelayedJob): void {
    this.log.push(`${job.id} ${Math.round((this.harness.now.getTime() - this.begin) / MINUTE)}`);
  }

  @OnDelayed('mail.split', {
    rateLimit: { max: 3, per: '10m' },
    groups: { concurrency: 1, rateLimit: { max: 1, per: '5m' } },
  })
  sendSplit(_: unknown, job: DelayedJob): void {
    this.send(_, job);
  }
}

describe.each(['in memory', 'on a Redis'])('the test kit %s', (store) => {
  let app: INestApplicationContext;
  let mails: Mails;
  let harness: DelayQueueHarness;
  let producer: DelayQueueProducer;
  let world: World | undefined;

  beforeEach(async () => {
    world = store === 'in memory' ? undefined : await World.open();
    @Module({
      imports: [
        DelayQueueModule.forRoot({
          prefix: world?.prefix ?? 'mine',
          shutdownHooksWarning: false,
          queues: { 'mail.split': { shards: 3 } },
        }),
      ],
      providers: [Mails],
    })
    class AppModule {}
    const builder = Test.createTestingModule({ imports: [AppModule] });
    DelayQueueTestingModule.override(builder, world && { redis: world.url }).setLogger(false as never);
    app = await (await builder.compile()).init();
    harness = DelayQueueHarness.of(app);
    mails = app.get(Mails);
    producer = app.get(DelayQueueProducer);
    Object.assign(mails, { harness, begin: harness.now.getTime() });
  });
  afterEach(async () => {
    await app.close();
    await world?.close();
  });

  it('moves time over shards that share the limits of their queue', async () => {
    const [a, b] = [groupIn(0, 3), groupIn(2, 3)];
    for (const n of [1, 2, 3]) {
      await producer.enqueue('mail.split', {}, { id: `a${n}`, group: a, delay: '1h' });
      await producer.enqueue('mail.split', {}, { id: `b${n}`, group: b, delay: '62m' });
    }
    expect(await producer.get('mail.split', 'a1')).toMatchObject({ state: 'delayed', group: a });
    await harness.advance('61m');
    expect(mails.log).toEqual(['a1 60']);
    await harness.advance('1h');
    // Each shard may start one job in ten minutes.
    expect(mails.log).toEqual(['a1 60', 'b1 62', 'a2 70', 'b2 72', 'a3 80', 'b3 82']);
  });

  it('starts jobs of a group when its window opens, and those of others meanwhile', async () => {
    for (const id of ['a1', 'a2', 'a3', 'a4', 'a5']) {
      await producer.enqueue('mail.send', {}, { id, group: 'a', delay: '1h' });
    }
    await producer.enqueue('mail.send', {}, { id: 'b1', group: 'b', priority: 9, delay: '65m' });
    await harness.advance('59m');
    expect(mails.log).toEqual([]);
    await harness.advance('1h');
    expect(mails.log).toEqual(['a1 60', 'a2 60', 'b1 65', 'a3 70', 'a4 70', 'a5 80']);
  });

  it('removes what groups have left, and keeps the limits of its handlers', async () => {
    await producer.enqueue('mail.send', {}, { id: 'gone', group: 'a' });
    await harness.runDue();
    await producer.enqueue('mail.send', {}, { group: 'a', delay: '1h' });
    await harness.clear();
    for (const id of ['a1', 'a2', 'a3']) await producer.enqueue('mail.send', {}, { id, group: 'a' });
    await harness.advance('5m');
    expect(mails.log).toEqual(['gone 0', 'a1 0', 'a2 0']);
  });
});
