import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueHistory, DelayQueueHistoryModule } from '../../../lib/history/index.js';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from '../../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';

const MINUTE = 60_000;

@Injectable()
class Mails {
  readonly startedAt: number[] = [];
  harness!: DelayQueueHarness;

  @OnDelayed('mail.send', { concurrency: 10, rateLimit: { max: 40, per: '10m' } })
  send(): void {
    this.startedAt.push(this.harness.now.getTime());
  }
}

describe('the forecast of a burst under a rate limit', () => {
  let app: INestApplicationContext;
  let mails: Mails;
  let harness: DelayQueueHarness;

  beforeEach(async () => {
    @Module({ imports: [DelayQueueModule.forRoot({ shutdownHooksWarning: false }), DelayQueueHistoryModule], providers: [Mails] }) // prettier-ignore
    class AppModule {}
    const builder = Test.createTestingModule({ imports: [AppModule] });
    DelayQueueTestingModule.override(builder).setLogger(false as never);
    app = await (await builder.compile()).init();
    harness = DelayQueueHarness.of(app);
    mails = app.get(Mails);
    mails.harness = harness;
  });
  afterEach(() => app.close());

  it.each([41, 100, 390])('of %d jobs is what happens, within 15 percent', async (jobs) => {
    const at = harness.now.getTime() + 60 * MINUTE;
    const burst = Array.from({ length: jobs }, (_, n) => ({ payload: n, at }));
    await app.get(DelayQueueProducer).enqueueMany('mail.send', burst);
    const { peaks, limit } = await app.get(DelayQueueHistory).forecast('mail.send', { rate: 100 });
    await harness.advance('5h');
    expect(mails.startedAt).toHaveLength(jobs);
    const tookMs = Math.max(...mails.startedAt) - at;
    expect(tookMs).toBe(Math.floor((jobs - 1) / 40) * 10 * MINUTE);
    expect(limit).toBe('rateLimit');
    expect((peaks[0]!.until.getTime() - at) / tookMs).toBeGreaterThan(0.85);
    expect((peaks[0]!.until.getTime() - at) / tookMs).toBeLessThan(1.15);
  });
});
