import { afterEach, describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplicationContext, Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { of } from 'rxjs';
import { DelayQueueModule, DelayQueueProducer } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { RelayDelayed } from '../../../lib/relay/index.js';
import { handlerClass } from '../../helpers/app.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const DAY = 86_400_000;

/** An application in memory with these providers. */
async function started(providers: Provider[]): Promise<INestApplicationContext> {
  @Module({ imports: [DelayQueueTestingModule.forTest()], providers })
  class AppModule {}
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .setLogger(false as never)
    .compile();
  return module.init();
}

it('a relay may be repeated: each occurrence is sent', async () => {
  const sent: unknown[] = [];
  const send = (_: string, data: unknown) => {
    sent.push(data);
    return of('taken');
  };
  class Relays {
    relay(payload: object, job: DelayedJob) {
      return { ...payload, at: job.schedule!.at.toISOString() };
    }
  }
  const options = {
    client: 'C',
    pattern: 'tick',
    confirm: 'reply',
    repeat: { every: '1h', payload: { a: 1 } },
  } as const;
  RelayDelayed('relayed', options)(
    Relays.prototype,
    'relay',
    Object.getOwnPropertyDescriptor(Relays.prototype, 'relay')!,
  );
  const app = await started([Relays, { provide: 'C', useValue: { send, emit: send } }]);
  try {
    const harness = DelayQueueHarness.of(app);
    await harness.setNow(Date.UTC(2087, 0, 1));
    await harness.advance('150m');
    const [first, second] = sent as { a: number; at: string }[];
    expect(sent).toHaveLength(2);
    expect(first).toMatchObject({ a: 1 });
    expect(Date.parse(second!.at) - Date.parse(first!.at)).toBe(3_600_000);
  } finally {
    await app.close();
  }
});

it('clear() leaves the schedules that handlers declare, also where time stands still', async () => {
  const ran: number[] = [];
  const app = await started([
    handlerClass('hourly', (_, job) => void ran.push(job.schedule!.at.getTime()), { repeat: { every: '1h' } }),
  ]);
  try {
    const harness = DelayQueueHarness.of(app);
    await harness.clear();
    await harness.advance('150m');
    expect(ran).toHaveLength(2);
    await harness.clear();
    await harness.advance('150m');
    expect(ran).toHaveLength(4);
  } finally {
    await app.close();
  }
});

describe('the test kit on a real Redis', () => {
  let app: INestApplicationContext | undefined;
  afterEach(() => app?.close());

  it('advance() runs schedules through days and clock changes, at the times of their zone; missed ones count', async () => {
    const ran: DelayedJob[] = [];
    @Module({
      imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1', prefix: here.world.prefix })],
      providers: [handlerClass('kit', (_, job) => void ran.push(job))],
    })
    class AppModule {}
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const module = await DelayQueueTestingModule.override(builder, { redis: here.world.url })
      .setLogger(false as never)
      .compile();
    app = await module.init();
    const harness = DelayQueueHarness.of(app);
    const producer = app.get(DelayQueueProducer);
    await harness.setNow(Date.UTC(2087, 2, 27, 12));
    // The clocks of Berlin change in the night to the 30th of March 2087.
    await producer.schedule('kit', 'gap', { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }, null);
    await producer.schedule('kit', 'grid', { every: '1d' }, null, { from: Date.UTC(2087, 2, 28, 6) });
    await harness.advance('4d');
    const of = (id: string) =>
      ran.filter(({ schedule }) => schedule!.id === id).map(({ schedule }) => schedule!.at.toISOString());
    expect(of('gap')).toEqual([
      '2087-03-28T01:30:00.000Z',
      '2087-03-29T01:30:00.000Z',
      '2087-03-30T01:00:00.000Z',
      '2087-03-31T00:30:00.000Z',
    ]);
    expect(of('grid')).toEqual([28, 29, 30, 31].map((day) => new Date(Date.UTC(2087, 2, day, 6)).toISOString()));
    expect((await producer.listSchedules('kit')).schedules.map(({ counts }) => counts.missed)).toEqual([0, 0]);

    // Nobody was there for a while.
    await harness.setNow(harness.now.getTime() + 10 * DAY);
    await harness.advance('1m');
    expect(of('grid').slice(4)).toEqual([new Date(Date.UTC(2087, 3, 10, 6)).toISOString()]);
    const grid = (await producer.listSchedules('kit')).schedules.find(({ id }) => id === 'grid')!;
    expect(grid.counts).toMatchObject({ missed: 9, overlapped: 0 });
    expect(grid.next).toEqual(new Date(Date.UTC(2087, 3, 11, 6)));
    expect(await producer.unschedule('kit', 'gap')).toMatchObject({ outcome: 'removed', occurrences: 1 });
  });
});
