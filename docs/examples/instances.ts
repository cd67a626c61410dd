// Two Redis, or two prefixes, in one application; and who says what about a queue.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  getDelayQueueToken,
  InjectDelayQueue,
  OnDelayed,
} from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

@Injectable()
export class Orders {
  readonly handled: string[] = [];

  constructor(
    readonly here: DelayQueueProducer,
    @InjectDelayQueue('eu') readonly eu: DelayQueueProducer,
  ) {}

  @OnDelayed('order.check')
  check({ id }: { id: string }) {
    this.handled.push(`here: ${id}`);
  }

  @OnDelayed('order.check', { instance: 'eu', attempts: 3 })
  checkInEurope({ id }: { id: string }) {
    this.handled.push(`eu: ${id}`);
  }

  /** Not among what this process consumes: its jobs wait for a process that does. */
  @OnDelayed('order.archive', { instance: 'eu' })
  archive({ id }: { id: string }) {
    this.handled.push(`archived: ${id}`);
  }
}

@Module({
  imports: [
    DelayQueueModule.forRoot(redis),
    DelayQueueModule.forRoot({
      ...redis,
      name: 'eu',
      prefix: `${redis.prefix}:eu`, // or another `connection`
      consume: ['order.check'],
      // Operators have the last word: this beats what @OnDelayed says.
      queues: { 'order.check': { attempts: 7, concurrency: 2 } },
    }),
  ],
  providers: [Orders],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const { here, eu, handled } = app.get(Orders);
  await here.enqueue('order.check', { id: '1' });
  await eu.enqueue('order.check', { id: '2' });
  await eu.enqueue('order.archive', { id: '3' });
  await until(() => handled.length === 2);

  const inspector = app.get<DelayQueueInspector>(getDelayQueueToken('eu', DelayQueueInspector));
  await eu.enqueue('order.check', { id: '4' }, { id: 'later', delay: '1h' });
  return {
    handled: handled.sort(), // ['eu: 2', 'here: 1']
    waiting: (await inspector.counts('order.archive')).due, // 1
    attempts: (await eu.get('order.check', 'later'))?.maxAttempts, // 7
    elsewhere: await here.get('order.check', 'later'), // undefined
  };
}
