import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer } from '../../../lib/index.js';
import type { DelayedJob, ScheduleOptions } from '../../../lib/index.js';
import { DelayQueueRunner } from '../../../lib/worker/delay-queue.runner.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { handlerClass } from '../../helpers/app.js';

const START = Date.UTC(2027, 1, 10);
const MINUTE = 60_000;
const DAYS = 90;

// Each at a local time that the zone leaves out once in that year, and has twice once.
const ZONES = [
  ['Europe/Berlin', 2, 30],
  ['America/New_York', 2, 30],
  ['Australia/Lord_Howe', 2, 15],
  ['America/Santiago', 0, 30],
  ['Africa/Cairo', 0, 30],
] as const;

let app: INestApplicationContext | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** Local date, and minutes since its midnight, of a moment: by Intl, not by the library that computes occurrences. */
function localTimes(timeZone: string): (ms: number) => readonly [date: string, minutes: number] {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
    hourCycle: 'h23',
  });
  return (ms) => {
    const [date, time] = format.format(ms).split(', ') as [string, string];
    const [hours, minutes] = time.split(':').map(Number) as [number, number];
    return [date, hours * 60 + minutes];
  };
}

/** The first moment of each local day at which the clock shows this time or, where it never does, a later one. */
function expectedTimes(timeZone: string, hour: number, minute: number): number[] {
  const local = localTimes(timeZone);
  const found = new Map<string, number>();
  for (let ms = START + 15 * MINUTE; ms <= START + DAYS * 24 * 60 * MINUTE; ms += 15 * MINUTE) {
    const [date, minutes] = local(ms);
    if (minutes >= hour * 60 + minute && minutes < hour * 60 + minute + 90 && !found.has(date)) found.set(date, ms);
  }
  return [...found.values()];
}

async function start(options: ScheduleOptions, interfere: (job: DelayedJob) => unknown) {
  const ran: DelayedJob[] = [];
  const handle = (_: unknown, job: DelayedJob) => {
    ran.push(job);
    return interfere(job);
  };
  @Module({
    imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
    providers: [handlerClass('zones', handle)],
  })
  class AppModule {}
  const module = await DelayQueueTestingModule.override(Test.createTestingModule({ imports: [AppModule] }))
    .setLogger(false as never)
    .compile();
  app = await module.init();
  const harness = DelayQueueHarness.of(app);
  await harness.setNow(START);
  const producer = app.get(DelayQueueProducer);
  for (const [timeZone, hour, minute] of ZONES) {
    await producer.schedule('zones', timeZone, { cron: `${minute} ${hour} * * *`, timeZone }, null, options);
  }
  const [store] = app.get(DelayQueueRunner, { strict: false }).shards.stores('zones');
  return { harness, producer, ran, store: store! };
}

describe('a season of occurrences in five zones, over their clock changes', () => {
  it('has each of them once, whichever process dies between two steps', async () => {
    let runs = 0;
    const killed = new Set<string>();
    const { harness, producer, ran, store } = await start({}, (job) => {
      // The process dies while its handler runs.
      if (++runs % 7 !== 0 || killed.has(job.id)) return undefined;
      killed.add(job.id);
      return harness.crashWorker();
    });
    for (let day = 0; day < DAYS; day++) {
      // A process is told which schedules need more occurrences, and dies.
      if (day % 3 === 0) await store.call('ticks', [20, 2_000]);
      await harness.advance('23h');
      if (day % 5 === 0) await store.call('ticks', [20, 2_000]);
      await harness.advance('1h');
    }
    expect(killed.size).toBeGreaterThan(30);
    for (const [timeZone, hour, minute] of ZONES) {
      const of = ran.filter(({ schedule }) => schedule!.id === timeZone);
      const times = of.map(({ schedule }) => schedule!.at.getTime());
      expect([timeZone, [...new Set(times)]]).toEqual([timeZone, expectedTimes(timeZone, hour, minute)]);
      // Only those whose process died ran again.
      expect(times.length - new Set(times).size).toBe(of.filter(({ id }) => killed.has(id)).length / 2);
    }
    const { schedules } = await producer.listSchedules('zones');
    expect(schedules.map(({ counts }) => counts.missed + counts.overlapped)).toEqual([0, 0, 0, 0, 0]);
  });
});
