import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Module } from '@nestjs/common';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import type { HealthCheckResult } from '@nestjs/terminus';
import { DelayQueueModule, DelayQueueProducer } from '../../../lib/index.js';
import type { DelayQueueRootOptions, HealthThresholds } from '../../../lib/index.js';
import { DelayQueueHealthIndicator, DelayQueueHealthModule } from '../../../lib/terminus/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const end = endingWithEachTest();
const forRoot = (options: DelayQueueRootOptions = {}) =>
  DelayQueueModule.forRoot({
    connection: here.world.connection,
    prefix: here.world.prefix,
    consume: false,
    ...options,
  });
const UNREACHABLE: DelayQueueRootOptions = { connection: 'redis://127.0.0.1:1', connect: 'lazy' };

/** An HTTP application with a health route, as a user writes it. */
async function serving(imports: ModuleMetadata['imports'], thresholds?: HealthThresholds) {
  @Controller('health')
  class HealthController {
    constructor(
      private readonly health: HealthCheckService,
      private readonly delayQueue: DelayQueueHealthIndicator,
    ) {}
    @Get()
    @HealthCheck()
    check(): Promise<HealthCheckResult> {
      return this.health.check([() => this.delayQueue.isHealthy('delay_queue', thresholds)]);
    }
  }
  @Module({ imports: [TerminusModule, DelayQueueHealthModule], controllers: [HealthController] })
  class HealthModule {}
  @Module({ imports: [HealthModule, ...(imports ?? [])] })
  class Root {}
  const app: INestApplication = end(await NestFactory.create(Root, { logger: false, abortOnError: false }));
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const ask = async () => {
    const response = await fetch(`${url}/health`, { headers: { connection: 'close' } });
    const body = (await response.json()) as HealthCheckResult;
    return { code: response.status, status: body.status, report: body.details['delay_queue'] as Record<string, any> };
  };
  return { app, ask };
}

describe('GET /health', () => {
  it('is 200 and tells how the queues are', async () => {
    const { ask } = await serving([forRoot()]);
    const { code, status, report } = await ask();
    expect([code, status]).toEqual([200, 'ok']);
    expect(report).toMatchObject({ status: 'up', reasons: [], redis: { status: 'up' }, queues: {}, orphans: [] });
  });

  it('is 200 and degraded when jobs are due that nobody claims', async () => {
    const { app, ask } = await serving([forRoot()]);
    const { id } = await app.get(DelayQueueProducer).enqueue('orphan', {});
    await eventually(async () => {
      const { code, status, report } = await ask();
      expect([code, status]).toEqual([200, 'degraded']);
      expect(report).toMatchObject({ status: 'degraded', degraded: true, orphans: ['orphan'] });
    });
    await app.get(DelayQueueProducer).cancel('orphan', id);
  });

  it('is 503 without Redis', async () => {
    const { ask } = await serving([forRoot(UNREACHABLE)]);
    const { code, status, report } = await ask();
    expect([code, status]).toEqual([503, 'error']);
    expect(report).toMatchObject({ status: 'down', redis: { status: 'down' } });
    expect(report['reasons']).toEqual([expect.stringContaining('127.0.0.1:1')]);
  });

  it('asks the instance that it is given', async () => {
    const prefix = `${here.world.prefix}-eu`;
    const imports = [forRoot(UNREACHABLE), forRoot({ name: 'eu', prefix })];
    expect((await (await serving(imports)).ask()).code).toBe(503);
    expect((await (await serving(imports, { instance: 'eu' })).ask()).code).toBe(200);
  });

  it.each<[string, unknown, RegExp]>([
    ['an instance that nobody declares', { instance: 'us' }, /No DelayQueueModule\.forRoot\(\) declares instance "us"/],
    ['a threshold that makes no sense', { lag: { down: 'soon' } }, /lag\.down: "soon" is not a duration/],
    ['thresholds that are none', null, /null/],
  ])('is 503, never 500, for %s', async (_, thresholds, reason) => {
    const { ask } = await serving([forRoot()], thresholds as HealthThresholds);
    const { code, report } = await ask();
    expect(code).toBe(503);
    expect(report['reasons']).toEqual([expect.stringMatching(reason)]);
  });
});
