import 'reflect-metadata';
import { afterEach } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer } from '../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../lib/testing/index.js';
import { handlerClass } from './app.js';

export const START = Date.UTC(2027, 0, 1);
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const iso = (ms: number) => new Date(ms).toISOString();
/** When a run was due by its schedule, in hours since the start. */
export const hoursOf = (runs: readonly { readonly job: DelayedJob }[]) =>
  runs.map(({ job }) => (job.schedule!.at.getTime() - START) / HOUR);

/** For the top of a spec: starts applications with a handler of the queue `report`, in the test kit. They are closed after each test. */
export function scheduling() {
  const open: INestApplicationContext[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((app) => app.close()));
  });
  const boot = async (
    handle: (payload: any, job: DelayedJob) => unknown = () => undefined,
    options: HandlerOptions = {},
  ) => {
    const runs: { at: string; id: string; payload: unknown; job: DelayedJob }[] = [];
    let harness: DelayQueueHarness | undefined = undefined as DelayQueueHarness | undefined;
    const noted = (payload: unknown, job: DelayedJob) => {
      runs.push({ at: iso(harness!.now.getTime()), id: job.id, payload, job });
      return handle(payload, job);
    };
    @Module({
      imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
      providers: [handlerClass('report', noted, options)],
    })
    class AppModule {}
    const module = await DelayQueueTestingModule.override(Test.createTestingModule({ imports: [AppModule] }))
      .setLogger(false as never)
      .compile();
    const app = await module.init();
    open.push(app);
    harness = DelayQueueHarness.of(app);
    return { app, harness, producer: app.get(DelayQueueProducer), inspector: app.get(DelayQueueInspector), runs };
  };
  const start: typeof boot = async (handle, options) => {
    const booted = await boot(handle, options);
    await booted.harness.setNow(START);
    return booted;
  };
  return {
    boot,
    /** The same at the time `START`. */
    start,
  };
}
