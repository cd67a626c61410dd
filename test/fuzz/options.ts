import fc from 'fast-check';
import { exponential, fixed, steps } from '../../lib/index.js';
import { MAX_DURATION_MS, MAX_TIMER_MS } from '../../lib/job/duration.js';
import { hostile, isName, nothingUseful, objectOf, plainName, spicedText, thrown, unboxed } from './values.js';

/** What one option may be, and what it may not. */
interface Option {
  readonly good: fc.Arbitrary<unknown>;
  readonly bad: fc.Arbitrary<unknown>;
}
type Options = Readonly<Record<string, Option>>;

/** Options, and whether one of them alone is wrong. What contradicts each other is for the spec to tell. */
export interface Mixture {
  readonly options: any;
  readonly isSpoilt: boolean;
}

const MOST_AT_ONCE = 5;
const NO_OPTIONS = ['dealy', '__proto__', 'constructor', 'toString', '', 'two\nlines', 'x'.repeat(3_000), '0'];

function some(table: Options, spoil: boolean): fc.Arbitrary<unknown> {
  const names = Object.keys(table);
  const chosen = fc.tuple(
    fc.subarray(names, { minLength: spoil ? 1 : 0, maxLength: Math.min(MOST_AT_ONCE, names.length) }),
    fc.nat(),
  );
  return chosen.chain(([some, which]) => {
    const values = some.map((name, n) => {
      const { good, bad } = table[name]!;
      // Left out by saying undefined; not where something must be wrong.
      const value =
        spoil && n === which % some.length ? bad : fc.oneof({ weight: 9, arbitrary: good }, fc.constant(undefined));
      return value.map((one) => [name, one] as const);
    });
    const prototype = fc.constantFrom(Object.prototype, null);
    return fc.tuple(fc.tuple(...values), prototype).map(([entries, of]) => objectOf(entries, of));
  });
}

export const goodOptions = (table: Options): fc.Arbitrary<any> => some(table, false);
export const badOptions = (table: Options): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 6, arbitrary: some(table, true) },
    fc.tuple(fc.constantFrom(...Object.keys(table)), thrown).map(([name, what]) =>
      Object.defineProperty({}, name, {
        enumerable: true,
        get: () => {
          throw what;
        },
      }),
    ),
    fc.constantFrom(...NO_OPTIONS).map((name) => objectOf([[name, 1]])),
    // None of these has an option to read.
    fc.constantFrom<unknown>(null, 5, 'delay', true, [], [1], new Map(), new Date(), Symbol('options'), 5n, () => 1),
    hostile,
  );
export const mixture = (table: Options): fc.Arbitrary<Mixture> =>
  fc.oneof(
    goodOptions(table).map((options) => ({ options, isSpoilt: false })),
    badOptions(table).map((options) => ({ options: unboxed(options), isSpoilt: true })),
  );

export function durationOption(min = 0, max = MAX_DURATION_MS): Option {
  const ms = fc.integer({ min, max });
  return {
    good: fc.oneof(
      // Where a moment may stand beside it, such a number is taken for one.
      ms.filter((one) => Math.abs(one - Date.now()) > 11 * 365 * 86_400_000),
      ms.map((one) => `${one}ms`),
      ms.map((one) => `PT${one / 1_000}S`).filter((text) => !text.includes('e')),
    ),
    bad: fc.oneof(
      nothingUseful,
      fc.constantFrom<unknown>(min - 1, max + 1, `${max + 1} ms`, '1 month', '5', true, {}, new Date(), '2030-01-01'),
    ),
  };
}

const whole = (min: number, max: number): Option => ({
  good: fc.integer({ min, max }),
  bad: fc.oneof(nothingUseful, fc.constantFrom<unknown>(min - 1, max + 1, min + 0.5, String(min), true)),
});
const flag: Option = { good: fc.boolean(), bad: fc.oneof(nothingUseful, fc.constantFrom<unknown>(0, 1, 'true', {})) };
const choice = (...words: string[]): Option => ({
  good: fc.constantFrom(...words),
  bad: fc.oneof(nothingUseful, fc.constantFrom<unknown>(words[0]!.toUpperCase(), `${words[0]} `, [words[0]], true)),
});
const moment: Option = {
  good: fc.oneof(
    // Between them numbers count as seconds, by mistake.
    fc.integer({ min: 0, max: 999_999_999 }),
    fc.integer({ min: 100_000_000_000, max: Date.now() + 3_000_000_000_000 }),
    fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }),
  ),
  bad: fc.oneof(nothingUseful, fc.constantFrom<unknown>('2030-01-01', 8.64e15, 1_700_000_000, true, {})),
};
const aFunction: Option = {
  good: fc.constantFrom(
    () => false,
    function named() {},
  ),
  bad: nothingUseful.filter((value) => typeof value !== 'function'),
};

const backoff: Option = {
  good: fc.oneof(
    fc.integer({ min: 1, max: 10_000 }).map((first) => exponential(first, { max: first * 10, jitter: 0.5 })),
    fc.nat(10_000).map((delay) => fixed(delay)),
    fc.array(fc.nat(10_000), { minLength: 1, maxLength: 100 }).map((delays) => steps(delays)),
    fc.constantFrom(
      { type: 'exponential', first: '1s', factor: 100 },
      { type: 'fixed', delay: 'P1D' },
      { type: 'steps', delays: ['1s'] },
    ),
  ),
  bad: fc.oneof(
    nothingUseful,
    fc.constantFrom<unknown>(
      '1s',
      1_000,
      { type: 'linear' },
      { type: 'fixed' },
      { type: 'fixed', delay: -1 },
      { type: 'fixed', delay: 1, jitter: 1 },
      { type: 'steps', delays: [] },
      { type: 'steps', delays: Array.from({ length: 101 }, () => 1) },
      { type: 'steps', delays: [1, 'x'] },
      { type: 'exponential', first: 0 },
      { type: 'exponential', first: 5, max: 1 },
      { type: 'exponential', first: 5, jitter: 2 },
      { type: 'exponential', first: 5, factor: NaN },
      { type: '__proto__' },
    ),
  ),
};

const contextText = fc.oneof(
  fc.string({ maxLength: 20 }),
  spicedText.map((text) => text.slice(0, 50)),
);
export const context: Option = {
  good: fc.oneof(
    fc.constant(null),
    fc
      .uniqueArray(
        fc.tuple(fc.oneof(contextText, fc.constantFrom('__proto__', 'constructor', 'toString')), contextText),
        { selector: ([key]) => key, maxLength: 8 },
      )
      .map((entries) => objectOf(entries)),
  ),
  bad: fc.oneof(
    nothingUseful.filter((value) => value !== null && !isEmptyMap(value)),
    fc.constantFrom<unknown>(
      'text',
      5,
      { a: 1 },
      { a: null },
      { a: undefined },
      { a: 'x'.repeat(4_096) },
      objectOf([['__proto__', {}]]),
    ),
    fc.constant(Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`k${n}`, '']))),
  ),
};

function isEmptyMap(value: unknown): boolean {
  try {
    return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
  } catch {
    return false;
  }
}

const ids: Option = {
  good: plainName,
  bad: fc
    .oneof(nothingUseful, fc.constantFrom<unknown>(5, true, {}), spicedText)
    .filter((id) => !isName(id, 256, { ends: false })),
};

const durability: Option = {
  good: fc.oneof(
    fc.constantFrom('async', 'fsync'),
    fc.record({ replicas: fc.integer({ min: 1, max: 100 }), timeout: durationOption(1, 1_000).good }),
  ),
  bad: fc.oneof(
    nothingUseful,
    fc.constantFrom<unknown>(
      'FSYNC',
      true,
      1,
      {},
      { replicas: 0 },
      { replicas: '1' },
      { timeout: 1 },
      { replicas: 1, timeout: 0 },
      { replicas: 1, acks: 1 },
    ),
  ),
};

const JOB: Options = {
  attempts: whole(1, 1_000),
  backoff,
  timeout: durationOption(1, MAX_TIMER_MS),
  expiresIn: durationOption(1),
  keepExpired: flag,
  uniqueFor: durationOption(),
  onDead: choice('replace', 'keep'),
};

export const ENQUEUE: Options = {
  ...JOB,
  delay: durationOption(),
  at: moment,
  id: ids,
  idFromPayload: flag,
  dueAt: choice('keep'),
  onDuplicate: choice('keep', 'replace', 'reschedule', 'reject'),
  maxWait: durationOption(),
  expiresAt: moment,
  context,
  durability,
};

const KEEP: Options = { count: whole(1, 1_000_000), age: durationOption(1) };
const keepCompleted: Option = {
  good: fc.oneof(fc.constant(false), goodOptions(KEEP)),
  bad: fc.oneof(badOptions(KEEP), fc.constant(true)),
};

const QUEUE: Options = {
  ...JOB,
  concurrency: whole(1, 10_000),
  lease: durationOption(100, 86_400_000),
  delay: durationOption(),
  maxSize: whole(1, 1_000_000_000),
  keepCompleted,
};

const schema: Option = {
  good: fc.constant({ '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } }),
  bad: fc.oneof(
    nothingUseful,
    fc.constantFrom<unknown>({}, { '~standard': null }, { '~standard': { version: 2, validate: () => 1 } }),
  ),
};
const DEBOUNCE: Options = { maxWait: durationOption() };

export const DEFINITION: Options = {
  ...QUEUE,
  schema,
  id: aFunction,
  debounce: {
    good: goodOptions(DEBOUNCE).map((options) => Object.assign(options, { wait: 5 })),
    bad: fc.oneof(badOptions(DEBOUNCE), goodOptions(DEBOUNCE)),
  },
  throttle: durationOption(1),
};

const middleware: Option = {
  good: fc.constantFrom([], [() => undefined]),
  bad: fc.oneof(
    nothingUseful.filter((value) => !(Array.isArray(value) && value.length === 0)),
    fc.constantFrom<unknown>([null], 'x', { 0: () => 1 }),
  ),
};

const BATCH: Options = { wait: durationOption(0, 3_600_000) };
export const HANDLER: Options = {
  attempts: JOB['attempts']!,
  timeout: JOB['timeout']!,
  concurrency: QUEUE['concurrency']!,
  lease: QUEUE['lease']!,
  keepCompleted,
  backoff: {
    good: fc.oneof(
      backoff.good,
      fc.constant(() => 5),
    ),
    bad: backoff.bad.filter((value) => typeof value !== 'function'),
  },
  retryIf: aFunction,
  batch: {
    good: goodOptions(BATCH).chain((options) =>
      fc.integer({ min: 1, max: 200 }).map((size) => Object.assign(options, { size })),
    ),
    bad: fc.oneof(
      badOptions(BATCH),
      fc.constantFrom<unknown>(true, 10, { wait: 1 }, { size: 0 }, { size: 201 }, { size: '5' }),
    ),
  },
  middleware,
  instance: {
    good: plainName,
    bad: nothingUseful.filter((value) => typeof value !== 'string' || value === ''),
  },
};

const queueNames = (option: Option): Option => ({
  good: fc
    .uniqueArray(
      fc.tuple(
        plainName.filter((name) => isName(name, 128, { ends: true })),
        option.good,
      ),
      { selector: ([name]) => name, maxLength: 3 },
    )
    .map((entries) => objectOf(entries)),
  bad: fc.oneof(
    fc
      .tuple(
        plainName.filter((name) => isName(name, 128, { ends: true })),
        option.bad,
      )
      .map((entry) => objectOf([entry])),
    fc.tuple(fc.constantFrom('', ' a', 'a{b}', '\n', 'x'.repeat(129)), option.good).map((entry) => objectOf([entry])),
    fc.constantFrom<unknown>(null, [], 5, 'mail', new Map([['mail', {}]])),
  ),
});
const SETTINGS: Options = { ...QUEUE, shards: whole(1, 256) };
const DEAD_LETTERS: Options = { max: whole(1, 10_000_000), maxAge: durationOption(1) };
const codec = (name: unknown) => ({ name, encode: () => '', decode: () => 1 });

export const MODULE: Options = {
  connection: {
    good: fc.constantFrom<unknown>(
      'redis://127.0.0.1:6379',
      'rediss://user:secret@example.com/2',
      'memory://x',
      {},
      { host: 'example.com', port: 1 },
      { host: '::1' },
      { path: '/run/redis.sock' },
      { sentinels: [{ host: 'a' }], name: 'm' },
      { cluster: [{ host: 'a' }] },
      { duplicate: () => undefined, options: {} },
    ),
    bad: fc.oneof(
      spicedText.filter((text) => !/^(rediss?|memory):\/\//.test(text)),
      fc.constantFrom<unknown>(
        null,
        5,
        [],
        Symbol('url'),
        new Map(),
        'http://a',
        'redis://:99999999',
        'redis://a?keyPrefix=b',
        { keyPrefix: 'b' },
        { cluster: [] },
        { cluster: [{}], redisOptions: { keyPrefix: 'b' } },
        { sentinels: [{}] },
        { sentinels: 5, name: 'm' },
        { sentinels: ['a'], name: 'm' },
        { host: 'redis://a' },
        { host: 'me@a' },
        { cluster: [{ host: 'a b' }] },
        { path: 'redis://a' },
        { duplicate: () => undefined, options: null },
        { duplicate: () => undefined, options: { keyPrefix: 'b' } },
      ),
      hostile,
    ),
  },
  prefix: {
    good: plainName.filter((name) => isName(name, 64, { ends: true })),
    bad: fc.oneof(nothingUseful, spicedText).filter((name) => !isName(name, 64, { ends: true })),
  },
  defaults: { good: goodOptions(QUEUE), bad: badOptions(QUEUE) },
  queues: queueNames({ good: goodOptions(SETTINGS), bad: badOptions(SETTINGS) }),
  consume: {
    good: fc.oneof(
      fc.boolean(),
      fc.array(
        plainName.filter((name) => isName(name, 128, { ends: true })),
        { maxLength: 3 },
      ),
    ),
    bad: fc.oneof(
      nothingUseful.filter((value) => !(Array.isArray(value) && value.length === 0)),
      fc.constantFrom<unknown>('mail', [''], [null], 1),
    ),
  },
  drainTimeout: durationOption(0, MAX_TIMER_MS),
  connectTimeout: durationOption(1, MAX_TIMER_MS),
  // From 1 ms on, but waits for durability must fit into it.
  commandTimeout: { good: durationOption(1_000, MAX_TIMER_MS).good, bad: durationOption(1, MAX_TIMER_MS).bad },
  connect: choice('eager', 'lazy'),
  startupChecks: choice('strict', 'warn', 'off'),
  durability,
  codec: {
    good: fc.constantFrom<unknown>('json', ['json'], codec('mine'), [codec('mine'), 'json', codec('old')]),
    bad: fc.oneof(
      nothingUseful,
      fc.constantFrom<unknown>('JSON', ['json', 'json'], {}, codec('json'), codec(''), codec('two words'), codec(5), [
        null,
      ]),
    ),
  },
  compressAbove: whole(1, 268_435_456),
  maxPayloadBytes: whole(1, 268_435_456),
  deadLetters: { good: goodOptions(DEAD_LETTERS), bad: badOptions(DEAD_LETTERS) },
  globalEnhancers: choice('all', 'pipes', 'none'),
  middleware,
  contextProvider: {
    good: fc.constant({ capture: () => undefined, run: (_: unknown, next: () => unknown) => next() }),
    bad: fc.oneof(nothingUseful, fc.constantFrom<unknown>({}, { capture: () => undefined }, true)),
  },
  strictQueues: flag,
  shutdownHooksWarning: flag,
};
