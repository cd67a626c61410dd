import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { throwError } from 'rxjs';
import {
  DelayQueueConsumer,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  getDelayQueueToken,
  LeaseLostError,
} from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { beforeCompletion } from '../../helpers/before-completion.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';

let world: World;
beforeEach(async () => {
  world = await World.open();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await world.close();
});

// Two instances in one process log the same sentences: only the context tells them apart.
it('The lines of guards, of interceptors and of take() of a named instance tell its name', async () => {
  const refusing = {
    canActivate: (context: { getArgByIndex(index: number): string }) => {
      if (context.getArgByIndex(0) === 'refuse') throw new TypeError('no request');
      return true;
    },
  };
  const failing = {
    intercept: async (_: unknown, next: { handle(): { toPromise(): Promise<unknown> } }) => {
      await next.handle().toPromise();
      return throwError(() => new Error('no value'));
    },
  };
  const handle = () => {
    throw new DiscardJob('told to');
  };
  const log: string[] = [];
  const { connection, prefix } = world;
  const { app, close } = await createApp(world, {
    log,
    imports: [DelayQueueModule.forRoot({ name: 'eu', connection, prefix: `${prefix}:eu`, globalEnhancers: 'all' })],
    options: { consume: false },
    providers: [
      handlerClass('mail', handle, { instance: 'eu', attempts: 1 }),
      { provide: APP_GUARD, useValue: refusing },
      { provide: APP_INTERCEPTOR, useValue: failing },
    ],
  });
  const producer = app.get<DelayQueueProducer>(getDelayQueueToken('eu'));
  const consumer = app.get<DelayQueueConsumer>(getDelayQueueToken('eu', DelayQueueConsumer));
  await producer.enqueueMany('mail', [{ payload: 'refuse' }, { payload: 'discard' }]);
  await producer.enqueue('pulled', 1, { id: 'a' });
  beforeCompletion(async () => {
    // Somebody else started it.
    const running = `${prefix}:eu:{pulled}:running`;
    await world.redis.zadd(running, String(Number(await world.redis.zscore(running, 'a')) + 1), 'a');
  });
  await expect(consumer.take('pulled')).rejects.toThrow(LeaseLostError);
  const said = ['Guard ', 'an interceptor failed', 'take("pulled")'];
  await eventually(() => {
    const found = said.map((text) => log.find((line) => line.includes(text)));
    expect(found).toEqual(said.map(() => expect.stringMatching(/ DelayQueue:eu$/)));
  });
  await close();
});
