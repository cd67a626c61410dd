import { InvalidOptionError, StoredDataError } from '../delay-queue.errors.js';
import { random as systemRandom } from '../time-and-randomness.js';
import { type Duration, MAX_DURATION_MS, parseDuration, shown } from './duration.js';

/** `first`, `first * factor`, `first * factor²`... up to `max`, each spread by `jitter`. Times in ms. */
export interface ExponentialBackoff {
  readonly type: 'exponential';
  readonly first: number;
  readonly factor: number;
  readonly max?: number;
  readonly jitter: number;
}

/** The same delay before every attempt, in ms. */
export interface FixedBackoff {
  readonly type: 'fixed';
  readonly delay: number;
}

/** One delay after another, in ms; the last one repeats. */
export interface StepsBackoff {
  readonly type: 'steps';
  readonly delays: readonly number[];
}

/** How long to wait before the next attempt: plain data, so that it can be stored with a job. */
export type Backoff = ExponentialBackoff | FixedBackoff | StepsBackoff;

export interface ExponentialOptions {
  /** Longest delay. Default none. */
  max?: Duration;
  /** What each delay is multiplied by to get the next: 1 to 100. Default 2. */
  factor?: number;
  /** 0 to 1: with 0.2 a delay is 20 % shorter to 20 % longer, so that jobs that failed together part. Default 0. */
  jitter?: number;
}

const MAX_STEPS = 100;

/**
 * Delays that grow: `exponential('1s', { max: '1h', jitter: 0.2 })`.
 *
 * @throws InvalidDelayError, InvalidOptionError
 */
export function exponential(first: Duration, options: ExponentialOptions = {}): ExponentialBackoff {
  return makeExponential(first, options, 'exponential()');
}

/**
 * The same delay each time: `fixed('30s')`.
 *
 * @throws InvalidDelayError
 */
export function fixed(delay: Duration): FixedBackoff {
  return makeFixed(delay, 'fixed()');
}

/**
 * One delay after another, the last one repeating: `steps(['10s', '1m', '5m'])`.
 *
 * @throws InvalidDelayError, InvalidOptionError
 */
export function steps(delays: readonly Duration[]): StepsBackoff {
  return makeSteps(delays, 'steps()');
}

/**
 * @param attempt number of the attempt that just failed, from 1
 * @param random in [0, 1)
 * @returns whole ms, never negative and never above `max`
 */
export function backoffDelay(backoff: Backoff, attempt: number, random: () => number = systemRandom): number {
  switch (backoff.type) {
    case 'fixed':
      return backoff.delay;
    case 'steps':
      return backoff.delays[Math.min(Math.max(attempt, 1), backoff.delays.length) - 1]!;
    case 'exponential': {
      const max = backoff.max ?? MAX_DURATION_MS;
      const base = Math.min(backoff.first * backoff.factor ** Math.max(attempt - 1, 0), max);
      const spread = base * (1 + backoff.jitter * (2 * random() - 1));
      // Mirrored at the top instead of cut: a cut would send half of all jobs that wait the longest delay back at one moment.
      return Math.round(spread > max ? 2 * max - spread : spread);
    }
  }
}

/**
 * Checks a backoff that may come from anywhere, such as a configuration file.
 *
 * @param field where it stands; begins the error message
 * @returns a frozen copy
 * @throws InvalidOptionError, InvalidDelayError
 */
export function assertBackoff(value: unknown, field: string): Backoff {
  if (typeof value === 'function') {
    throw new InvalidOptionError(
      `${field}: a function cannot be stored. Put it on the handler, @OnDelayed(queue, { backoff }), ` +
        'or use exponential(), fixed() or steps().',
    );
  }
  if (typeof value === 'object' && value !== null && 'type' in value) {
    const { type, ...rest } = value as Record<string, unknown>;
    switch (type) {
      case 'exponential': {
        const { first, ...options } = rest;
        if (first === undefined && 'delay' in options) throw bullBackoff(options['delay'], field);
        return makeExponential(first, options, field);
      }
      case 'fixed': {
        const { delay, ...others } = rest;
        refuseOthers(others, field, 'delay');
        return makeFixed(delay, `${field}.delay`);
      }
      case 'steps': {
        const { delays, ...others } = rest;
        refuseOthers(others, field, 'delays');
        return makeSteps(delays, `${field}.delays`);
      }
    }
  }
  throw new InvalidOptionError(`${field}: ${shown(value)} is not a backoff. Use exponential(), fixed() or steps().`);
}

/** The form that BullMQ has. */
function bullBackoff(delay: unknown, field: string): InvalidOptionError {
  const given = typeof delay === 'number' || typeof delay === 'string' ? shown(delay) : 'delay';
  return new InvalidOptionError(
    `${field}: { type: 'exponential', delay } is not known here. Use exponential(${given}), or with options ` +
      'exponential(delay, { max, factor, jitter }).',
  );
}

/** A few bytes of JSON for the header of a job: `['e', first, factor, max | null, jitter]`, `['f', delay]`, `['s', ...delays]`. */
export function encodeBackoff(backoff: Backoff): unknown[] {
  switch (backoff.type) {
    case 'exponential':
      return ['e', backoff.first, backoff.factor, backoff.max ?? null, backoff.jitter];
    case 'fixed':
      return ['f', backoff.delay];
    case 'steps':
      return ['s', ...backoff.delays];
  }
}

/**
 * The reverse of `encodeBackoff()`.
 *
 * @throws StoredDataError for what this version does not know
 */
export function decodeBackoff(encoded: unknown): Backoff {
  const [kind, ...rest] = Array.isArray(encoded) ? (encoded as unknown[]) : [];
  try {
    if (kind === 'e' && rest.length === 4) {
      const [first, factor, max, jitter] = rest;
      return makeExponential(first, { factor, max: max ?? undefined, jitter }, 'backoff');
    }
    if (kind === 'f' && rest.length === 1) return makeFixed(rest[0], 'backoff');
    if (kind === 's') return makeSteps(rest, 'backoff');
  } catch (cause) {
    throw new StoredDataError('The stored backoff of a job is out of range.', { cause });
  }
  throw new StoredDataError('The stored backoff of a job is of a kind that this version does not know.');
}

function makeExponential(first: unknown, options: object, field: string): ExponentialBackoff {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(`${field}: options must be an object, but are ${shown(options)}.`);
  }
  const { max, factor = 2, jitter = 0, ...others } = options as Record<string, unknown>;
  refuseOthers(others, field, 'first, max, factor, jitter');
  // From 0 it would never grow.
  const firstMs = parseDuration(first, `${field}, first delay`, { min: 1 });
  const maxMs = max === undefined ? undefined : parseDuration(max, `${field}, max`);
  if (maxMs !== undefined && maxMs < firstMs) {
    throw new InvalidOptionError(`${field}: max (${maxMs} ms) is below the first delay (${firstMs} ms).`);
  }
  const checkedFactor = numberBetween(factor, 1, 100, `${field}, factor`);
  const checkedJitter = numberBetween(jitter, 0, 1, `${field}, jitter`);
  return Object.freeze({
    type: 'exponential',
    first: firstMs,
    factor: checkedFactor,
    ...(maxMs === undefined ? {} : { max: maxMs }),
    jitter: checkedJitter,
  });
}

function makeFixed(delay: unknown, field: string): FixedBackoff {
  return Object.freeze({ type: 'fixed', delay: parseDuration(delay, field) });
}

function makeSteps(delays: unknown, field: string): StepsBackoff {
  if (!Array.isArray(delays) || delays.length < 1 || delays.length > MAX_STEPS) {
    const what = Array.isArray(delays) ? `${delays.length} delays` : shown(delays);
    throw new InvalidOptionError(`${field}: needs an array of 1 to ${MAX_STEPS} delays, but got ${what}.`);
  }
  const ms = Array.from(delays, (delay: unknown, i) => parseDuration(delay, `${field}[${i}]`));
  return Object.freeze({ type: 'steps', delays: Object.freeze(ms) });
}

function numberBetween(value: unknown, min: number, max: number, field: string): number {
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw new InvalidOptionError(`${field}: ${shown(value)} is not a number from ${min} to ${max}.`);
}

function refuseOthers(others: object, field: string, known: string): void {
  const [other] = Object.keys(others);
  if (other !== undefined) throw new InvalidOptionError(`${field}: unknown option ${shown(other)}. Known: ${known}.`);
}
