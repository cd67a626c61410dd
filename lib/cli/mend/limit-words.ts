import type { QueueLimits, RateLimit } from '../../job/queue-limits.js';
import type { StoredLimits } from '../../inspection/limit-calls.js';
import { resolveLimits } from '../../job/queue-limits.js';
import { usage } from '../exit-codes.js';

// Limits as words of a command line: `rateLimit=100/1m groups.concurrency=1`. They are shown as they are given.

interface Word {
  readonly put: (limits: Draft, value: string) => void;
  readonly of: (limits: QueueLimits) => string | undefined;
}

type Draft = { -readonly [K in keyof QueueLimits]: QueueLimits[K] };

/** What is no number stays as it is: the library refuses it, and names its field. */
const numberIn = (text: string) => (/^\d+$/.test(text) ? Number(text) : text) as number;
const shownNumber = (value: number | undefined) => (value === undefined ? undefined : String(value));

function rateIn(text: string): RateLimit {
  const [max = '', ...per] = text.split('/');
  return { max: numberIn(max), per: per.join('/') };
}

const shownRate = (rate: RateLimit | undefined) => (rate ? `${rate.max}/${shownLength(rate.per)}` : undefined);

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
];

/** Of the greatest unit in which it is whole, so that it can be given again. */
function shownLength(value: number | string): string {
  const ms = Number(value);
  const [unit, size] = UNITS.find(([, one]) => ms > 0 && ms % one === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

const WORDS: Readonly<Record<string, Word>> = {
  globalConcurrency: {
    put: (limits, value) => void (limits.globalConcurrency = numberIn(value)),
    of: ({ globalConcurrency }) => shownNumber(globalConcurrency),
  },
  rateLimit: {
    put: (limits, value) => void (limits.rateLimit = rateIn(value)),
    of: ({ rateLimit }) => shownRate(rateLimit),
  },
  'groups.concurrency': {
    put: (limits, value) => void (limits.groups = { ...limits.groups, concurrency: numberIn(value) }),
    of: ({ groups }) => shownNumber(groups?.concurrency),
  },
  'groups.rateLimit': {
    put: (limits, value) => void (limits.groups = { ...limits.groups, rateLimit: rateIn(value) }),
    of: ({ groups }) => shownRate(groups?.rateLimit),
  },
  'groups.retries': {
    put: (limits, value) => void (limits.groups = { ...limits.groups, retries: value as 'pass' | 'block' }),
    of: ({ groups }) => groups?.retries,
  },
  priorityStep: {
    put: (limits, value) => void (limits.priorityStep = value === '0' ? 0 : value),
    of: ({ priorityStep }) => (priorityStep === undefined ? undefined : shownLength(priorityStep)),
  },
};

/** @throws CommandError for a word that is no limit, or comes twice; InvalidOptionError, InvalidDelayError for its value */
export function limitsIn(words: readonly string[]): QueueLimits {
  const limits: Draft = {};
  const seen = new Set<string>();
  for (const word of words) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(word) ?? [];
    if (!Object.hasOwn(WORDS, name)) {
      const known = 'globalConcurrency=20, rateLimit=100/1m, groups.concurrency=1, groups.rateLimit=5/1s, groups.retries=block, priorityStep=1m'; // prettier-ignore
      throw usage(`--set: "${word}" is no limit. Limits are such as ${known}.`);
    }
    if (seen.has(name)) throw usage(`--set: ${name} is given twice.`);
    seen.add(name);
    WORDS[name]!.put(limits, value);
  }
  resolveLimits(limits, (option) => `--set ${option}`);
  return limits;
}

/** Each limit with its value. */
export function wordsOf(limits: QueueLimits | undefined): [name: string, value: string][] {
  return Object.entries(WORDS).flatMap(([name, word]): [string, string][] => {
    const value = limits && word.of(limits);
    return value === undefined ? [] : [[name, value]];
  });
}

export function sentenceOf(limits: QueueLimits | undefined): string {
  const words = wordsOf(limits).map(([name, value]) => `${name}=${value}`);
  return words.length === 0 ? 'no limits' : words.join(' ');
}

/** What holds, and what applications say instead. */
export function fieldsOf({ limits, setBy, config }: StoredLimits): (readonly [label: string, text: string])[] {
  const others = setBy === 'operator' ? [['config', sentenceOf(config)] as const] : [];
  return [['setBy', setBy], ...wordsOf(limits), ...others];
}
