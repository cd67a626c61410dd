import type { DelayQueueModuleOptions } from '../../lib/delay-queue.options.js';
import type { JobTracer } from '../../lib/delay-queue.tracer.js';
import type { HandlerOptions } from '../../lib/handlers/handler.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import type { EnqueueOptions } from '../../lib/job/enqueue-options.js';
import type { QueueDefaults, QueueRef } from '../../lib/job/queue-definition.js';
import { instantOf } from './call-rules.js';
import type { Role } from './fleet.js';
import { IN_BULK, LARGEST_BULK } from './plan.js';
import type { Configuration, EnqueueOperation, RunPlan } from './plan.js';
import { limitOptionsOf } from './limits.js';
import type { SimulatedProcess } from './process.js';
import { queuesOfWorkers } from './queues.js';
import { SENTINELS } from './sentinels.js';
import type { Trait } from './traits.js';

/** How long handlers may go on when a process is asked to end. */
export const DRAIN_MS = 3_000;
/** Of the workers' news about jobs, so many are kept. */
const FLEET_EVENTS = 50;
/** The backoff of all queues. */
export const RETRY_AFTER_MS = 200;
const HOST = 'simulated';
/** Where processes look for the Cluster when they start. */
const CLUSTER = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((host) => ({ host, port: 6379 }));
const DATABASE = 3;
const DEBOUNCE_MS = 400;
/** The longest burst of calls that are put off. */
export const DEBOUNCED_MS = 4 * DEBOUNCE_MS;
const MOST_REFUSED = 300_000;
const DEFINED: readonly Trait[] = ['defined', 'debounced', 'throttled', 'refusing'];
/** Six of them are more than one step may claim. */
const HEAVY_BYTES = 200_000;
/** So many come one after the other, and seldom: they cost most of the time of a run. */
const HEAVY_IN_A_ROW = 8;
const HEAVY_EVERY = 80;
/** Among the first ones of a bulk only: one that is called for again and again takes all memory otherwise. */
const HEAVY_IN_BULK = 2 * HEAVY_EVERY;

type Definitions = typeof import('../../lib/job/queue-definition.js');
type Backoffs = typeof import('../../lib/job/backoff.js');
type Driver = typeof import('ioredis');

/** The application in one process: how it calls the library, and what it gives it. */
export class Application {
  readonly #traits: ReadonlySet<Trait>;
  /** Of payloads whose id the definition makes. */
  readonly #ids = new Map<number, string>();
  #definition: QueueRef | undefined;
  #calls = 0;
  /** Told of a stored payload that no handler gets. */
  refused: ((n: number) => void) | undefined;
  /** Since when each job runs, with what stands around its handler; simulated ms. */
  readonly #tracedSince = new Map<string, number>();

  constructor(
    private readonly process: SimulatedProcess,
    private readonly configuration: Configuration,
    private readonly role: Role,
  ) {
    this.#traits = new Set(configuration.traits);
  }

  has(trait: Trait): boolean {
    return this.#traits.has(trait);
  }

  options(shards: number): DelayQueueModuleOptions {
    const { configuration } = this;
    const limited = limitOptionsOf(configuration, this.#isOther);
    const own = {
      ...(shards > 1 && { shards }),
      ...(this.has('tellsFleet') && { events: { keep: FLEET_EVENTS } }),
      ...limited['jobs'],
    };
    return {
      connection: this.#connection(),
      connect: this.has('eager') ? 'eager' : 'lazy',
      startupChecks: this.has('checked') ? 'warn' : 'off',
      shutdownHooksWarning: this.has('handed'),
      commandTimeout: configuration.commandTimeoutMs,
      drainTimeout: DRAIN_MS,
      defaults: {
        concurrency: configuration.concurrency,
        lease: configuration.leaseMs,
        attempts: configuration.attempts,
        backoff: this.#backoff(),
        ...boundsOf(configuration),
      },
      queues: { ...limited, ...(Object.keys(own).length > 0 && { jobs: own }) },
      ...this.#oddOptions(),
    };
  }

  /** By its name, or by its definition. */
  ref(queue: string): QueueRef {
    if (queue !== 'jobs' || !DEFINED.some((trait) => this.has(trait))) return queue;
    const { defineQueue } = this.process.loader.library<Definitions>('job/queue-definition');
    this.#definition ??= defineQueue('jobs', {
      schema: this.#schema(),
      id: (run: RunPlan) => this.#ids.get(run.n) ?? `unnamed${run.n}`,
      ...(this.has('debounced') && { debounce: { wait: DEBOUNCE_MS, maxWait: DEBOUNCED_MS } }),
      ...(this.has('throttled') && { throttle: DEBOUNCE_MS }),
    });
    return this.#definition;
  }

  /** As the definition of its queue makes it, where it makes something: the id, and when it is due. */
  defined(operation: EnqueueOperation): EnqueueOperation {
    const { queue, run, id, isInstant, isByContent, dueAt } = operation;
    const isLeftOut = run.n % 3 === 0 && !isInstant && !isByContent && dueAt === undefined;
    if (queue !== 'jobs' || !this.has('debounced') || !isLeftOut) return operation;
    this.#ids.set(run.n, id);
    return { ...operation, delay: DEBOUNCE_MS, isByDefinition: true };
  }

  /** Its schema takes no such payload: a caller hears it at once, and where it is stored all the same no handler gets it. */
  refuses({ n, kills }: RunPlan): boolean {
    // A payload that only a handler makes is none that a caller could mend.
    if (!this.has('refusing') || kills || n > MOST_REFUSED) return false;
    return this.role === 'worker' ? n % 11 === 5 : n % 11 === 7;
  }

  /** What is stored of a run. */
  payload(run: RunPlan, isByContent = false): RunPlan {
    if (isByContent) return run;
    const isHeavy = run.n % HEAVY_EVERY < HEAVY_IN_A_ROW && (run.n < IN_BULK || run.n % LARGEST_BULK < HEAVY_IN_BULK);
    if (this.has('heavy') && isHeavy) return { ...run, text: 'y'.repeat(HEAVY_BYTES) } as RunPlan;
    return this.has('compressed') && run.n % 2 === 0 ? ({ ...run, text: 'x'.repeat(300) } as RunPlan) : run;
  }

  /** What else a call says: what is so anyway. */
  stated(operation: EnqueueOperation): EnqueueOptions {
    const { expiresIn, isInstant } = operation;
    if (!this.has('stated')) return {};
    // A call with a delay that is made again after an outage may come when its moment has passed, and would be refused.
    const expires = expiresIn !== undefined &&
      isInstant && {
        expiresIn: undefined,
        expiresAt: instantOf(operation) + expiresIn,
      };
    return {
      attempts: this.configuration.attempts,
      backoff: this.#backoff(),
      context: this.#calls++ % 2 === 0 ? { user: 'somebody' } : null,
      ...expires,
    };
  }

  /** @param gaveUp notes that a job dies because nothing is worth another attempt */
  handlerOptions(gaveUp: (job: DelayedJob<RunPlan>) => void): Pick<HandlerOptions, 'retryIf' | 'backoff'> {
    if (!this.has('retryRules')) return {};
    const retryIf = (_: unknown, job: DelayedJob<RunPlan>) => {
      const { n } = job.payload;
      if (n % 5 === 1) throw new Error('planned');
      if (n % 5 === 2) return undefined as never;
      if (n % 5 !== 3) return true;
      gaveUp(job);
      return false;
    };
    return { retryIf: retryIf as HandlerOptions['retryIf'] & object, backoff: () => RETRY_AFTER_MS };
  }

  /** Follows each job without changing anything. */
  tracer(): JobTracer | undefined {
    if (!this.has('traced')) return undefined;
    return {
      publish: (_, send) => send({ traceparent: '00-1-2-01' }),
      carrier: () => undefined,
      process: async (what, handle) => {
        for (const run of what.runs) {
          this.#tracedSince.set(run.id, this.process.world.engine.now);
          // Nobody waits for it: a handler must begin also while Redis is silent.
          if (run.attempt > 1) void what.lastTrace(run.id).catch(() => undefined);
          run.trace = '00-3-4-01';
        }
        return handle();
      },
    };
  }

  /** When a run began whose handler begins now. */
  runningSince(id: string): number {
    return this.#tracedSince.get(id) ?? this.process.world.engine.now;
  }

  #connection(): DelayQueueModuleOptions['connection'] & object {
    const { cluster } = this.configuration;
    const { Redis, Cluster } = this.process.loader.package<Driver>('ioredis');
    if (this.has('ownClient') && !this.has('sentinels')) {
      return cluster
        ? (new Cluster(CLUSTER, { lazyConnect: true }) as never)
        : (new Redis({ host: HOST, port: 6379, lazyConnect: true }) as never);
    }
    if (this.has('sentinels')) return { ...SENTINELS, db: this.#database } as never;
    if (cluster) return { cluster: CLUSTER };
    const db = this.#database;
    return this.has('url') ? (`redis://${HOST}:6379/${db}` as never) : { host: HOST, port: 6379, db };
  }

  /** Every second worker. */
  get #isOther(): boolean {
    return /[13579]\+*$/.test(this.process.name);
  }

  get #database(): number {
    return this.has('otherDatabase') ? DATABASE : 0;
  }

  #oddOptions(): DelayQueueModuleOptions {
    const others = queuesOfWorkers(this.configuration);
    return {
      ...(this.has('consumesList') && this.role !== 'puller' && { consume: this.role === 'worker' ? others : false }),
      ...(this.has('context') && { contextProvider: this.#contextProvider() }),
      ...(this.has('middleware') && {
        middleware: [
          (_, next) => next(),
          async (_, next) => {
            await next();
          },
        ],
      }),
      ...(this.has('compressed') && { compressAbove: 100 }),
      ...(this.has('otherCodec') && { codec: this.has('valkey') ? [BYTES, PARTED, 'json'] : [PARTED, BYTES, 'json'] }),
      ...(this.has('durable') && { durability: 'fsync' }),
      ...(this.has('fewDeadLetters') && { deadLetters: { max: 2, maxAge: '3s' } }),
    };
  }

  #backoff() {
    return this.process.loader.library<Backoffs>('job/backoff').fixed(RETRY_AFTER_MS);
  }

  /** Answers now at once and now later. */
  #schema() {
    const validate = (value: unknown) => {
      const isRefused = this.refuses(value as RunPlan);
      if (isRefused && this.role === 'worker') this.refused?.((value as RunPlan).n);
      const answer = isRefused ? { issues: [{ message: 'planned' }] } : { value };
      return this.#calls++ % 2 === 0 ? answer : Promise.resolve(answer);
    };
    return { '~standard': { version: 1, vendor: 'simulated', validate } } as const;
  }

  /** Now and then it fails after its job, which concerns no job. */
  #contextProvider() {
    return {
      capture: () => (this.#calls++ % 2 === 0 ? { tenant: 'one' } : undefined),
      run: <R>(_: unknown, next: () => R): R => {
        const result = next();
        if (this.#calls++ % 3 === 0) throw new Error('planned');
        return result;
      },
    };
  }
}

/** @throws for what JSON has no text for */
function json(payload: unknown): string {
  if (payload === undefined) throw new Error('planned');
  return JSON.stringify(payload);
}

/** JSON, as bytes. */
const BYTES = {
  name: 'bytes',
  encode: (payload: unknown) => Buffer.from(json(payload)),
  decode: (data: Buffer): unknown => JSON.parse(data.toString('utf8')),
};

/** JSON with the sign in it that the library uses between texts of an answer. */
const PARTED = {
  name: 'parted',
  encode: (payload: unknown) => `${json(payload)}\u001e`,
  decode: (data: string): unknown => JSON.parse(data.slice(0, -1)),
};

function boundsOf({ maxSize, keptCount, keptMs }: Configuration): Pick<QueueDefaults, 'maxSize' | 'keepCompleted'> {
  return {
    ...(maxSize > 0 && { maxSize }),
    ...(keptCount > 0 && { keepCompleted: { count: keptCount, age: keptMs } }),
  };
}
