import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { Provider } from '@nestjs/common';
import {
  DelayQueueHealth,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  getDelayQueueToken,
  InjectDelayQueue,
} from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// A private server, because the clients of this process are counted.
const here = inAWorld({});
const forRoot = (options: DelayQueueRootOptions = {}) =>
  DelayQueueModule.forRoot({ connection: here.world.connection, prefix: here.world.prefix, ...options });
const eu = (options: DelayQueueRootOptions = {}) => forRoot({ name: 'eu', prefix: euPrefix(), ...options });
const euPrefix = () => `${here.world.prefix}-eu`;

describe('two instances in one application', () => {
  @Injectable()
  class Both {
    constructor(
      readonly producer: DelayQueueProducer,
      @InjectDelayQueue('eu') readonly euProducer: DelayQueueProducer,
      @InjectDelayQueue('eu', DelayQueueInspector) readonly euInspector: DelayQueueInspector,
    ) {}
  }

  it('are injected by class, by @InjectDelayQueue and by token', async () => {
    const app = await here.boot({ imports: [forRoot(), eu()], providers: [Both] });
    const both = app.get(Both);
    expect(app.get(DelayQueueProducer)).toBe(both.producer);
    expect(app.get(getDelayQueueToken())).toBe(both.producer);
    expect(app.get(getDelayQueueToken('eu'))).toBe(both.euProducer);
    expect(app.get(getDelayQueueToken('eu', DelayQueueInspector))).toBe(both.euInspector);
    expect(both.euProducer).not.toBe(both.producer);
    expect(both.euInspector).toBeInstanceOf(DelayQueueInspector);
  });

  it('store apart, and each runs the handlers that name it', async () => {
    const runs: string[] = [];
    const note = (instance: string) => (_: unknown, job: DelayedJob) => void runs.push(`${instance}:${job.id}`);
    const app = await here.boot({
      imports: [forRoot(), eu()],
      providers: [Both, handlerClass('mail', note('here')), handlerClass('mail', note('eu'), { instance: 'eu' })],
    });
    const { producer, euProducer, euInspector } = app.get(Both);
    await producer.enqueue('mail', {}, { id: 'a' });
    await euProducer.enqueue('mail', {}, { id: 'b' });
    await eventually(() => expect(runs.sort()).toEqual(['eu:b', 'here:a']));

    await euProducer.enqueue('mail', {}, { id: 'later', delay: '1h' });
    expect(await here.world.redis.hkeys(`${euPrefix()}:{mail}:jobs`)).toEqual(['later']);
    expect(await producer.get('mail', 'later')).toBeUndefined();
    expect((await euInspector.counts('mail')).delayed).toBe(1);
  });

  it.each([
    ['one database and one prefix', () => ({ prefix: here.world.prefix }), true],
    ['two prefixes', () => ({}), false],
    ['two databases', () => ({ prefix: here.world.prefix, connection: `${here.world.url}/1` }), false],
    ['stores in memory', () => ({ prefix: here.world.prefix, connection: 'memory://' as const }), false],
  ])('that have %s', async (_, options, isOne) => {
    const log: string[] = [];
    await here.boot({ imports: [forRoot(), eu(options())] }, log);
    const { world } = here;
    const said = `Instances "default" and "eu" have the same database and prefix (127.0.0.1:${new URL(world.url).port}, database 0, prefix "${world.prefix}"), so they are one: each runs the jobs of the other, and pauses and dead letters are shared. Give one of them a \`prefix\` of its own in forRoot().`;
    expect(log.filter((line) => line.includes('so they are one'))).toEqual(isOne ? [`warn ${said} DelayQueue`] : []);
  });

  it('have two clients each, which both close', async () => {
    const app = await here.boot({ imports: [forRoot(), eu()] });
    expect(await here.world.clientNames()).toEqual([
      'dq:default:commands',
      'dq:default:wake',
      'dq:eu:commands',
      'dq:eu:wake',
    ]);
    await app.close();
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });

  it('have a health of their own', async () => {
    const app = await here.boot({ imports: [forRoot(), eu({ connection: 'redis://127.0.0.1:1', connect: 'lazy' })] });
    expect((await app.get(DelayQueueHealth).check()).status).toBe('up');
    const health: DelayQueueHealth = app.get(getDelayQueueToken('eu', DelayQueueHealth));
    expect((await health.check()).status).toBe('down');
  });
});

describe('boot fails', () => {
  it.each([
    ['twice without a name', () => [forRoot(), forRoot({ prefix: 'other' })], 'without a name'],
    ['twice with one name', () => [forRoot(), eu(), eu({ prefix: 'other' })], 'with the name "eu"'],
    ['again in a feature module', () => [forRoot(), nested(forRoot({ isGlobal: false }))], 'without a name'],
    [
      'again as forRootAsync()',
      () => [forRoot(), DelayQueueModule.forRootAsync({ useFactory: () => ({ connection: here.world.connection }) })],
      'without a name',
    ],
  ])('when forRoot() is imported %s', async (_, imports, which) => {
    const boot = here.boot({ imports: imports() });
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_DUPLICATE_INSTANCE' });
    await expect(boot).rejects.toThrow(`imported twice ${which}`);
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });

  const noop = () => undefined;
  it.each<[string, string, RegExp, () => Provider[]]>([
    [
      'names an instance that nobody declares',
      'ERR_DQ_UNKNOWN_INSTANCE',
      /TestHandlers\.run.*"us".*"default"/,
      () => [handlerClass('mail', noop, { instance: 'us' })],
    ],
    [
      'has an option that makes no sense',
      'ERR_DQ_INVALID_HANDLER',
      /TestHandlers\.run.*{ lease }.*"soon"/,
      () => [handlerClass('mail', noop, { lease: 'soon' })],
    ],
    [
      'is the second one of its queue',
      'ERR_DQ_DUPLICATE_HANDLER',
      /"mail" has two handlers: .*TestHandlers\.run and .*TestHandlers\.run/,
      () => [handlerClass('mail', noop), handlerClass('mail', noop)],
    ],
  ])('when a handler %s, and leaves no connection', async (_, code, message, providers) => {
    const boot = here.boot({ imports: [forRoot()], providers: providers() });
    await expect(boot).rejects.toMatchObject({ code });
    await expect(boot).rejects.toThrow(message);
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });
});

it('one dynamic module imported in two places is one instance', async () => {
  const root = forRoot();
  await here.boot({ imports: [root, nested(root)] });
  expect(await here.world.clientNames()).toEqual(['dq:default:commands', 'dq:default:wake']);
});

it('several applications in one process do not disturb each other', async () => {
  const seen: Record<string, string[]> = { one: [], two: [] };
  const boot = (name: 'one' | 'two') =>
    here.boot({
      imports: [forRoot({ prefix: `${here.world.prefix}-${name}` })],
      providers: [handlerClass('mail', (_, job) => void seen[name]!.push(job.id))],
    });
  const [one, two] = await Promise.all([boot('one'), boot('two')]);
  await one.get(DelayQueueProducer).enqueue('mail', {}, { id: 'a' });
  await two.get(DelayQueueProducer).enqueue('mail', {}, { id: 'b' });
  await eventually(() => expect(seen).toEqual({ one: ['a'], two: ['b'] }));

  await one.close();
  await two.get(DelayQueueProducer).enqueue('mail', {}, { id: 'c' });
  await eventually(() => expect(seen).toEqual({ one: ['a'], two: ['b', 'c'] }));
});

function nested(root: ReturnType<typeof forRoot>) {
  @Module({ imports: [root] })
  class Feature {}
  return Feature;
}
