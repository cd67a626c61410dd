import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import {
  DelayQueueConsumer,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  fixed,
  SnoozeJob,
} from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { DelayQueueMetrics, DelayQueueMetricsModule } from '../../../lib/metrics/index.js';
import type { DelayQueueMetricsOptions } from '../../../lib/metrics/index.js';
import { channels } from '../../../lib/delay-queue.channels.js';
import { queueNamesKey } from '../../../lib/redis/keys.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld();
const end = endingWithEachTest();

function handle(payload: string, job: DelayedJob): unknown {
  if (payload === 'snooze' && job.snoozes === 0) throw new SnoozeJob(1);
  if (payload === 'retry' && job.attempt === 1) throw new Error('no luck');
  if (payload === 'discard') throw new DiscardJob('pointless');
  return undefined;
}

async function measured(
  queue: string,
  options: DelayQueueRootOptions = {},
  given: DelayQueueMetricsOptions = {},
  log?: string[],
) {
  const registry = new Registry();
  const { app, producer, inspector } = await here.start({
    imports: [DelayQueueMetricsModule.forRoot({ registry, ...given })],
    providers: [handlerClass(queue, handle, { backoff: fixed(1) })],
    options,
    log,
  });
  /** Samples of one metric, by their labels. */
  const scrape = async (name: string) => {
    const found: Record<string, number> = {};
    for (const [, labels, value] of (await registry.metrics()).matchAll(
      new RegExp(`^${name}\\{(.*?)\\} (\\S+)$`, 'gm'),
    )) {
      found[labels!.replace(`delay_queue="default",queue="${queue}"`, '').replace(/^,|,$/, '')] = Number(value);
    }
    return found;
  };
  return { app, producer, inspector, registry, scrape };
}

describe('The metrics', () => {
  it('count what becomes of jobs', async () => {
    const { producer, scrape } = await measured('fates');
    const NONE = { exhausted: 0, discarded: 0, leaseLost: 0, undecodable: 0, invalid: 0, expired: 0 };
    const byReason = (numbers: Record<string, number>) =>
      Object.fromEntries(Object.entries({ ...NONE, ...numbers }).map(([word, n]) => [`reason="${word}"`, n]));
    // From 0 on, or increase() would miss what happens first: an alert of dead letters would keep silent at the first one.
    expect(await scrape('delay_queue_jobs_completed_total')).toEqual({ '': 0 });
    expect(await scrape('delay_queue_jobs_dead_lettered_total')).toEqual(byReason({}));
    expect(await scrape('delay_queue_redis_outages_total')).toEqual({ 'delay_queue="default"': 0 });
    await producer.enqueueMany(
      'fates',
      ['ok', 'snooze', 'retry', 'discard'].map((payload) => ({ payload })),
    );
    await producer.enqueue('fates', 'ok', { id: 'x', delay: '1h' });
    await producer.enqueue('fates', 'ok', { id: 'x', delay: '1h' });
    const at = (await here.world.now()) - 5_000;
    await producer.enqueue('fates', 'late', { at, expiresIn: 1_000 });
    await eventually(async () => expect(await scrape('delay_queue_jobs_completed_total')).toEqual({ '': 3 }));
    await eventually(async () => expect(await scrape('delay_queue_jobs_expired_total')).toEqual({ '': 1 }));
    expect(await scrape('delay_queue_jobs_enqueued_total')).toEqual({
      'outcome="created"': 6,
      'outcome="kept"': 1,
      'outcome="replaced"': 0,
      'outcome="rescheduled"': 0,
    });
    expect(await scrape('delay_queue_jobs_claimed_total')).toEqual({ '': 6 });
    expect(await scrape('delay_queue_jobs_failed_total')).toEqual({ '': 2 });
    expect(await scrape('delay_queue_jobs_retried_total')).toEqual({ '': 1 });
    expect(await scrape('delay_queue_jobs_snoozed_total')).toEqual({ '': 1 });
    expect(await scrape('delay_queue_jobs_dead_lettered_total')).toEqual(byReason({ discarded: 1 }));
    expect(await scrape('delay_queue_job_duration_seconds_count')).toEqual({ '': 6 });
    expect(await scrape('delay_queue_jobs')).toEqual({
      'state="delayed"': 1,
      'state="due"': 0,
      'state="running"': 0,
      'state="dead"': 1,
    });
  });

  it('have histograms of seconds whose buckets add up', async () => {
    const { producer, scrape } = await measured('late');
    await producer.enqueue('late', 'ok', { at: (await here.world.now()) - 2_000 });
    await eventually(async () => expect(await scrape('delay_queue_job_lateness_seconds_count')).toEqual({ '': 1 }));
    expect((await scrape('delay_queue_job_lateness_seconds_sum'))['']).toBeGreaterThanOrEqual(2);
    expect((await scrape('delay_queue_job_lateness_seconds_sum'))['']).toBeLessThan(10);
    const buckets = await scrape('delay_queue_job_lateness_seconds_bucket');
    const of = (bound: string) => Object.entries(buckets).find(([labels]) => labels.includes(`le="${bound}"`))?.[1];
    expect([of('1'), of('30'), of('+Inf')]).toEqual([0, 1, 1]);
    expect((await scrape('delay_queue_step_duration_seconds_count'))['kind="claim"']).toBeGreaterThanOrEqual(1);
  });

  it('tell of lag, pauses, memory and the claim loop when they are scraped', async () => {
    const { producer, inspector, scrape } = await measured('lagging');
    await inspector.pause('lagging');
    await producer.enqueue('lagging', 'ok', { at: (await here.world.now()) - 60_000 });
    const lag = (await scrape('delay_queue_lag_seconds'))['']!;
    expect(lag).toBeGreaterThanOrEqual(60);
    expect(lag).toBeLessThan(90);
    expect(await scrape('delay_queue_paused')).toMatchObject({ '': 1 });
    expect((await scrape('delay_queue_last_step_age_seconds'))['']).toBeLessThan(30);
    expect(Object.values(await scrape('delay_queue_redis_up'))).toEqual([1]);
    expect(Object.values(await scrape('delay_queue_redis_memory_used_bytes'))[0]).toBeGreaterThan(100_000);
  });

  it('are scraped within seconds while Redis is silent, say so, and count the outage', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    const { scrape, registry } = await measured('silent', { connection: proxy.url, commandTimeout: 60_000 });
    await scrape('delay_queue_redis_up');
    proxy.judge = () => 'swallow';
    const waited = waiting();
    const text = await registry.metrics();
    expect(waited()).toBeLessThan(10_000);
    expect(text).toContain('delay_queue_redis_up{delay_queue="default"} 0\n');
    expect(text).not.toMatch(/^delay_queue_jobs\{/m);
    // What this process knows by itself is told all the same.
    expect(text).toContain('delay_queue_jobs_completed_total{delay_queue="default",queue="silent"} 0\n');
    expect(text).toMatch(/^delay_queue_last_step_age_seconds\{/m);
    proxy.judge = () => 'pass';
    proxy.cut();
    await eventually(async () =>
      expect(await scrape('delay_queue_redis_outages_total')).toEqual({ 'delay_queue="default"': 1 }),
    );
    await eventually(async () => expect(Object.values(await scrape('delay_queue_redis_up'))).toEqual([1]));
  });

  it('have names and units as Prometheus wants them, and a help text', async () => {
    const { registry, producer } = await measured('names');
    await producer.enqueue('names', 'ok');
    const metrics = await registry.getMetricsAsJSON();
    expect(metrics.length).toBeGreaterThan(15);
    for (const { name, type, help } of metrics as unknown as { name: string; type: string; help: string }[]) {
      expect(name).toMatch(/^delay_queue_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(type !== 'histogram' || name.endsWith('_seconds')).toBe(true);
      expect(help).toMatch(/^\S.*\.$/);
    }
  });

  it('may be scraped as OpenMetrics', async () => {
    const registry = new Registry<any>();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const { scrape, producer } = await measured('open', {}, { registry });
    await producer.enqueue('open', 'ok');
    await scrape('x');
    expect(await registry.metrics()).toContain(
      'delay_queue_jobs_enqueued_total{delay_queue="default",queue="open",outcome="created"} 1\n',
    );
  });

  it('count jobs that were pulled, handled in batches or spread over shards as all others', async () => {
    const registry = new Registry();
    const { app, producer } = await here.start({
      imports: [DelayQueueMetricsModule.forRoot({ registry })],
      providers: [handlerClass('sharded', () => {}), handlerClass('batched', () => {}, { batch: { size: 2 } })],
      options: { queues: { sharded: { shards: 4 } } },
    });
    const items = Array.from({ length: 6 }, () => ({ payload: {} }));
    for (const queue of ['sharded', 'batched', 'pulled']) await producer.enqueueMany(queue, items);
    await app.get(DelayQueueConsumer).take('pulled', 6);
    for (const queue of ['sharded', 'batched', 'pulled']) {
      const labels = `{delay_queue="default",queue="${queue}"}`;
      await eventually(async () =>
        expect(await registry.metrics()).toContain(`delay_queue_jobs_completed_total${labels} 6\n`),
      );
      const text = await registry.metrics();
      expect(text).toContain(`delay_queue_jobs_claimed_total${labels} 6\n`);
      expect(text).toContain(`delay_queue_job_duration_seconds_count${labels} 6\n`);
      expect(text).toContain(`delay_queue_jobs{delay_queue="default",queue="${queue}",state="due"} 0\n`);
    }
  });

  it('tell the instances of one application apart', async () => {
    const registry = new Registry();
    const root = { connection: here.world.connection, shutdownHooksWarning: false };
    const app = await here.boot({
      imports: [
        DelayQueueMetricsModule.forRoot({ registry }),
        DelayQueueModule.forRoot({ ...root, prefix: here.world.prefix }),
        DelayQueueModule.forRoot({ ...root, prefix: `${here.world.prefix}:eu`, name: 'eu' }),
      ],
      providers: [handlerClass('orders', () => {}), handlerClass('orders', () => {}, { instance: 'eu' })],
    });
    await app.get(DelayQueueProducer).enqueue('orders', 1);
    await eventually(async () =>
      expect(await registry.metrics()).toContain(
        'delay_queue_jobs_completed_total{delay_queue="default",queue="orders"} 1\n',
      ),
    );
    const text = await registry.metrics();
    expect(text).toContain('delay_queue_jobs_completed_total{delay_queue="eu",queue="orders"} 0\n');
    expect(text).toContain('delay_queue_redis_up{delay_queue="default"} 1\ndelay_queue_redis_up{delay_queue="eu"} 1\n');
  });

  it('count a lost lease, and the dead letter of a job that takes its process along', async () => {
    const ends: (() => void)[] = [];
    const registry = new Registry();
    const handler = () =>
      handlerClass('poison', () => new Promise<void>((resolve) => ends.push(resolve)), { attempts: 1 });
    const { producer } = await here.start({
      imports: [DelayQueueMetricsModule.forRoot({ registry })],
      providers: [handler()],
    });
    const { id } = await producer.enqueue('poison', {});
    await eventually(() => expect(ends).toHaveLength(1));
    const claim = await here.world.redis.zscore(here.world.key('poison', 'running'), id);
    await here.world.redis.zadd(here.world.key('poison', 'leases'), 'XX', 1.5, claim!);
    await here.start({ providers: [handler()] });
    const labels = 'delay_queue="default",queue="poison"';
    await eventually(async () =>
      expect(await registry.metrics()).toContain(
        `delay_queue_jobs_dead_lettered_total{${labels},reason="leaseLost"} 1\n`,
      ),
    );
    ends[0]!();
    await eventually(async () =>
      expect(await registry.metrics()).toContain(`delay_queue_leases_lost_total{${labels}} 1\n`),
    );
    expect(await registry.metrics()).toContain(`delay_queue_jobs_completed_total{${labels}} 0\n`);
  });

  it('keep to a thousand queues in a process: what is beyond is counted together', async () => {
    const { registry, scrape } = await measured('known');
    await scrape('x');
    const job = { instance: 'default', id: 'a', outcome: 'created', state: 'due', dueAt: 0, delayMs: 0 } as const;
    for (let n = 0; n < 1_500; n++) channels.enqueued.publish({ ...job, queue: `tenant-${n}` });
    const created = [
      ...(await registry.metrics()).matchAll(
        /^delay_queue_jobs_enqueued_total\{.*queue="(.*?)",outcome="created"\} (\d+)$/gm,
      ),
    ].map(([, queue, value]) => [queue!, Number(value)] as const);
    expect(created).toHaveLength(1_001);
    expect(new Map(created).get('{others}')).toBe(501);
    expect(created.reduce((sum, [, value]) => sum + value, 0)).toBe(1_500);
  });

  it('look into 200 queues of Redis at most, those of this process first, and say so once', async () => {
    const log: string[] = [];
    const { registry, scrape } = await measured('zz', {}, {}, log);
    const names = Array.from({ length: 300 }, (_, n) => `a${n}`);
    await here.world.redis.sadd(queueNamesKey(here.world.prefix), ...names);
    try {
      await scrape('x');
      const lags = [...(await registry.metrics()).matchAll(/^delay_queue_lag_seconds\{.*queue="(.*?)"\}/gm)];
      expect(lags).toHaveLength(200);
      expect(lags[0]![1]).toBe('zz');
      expect(log.filter((line) => line.includes('gauges tell of 200 of them'))).toHaveLength(1);
    } finally {
      await here.world.redis.srem(queueNamesKey(here.world.prefix), ...names);
    }
  });

  it.each([Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE])(
    'begin anew in the same registry when the application does, scraped as %s',
    async (type) => {
      const registry = new Registry<any>();
      registry.setContentType(type);
      const first = await measured('anew', {}, { registry });
      await first.producer.enqueue('anew', 'ok');
      await eventually(async () => expect(await registry.metrics()).toContain('anew"} 1\n'));
      await first.app.close();
      expect(registry.getMetricsAsArray()).toEqual([]);
      await measured('anew', {}, { registry });
      expect(await registry.metrics()).toContain(
        'delay_queue_jobs_completed_total{delay_queue="default",queue="anew"} 0\n',
      );
    },
  );

  it('leave the registry with the application', async () => {
    const { app, registry } = await measured('leaving');
    await app.close();
    expect(registry.getMetricsAsArray()).toEqual([]);
  });
});

describe('DelayQueueMetricsModule', () => {
  it('takes a prefix, and is refused names that are taken', async () => {
    const { registry } = await measured('prefixed', {}, { prefix: 'shop_' });
    expect(await registry.metrics()).toContain('shop_jobs_completed_total{');
    await expect(measured('again', {}, { registry, prefix: 'shop_' })).rejects.toThrow(
      /has a metric "shop_jobs_enqueued_total" already/,
    );
    expect(registry.getSingleMetric('shop_jobs_enqueued_total')).toBeDefined();
  });

  it.each([
    [{ prefix: 'a-b' }, /forRoot\(\{ prefix \}\): must be letters/],
    [{ registry: {} as never }, /forRoot\(\{ registry \}\): must be a Registry/],
    [{ names: 1 } as never, /names/],
  ])('refuses %j', async (options: DelayQueueMetricsOptions, message) => {
    const wrong = here.start({ imports: [DelayQueueMetricsModule.forRoot(options)] });
    await expect(wrong).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
      message: expect.stringMatching(message),
    });
  });

  it('is found by the class', async () => {
    const { app, registry } = await measured('found');
    expect(app.get(DelayQueueMetrics).registry).toBe(registry);
  });
});

describe('What docs/observability asks Prometheus for', () => {
  const dashboard = readFileSync('docs/observability/dashboard.json', 'utf8');
  const alerts = readFileSync('docs/observability/alerts.yml', 'utf8');
  const { panels } = JSON.parse(dashboard) as { panels: { title: string; targets: { expr: string }[] }[] };
  const expressions = [
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ...[...alerts.matchAll(/- alert: (\w+)\n +expr: (.*)\n/g)].map(([, name, expr]) => [name!, expr!] as const),
  ];

  it('is in a real scrape, metric by metric and label by label', async () => {
    const { producer, inspector, registry } = await measured('docs');
    await producer.enqueueMany(
      'docs',
      ['ok', 'retry', 'snooze', 'discard'].map((payload) => ({ payload })),
    );
    await eventually(async () => expect(await inspector.totals('docs')).toMatchObject({ completed: 3, dead: 1 }));
    await eventually(async () => expect(await registry.metrics()).toContain('reason="discarded"'));
    const labels = new Map<string, Set<string>>();
    for (const [, name, list] of (await registry.metrics()).matchAll(/^(delay_queue_\w+)\{(.*?)\}/gm)) {
      if (!labels.has(name!)) labels.set(name!, new Set(['instance', 'le']));
      for (const [, label] of list!.matchAll(/(\w+)=/g)) labels.get(name!)!.add(label!);
    }
    expect(expressions.length).toBeGreaterThan(25);
    expect(expressions.filter(([name]) => name.startsWith('DelayQueue'))).toHaveLength(7);
    for (const [where, expression] of expressions) {
      const names = expression.replace(/by \(.*?\)|\{.*?\}/g, '').match(/delay_queue_\w+/g)!;
      expect([where, names]).toEqual([where, names.filter((name) => labels.has(name))]);
      const asked = [...expression.matchAll(/by \((.*?)\)/g)].flatMap(([, list]) => list!.split(', '));
      const matched = [...expression.matchAll(/(\w+)=~?"/g)].map(([, label]) => label!);
      const known = names.flatMap((name) => [...labels.get(name)!]);
      expect([where, [...asked, ...matched].filter((label) => !known.includes(label))]).toEqual([where, []]);
    }
  });

  it('names every metric in the documentation', async () => {
    const { registry } = await measured('table');
    const docs = readFileSync('docs/observability.md', 'utf8');
    const names = (await registry.getMetricsAsJSON()).map(({ name }) => name);
    expect(names.filter((name) => !docs.includes(`\`${name}\``))).toEqual([]);
  });
});
