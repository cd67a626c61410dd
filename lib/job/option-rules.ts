import { DelayQueueError, InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from './duration.js';
import { summarizeError } from './error-record.js';
import { insteadOf } from './foreign-options.js';
import { nearestOption } from './near-names.js';

/** Puts one checked option into `resolved`. `field` says where it stands and begins the error message. */
export type OptionRule<R> = (resolved: R, value: unknown, field: string) => void;

/** One rule for every option of `O`: an option without a rule does not compile. */
export type OptionRules<O, R> = { readonly [K in keyof Required<O>]: OptionRule<R> };

/** Says where an option stands, such as `forRoot({ defaults: { lease } })`. */
export type OptionNaming = (option: string) => string;

/** So many options are named to somebody who gave something else than options. */
const MOST_LISTED = 5;

/**
 * Checks every option by its rule and refuses those without one, naming the nearest that there is. Inherited options are
 * not seen: an attacker who extends `Object.prototype` must not configure queues.
 *
 * @returns `resolved`
 * @throws InvalidOptionError, or what the rule throws
 */
export function readOptions<R>(
  options: unknown,
  rules: Readonly<Record<string, OptionRule<R>>>,
  resolved: R,
  naming: OptionNaming,
): R {
  return reading(naming, () => readEach(options, rules, resolved, naming));
}

function readEach<R>(
  options: unknown,
  rules: Readonly<Record<string, OptionRule<R>>>,
  resolved: R,
  naming: OptionNaming,
): R {
  // A Date, a Map or an array has no options to read, so it would silently mean "none".
  if (!isPlainObject(options)) {
    const known = Object.keys(rules);
    const list = known.length <= MOST_LISTED ? ` Known: ${known.join(', ')}.` : '';
    throw notOptions(options, whole(naming), list);
  }
  for (const option of Object.keys(options)) {
    if (!Object.hasOwn(rules, option)) throw unknownOption(option, Object.keys(rules), naming);
    const value = options[option];
    if (value !== undefined) rules[option]!(resolved, value, naming(option));
  }
  return resolved;
}

/** Text in the place of all options is not shown: it may be a URL with a password, or that password. */
export function notOptions(given: unknown, field: string, advice = ''): InvalidOptionError {
  const found = typeof given === 'string' ? 'text' : shown(given);
  return new InvalidOptionError(`${field}: options must be a plain object, but are ${found}.${advice}`);
}

/**
 * Reads what a caller gave.
 *
 * @throws InvalidOptionError where a getter or a proxy of his throws something
 */
export function reading<T>(naming: OptionNaming, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unreadable(cause, whole(naming));
  }
}

/** @returns what to throw when a getter or a proxy threw while this was read */
export function unreadable(cause: unknown, field: string): DelayQueueError {
  if (cause instanceof DelayQueueError) return cause;
  return new InvalidOptionError(`${field}: could not be read: ${summarizeError(cause)}`, { cause });
}

/** Names all options together. Those of an option have its name, without a place for their own. */
function whole(naming: OptionNaming): string {
  return naming('...').replace(/(?:\.|: )\.\.\.$/, '');
}

export function integer(value: unknown, min: number, max: number, field: string): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw new InvalidOptionError(`${field}: ${shown(value)} is not a whole number from ${min} to ${max}.`);
}

export function boolean(value: unknown, field: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidOptionError(`${field}: ${shown(value)} is neither true nor false.`);
}

export function oneOf<const T extends string>(value: unknown, choices: readonly T[], field: string): T {
  if ((choices as readonly unknown[]).includes(value)) return value as T;
  const known = choices.map((choice) => `'${choice}'`).join(', ');
  throw new InvalidOptionError(`${field}: ${shown(value)} is not one of ${known}.`);
}

/** Of this realm or another; class instances are not plain. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Names what was probably meant, or what to use here instead of an option that another library has. */
export function unknownOption(option: string, known: readonly string[], naming: OptionNaming): InvalidOptionError {
  const instead = insteadOf(option, known);
  const nearest = instead === undefined ? nearestOption(option, known) : undefined;
  const advice = instead ? ` Use here: ${instead}.` : nearest ? ` The nearest known one is "${nearest}".` : '';
  return new InvalidOptionError(
    `${whole(naming)}: unknown option ${shown(option)}.${advice} Known: ${known.join(', ')}.`,
  );
}
