import { DelayQueueConsumer } from '../consumer/delay-queue.consumer.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { resolveModuleOptions } from '../delay-queue.options.js';
import type { DelayQueueModuleOptions, ResolvedModuleOptions } from '../delay-queue.options.js';
import type { HandlerDiscovery } from '../handlers/in-application.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { DelayQueueProducer } from '../producer/delay-queue.producer.js';
import { shown } from '../job/duration.js';
import { locationOf, placeOf } from '../redis/redis.client.js';
import { RedisConnection } from '../redis/redis.connection.js';
import { checkServer } from '../redis/server-check.js';
import { DelayQueueRegistry, functionHandler } from '../worker/delay-queue.registry.js';
import type { HandlerFunction } from '../worker/delay-queue.registry.js';
import { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { DelayQueueInstances } from './delay-queue.instances.js';
import { InstanceContext } from './instance-context.js';

export interface InstanceParts {
  /** As `forRoot()` takes them. */
  readonly options?: DelayQueueModuleOptions;
  readonly name?: string;
  /** Functions, by queue. With options of their own they are given to the registry instead. */
  readonly handlers?: Readonly<Record<string, HandlerFunction<any>>>;
  /** Instead of one that is made of the options. The instance opens and closes it. */
  readonly connection?: RedisConnection;
}

export interface Instance {
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  readonly consumer: DelayQueueConsumer;
  readonly registry: DelayQueueRegistry;
  readonly runner: DelayQueueRunner;
  readonly context: InstanceContext;
  /** Drains the handlers, waits for what producers have sent, and closes the connection. */
  close(): Promise<void>;
}

/**
 * Starts one instance beneath Nest: no container, no decorators, the same parts in the same order as `DelayQueueModule`.
 *
 * @throws what the boot of an application would throw; nothing is left open then
 */
export async function startInstance({
  options,
  name = DEFAULT_INSTANCE,
  handlers = {},
  connection,
}: InstanceParts = {}): Promise<Instance> {
  const instances = new DelayQueueInstances();
  instances.claim(name);
  const resolved = resolveModuleOptions(options, name);
  const context = makeContext(makeConnection(resolved, instances, connection), resolved, instances);
  const discover: HandlerDiscovery = async () => ({
    handlers: Object.entries(handlers).map(([queue, handle]) => functionHandler(queue, handle)),
    warnings: [],
  });
  const runner = new DelayQueueRunner(resolved, context, instances, discover);
  await instances.booting(() => openInstance(context));
  await runner.onModuleInit();
  runner.onApplicationBootstrap();
  return {
    producer: new DelayQueueProducer(context),
    inspector: new DelayQueueInspector(context),
    consumer: new DelayQueueConsumer(() => runner),
    registry: new DelayQueueRegistry(() => runner),
    runner,
    context,
    close: async () => {
      await runner.onModuleDestroy();
      await closeInstance(context);
    },
  };
}

export function makeConnection(
  options: ResolvedModuleOptions,
  instances: DelayQueueInstances,
  connection = connectionOf(options),
): RedisConnection {
  instances.onFailedBoot(() => connection.close());
  return connection;
}

function connectionOf(options: ResolvedModuleOptions): RedisConnection {
  const { name, unsetHost } = options;
  if (unsetHost !== undefined) {
    DelayQueueLogger.of(name).warn(
      `forRoot({ connection }): \`${unsetHost}\` has no value, so Redis is looked for on localhost. If it comes from an ` +
        'environment variable, look whether that is set; if localhost is meant, write it there, and this is not said.',
    );
  }
  return new RedisConnection(options);
}

/** What the services and the runner of an instance share. */
export function makeContext(
  connection: RedisConnection,
  options: ResolvedModuleOptions,
  instances: DelayQueueInstances,
): InstanceContext {
  const context = new InstanceContext(
    connection,
    options,
    (queue) => instances.definition(options.name, queue),
    () => instances.definedQueues(options.name),
    (queue) => instances.handledElsewhere(options.name, queue),
  );
  instances.onFailedBoot(() => context.durable.disconnect());
  warnOfSharedPlace(connection, options, instances);
  return context;
}

/** A name alone keeps two instances apart in this process only. */
function warnOfSharedPlace(
  { commands }: RedisConnection,
  { name, prefix }: ResolvedModuleOptions,
  instances: DelayQueueInstances,
): void {
  const place = placeOf(commands);
  const other = place === undefined ? undefined : instances.lieAt(`${place} ${prefix}`, name);
  if (other === undefined) return;
  DelayQueueLogger.of(name).warn(
    `Instances ${[other, name].sort().map(shown).join(' and ')} have the same database and prefix (${locationOf(commands)}, prefix ${shown(prefix)}), so they are one: each ` +
      'runs the jobs of the other, and pauses and dead letters are shared. Give one of them a `prefix` of its own in forRoot().',
  );
}

/**
 * Connects, checks the server, and settles the numbers of shards. With `connect: 'lazy'` the first two happen in the background,
 * too late to refuse anything, and the last with the first use of a queue.
 *
 * @throws UnavailableError, UnsafeServerError, ShardCountError, InvalidQueueError
 */
export async function openInstance(context: InstanceContext): Promise<void> {
  const { connection, options, initWatch } = context;
  initWatch?.end();
  const logger = DelayQueueLogger.of(options.name);
  const eager = options.connect === 'eager';
  await connection.open(eager);
  if (eager) {
    await checkServer(connection, options, logger);
    return context.open();
  }
  void connection.whenReady(2 ** 31 - 1).then(
    () => checkServer(connection, { ...options, startupChecks: 'warn' }, logger),
    () => undefined,
  );
}

/** Waits for what producers have sent, then closes the connection. The runner must have drained. */
export async function closeInstance(context: InstanceContext): Promise<void> {
  await context.close(context.options.commandTimeoutMs);
  context.connection.close();
}
