import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { TestingModuleBuilder } from '@nestjs/testing';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  getDelayQueueToken,
  InjectDelayQueue,
  OnDelayed,
} from '../../../lib/index.js';
import type { DelayQueueRootOptions } from '../../../lib/index.js';
import { delayQueueMatchers, DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import '../../../lib/testing/jest.js';

expect.extend(delayQueueMatchers);

const NOWHERE = 'redis://127.0.0.1:1';

@Injectable()
class Mails {
  readonly sent: string[] = [];

  constructor(@InjectDelayQueue('eu') readonly eu: DelayQueueProducer) {}

  @OnDelayed('mail.send')
  async send({ to }: { to: string }): Promise<void> {
    this.sent.push(to);
    await this.eu.enqueue('mail.archive', { to }, { delay: '1h' });
  }

  @OnDelayed('mail.archive', { instance: 'eu' })
  archive({ to }: { to: string }): void {
    this.sent.push(`${to} archived`);
  }
}

@Module({
  imports: [
    DelayQueueModule.forRoot({ connection: NOWHERE }),
    DelayQueueModule.forRoot({ connection: NOWHERE, name: 'eu' }),
  ],
  providers: [Mails],
})
class AppModule {}

describe('the entry points of the test kit', () => {
  const open: INestApplicationContext[] = [];
  const compile = async (builder: TestingModuleBuilder) => {
    const app = await builder.setLogger(false as never).compile();
    open.push(app);
    return app;
  };
  const of = (parts: ModuleMetadata) => Test.createTestingModule(parts);
  const both = (builder: TestingModuleBuilder) =>
    DelayQueueTestingModule.override(DelayQueueTestingModule.override(builder), { instance: 'eu' });
  afterEach(async () => {
    for (const app of open.splice(0)) await app.close();
  });

  it('put a store and a clock of its own under each instance that is named', async () => {
    const app = await (await compile(both(of({ imports: [AppModule] })))).init();
    const [jobs, archive] = [DelayQueueHarness.of(app), DelayQueueHarness.of(app, { instance: 'eu' })];
    await app.get(DelayQueueProducer).enqueue('mail.send', { to: 'you' }, { delay: '3h' });
    await jobs.advance('3h');
    expect(app.get(Mails).sent).toEqual(['you']);
    expect(jobs.now.getTime() - archive.now.getTime()).toBeGreaterThan(3_500_000);
    await expect(jobs).not.toHaveEnqueued('mail.archive');
    await expect(archive).toHaveEnqueued('mail.archive', { payload: { to: 'you' }, delay: '1h' });
    await archive.advance('1h');
    expect(app.get(Mails).sent).toEqual(['you', 'you archived']);
    await expect(archive).toHaveCompleted('mail.archive');
    expect(app.get(getDelayQueueToken('eu', DelayQueueProducer))).toBe(app.get(Mails).eu);
  });

  it('forTest({ name }) is a named instance', async () => {
    const imports = [DelayQueueTestingModule.forTest(), DelayQueueTestingModule.forTest({ name: 'eu' })];
    const app = await (await compile(of({ imports, providers: [Mails] }))).init();
    const archive = DelayQueueHarness.of(app, { instance: 'eu' });
    await app.get(Mails).eu.enqueue('mail.archive', { to: 'me' }, { delay: '2d' });
    await archive.advance('2d');
    expect(app.get(Mails).sent).toEqual(['me archived']);
  });

  it('answer the same harness each time, so that nobody takes the runs of another', async () => {
    const app = await (await compile(both(of({ imports: [AppModule] })))).init();
    const jobs = DelayQueueHarness.of(app);
    expect(DelayQueueHarness.of(app, { stallTimeout: '2s' })).toBe(jobs);
    expect(DelayQueueHarness.of(app, { instance: 'eu' })).not.toBe(jobs);
    await app.get(DelayQueueProducer).enqueue('mail.send', { to: 'you' });
    await jobs.runDue();
    await expect(DelayQueueHarness.of(app)).toHaveCompleted('mail.send');
  });

  it('say what is missing: an instance, or the boot', async () => {
    const app = await compile(both(of({ imports: [AppModule] })));
    expect(() => DelayQueueHarness.of(app)).toThrow(/has not booted.*`await app\.init\(\)` comes first/);
    await app.init();
    expect(() => DelayQueueHarness.of(app, { instance: 'us' })).toThrow(/declares instance "us"/);
    const other = await compile(of({}));
    expect(() => DelayQueueHarness.of(other)).toThrow(/declares instance "default"/);
  });

  it('refuse an instance that there is not, and one that would work on the Redis of its forRoot()', async () => {
    const misspelt = DelayQueueTestingModule.override(both(of({ imports: [AppModule] })), { instance: 'ue' });
    await expect((await compile(misspelt)).init()).rejects.toThrow(
      /override\(builder, \{ instance: "ue" \}\): no DelayQueueModule\.forRoot\(\) declares instance "ue"\. Declared: "default", "eu"/,
    );
    const half = DelayQueueTestingModule.override(of({ imports: [AppModule] }));
    await expect((await compile(half)).init()).rejects.toThrow(
      `DelayQueueTestingModule.override(): instance "eu" is left out, and would work on the Redis of its forRoot(). Give the builder to DelayQueueTestingModule.override(builder, { instance: 'eu' }) too; where a Redis is meant, with { instance: 'eu', redis: url }.`,
    );
    const other = DelayQueueTestingModule.override(of({ imports: [AppModule] }), { instance: 'eu' });
    await expect((await compile(other)).init()).rejects.toThrow(
      /the unnamed instance is left out.*override\(builder\) too.*\{ redis: url \}/,
    );
  });

  it('leave alone an instance that a test makes itself, or that is in memory', async () => {
    const imports = [
      DelayQueueModule.forRoot({ connection: NOWHERE }),
      DelayQueueTestingModule.forTest({ name: 'eu' }),
      DelayQueueModule.forRoot({ connection: 'memory://', name: 'us' }),
    ];
    const app = await compile(DelayQueueTestingModule.override(of({ imports, providers: [Mails] })));
    await app.init();
    expect(DelayQueueHarness.of(app, { instance: 'us' })).toBeDefined();
  });

  it('move the shards of a queue of another application, which alone knows how many there are', async () => {
    const forRoot = (queues: DelayQueueRootOptions['queues']) =>
      DelayQueueModule.forRoot({ connection: 'memory://shards-of-others', shutdownHooksWarning: false, queues });
    const split = { 'mail.split': { shards: 3 } };
    const [one, other] = [
      await compile(of({ imports: [forRoot({})] })),
      await compile(of({ imports: [forRoot(split)] })),
    ];
    const jobs = DelayQueueHarness.of(await one.init());
    const producer = (await other.init()).get(DelayQueueProducer);
    for (const id of ['a', 'b', 'c', 'd', 'e']) await producer.enqueue('mail.split', {}, { id, delay: '1h' });
    await jobs.advance('2h');
    expect(await other.get(DelayQueueInspector).counts('mail.split')).toMatchObject({ due: 5, delayed: 0 });
    await jobs.clear();
    expect(await other.get(DelayQueueInspector).counts('mail.split')).toMatchObject({ due: 0, delayed: 0 });
  });

  it('say that the application was closed while the harness ran jobs', async () => {
    const app = await (await compile(both(of({ imports: [AppModule] })))).init();
    const jobs = DelayQueueHarness.of(app);
    await app.get(DelayQueueProducer).enqueue('mail.send', { to: 'you' }, { delay: '1h' });
    const moving = jobs.advance('2h').catch((error: unknown) => error);
    await new Promise((resolve) => void setImmediate(resolve));
    await open.pop()!.close();
    expect(await moving).toMatchObject({
      code: 'ERR_DQ_HARNESS',
      message: 'The application was closed. Await what the harness does before.',
    });
  });

  it('are needed because Nest ignores overrideModule() of a dynamic module without a word', async () => {
    const root = DelayQueueModule.forRoot({ connection: NOWHERE, connectTimeout: 50 });
    const builder = of({ imports: [root] }).overrideModule(DelayQueueModule);
    const app = await compile(builder.useModule(DelayQueueTestingModule.forTest()));
    await expect(app.init()).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
  });

  it('do nothing any more once the application is closed, and say so', async () => {
    const app = await (await compile(both(of({ imports: [AppModule] })))).init();
    const jobs = DelayQueueHarness.of(app);
    await open.pop()!.close();
    await expect(jobs.advance('1h')).rejects.toMatchObject({ code: 'ERR_DQ_HARNESS' });
    // Its new worker would ask the closed connection each second, for as long as the process lives.
    await expect(jobs.crashWorker()).rejects.toMatchObject({ code: 'ERR_DQ_HARNESS' });
    const unused = await (await compile(both(of({ imports: [AppModule] })))).init();
    await open.pop()!.close();
    expect(() => DelayQueueHarness.of(unused)).toThrow(
      'The application was closed. Await what the harness does before.',
    );
  });
});
