// Looking into queues, and mending them.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DelayQueueHealth,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  OnDelayed,
  PublishingPausedError,
} from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

@Injectable()
export class Gateway {
  isUp = false;

  /** The last hundred that completed are kept for a day, to be looked at. */
  @OnDelayed('orders.ship', { attempts: 1, keepCompleted: { count: 100, age: '1d' } })
  ship() {
    if (!this.isUp) throw new Error('The gateway is down');
  }
}

@Module({
  imports: [DelayQueueModule.forRoot({ ...redis, deadLetters: { max: 1_000, maxAge: '30d' } })],
  providers: [Gateway],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const inspector = app.get(DelayQueueInspector);
  const gateway = app.get(Gateway);
  const counts = () => inspector.counts('orders.ship');

  // Two orders fail while the gateway is down, and are dead letters with their last error.
  for (const id of ['o1', 'o2']) await producer.enqueue('orders.ship', { id }, { id });
  await until(async () => (await counts()).dead === 2);
  const { jobs: dead } = await inspector.list('orders.ship', 'dead', { limit: 50 }); // page by page: pass the cursor on

  // Once it is up, all of them run again, spread over some time.
  gateway.isUp = true;
  const requeued = await inspector.requeueDead('orders.ship', 'all', { spread: '100ms' });
  await until(async () => (await counts()).completed === 2);
  const kept = await producer.get('orders.ship', 'o1'); // there because of keepCompleted

  // For every process and until resume(): nothing starts. What is waiting can be moved to another queue, or purged.
  await inspector.pause('orders.ship');
  for (const id of ['o3', 'o4']) await producer.enqueue('orders.ship', { id }, { id });
  const { due, paused } = await counts();
  const { results } = await inspector.move('orders.ship', ['o3', 'o1'], 'orders.ship.v2'); // only waiting jobs move
  const purged = await inspector.purge('orders.ship'); // o4; not what is kept of completed ones
  await inspector.resume('orders.ship');

  // Empties a queue for good, or for a while: what is stored runs on, and nothing more comes in.
  await inspector.pausePublishing('orders.ship');
  const refused = await producer
    .enqueue('orders.ship', { id: 'o5' })
    .catch((error: unknown) => error instanceof PublishingPausedError && error.retryable);
  await inspector.resumePublishing('orders.ship');

  // Never throws. Degraded: nobody claims what is due in the queue that the order was moved to.
  const { status, orphans } = await app.get(DelayQueueHealth).check({ lag: { degraded: '5m' } });

  const { enqueued, completed } = await inspector.totals('orders.ship');
  return {
    dead: dead.map(({ id, deadReason, lastError }) => [id, deadReason, lastError?.message]),
    requeued, // { requeued: 2, remaining: 0 }
    kept: kept?.state, // 'completed'
    held: { due, paused }, // 2, true
    moved: results, // [{ id: 'o3', outcome: 'moved' }, { id: 'o1', outcome: 'notFound' }]
    purged, // { removed: 1 }
    refused, // true
    totals: { enqueued, completed },
    health: { status, orphans }, // 'degraded', with 'orders.ship.v2'
    queues: (await inspector.queues()).filter((name) => name.startsWith('orders.')),
  };
}
