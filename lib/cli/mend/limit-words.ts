import type { QueueLimits, RateLimit } from '../../job/queue-limits.js';
import type { StoredLimits } from '../../inspection/limit-calls.js';
import { resolveLimits } from '../../job/queue-limits.js';
import { limitsSentence, shownLimits } from '../../job/shown-limits.js';
import { usage } from '../exit-codes.js';

// Limits as words of a command line: `rateLimit=100/1m groups.concurrency=1`. They are shown as they are given.

type Draft = { -readonly [K in keyof QueueLimits]: QueueLimits[K] };

/** What is no number stays as it is: the library refuses it, and names its field. */
const numberIn = (text: string) => (/^\d+$/.test(text) ? Number(text) : text) as number;

function rateIn(text: string): RateLimit {
  const [max = '', ...per] = text.split('/');
  return { max: numberIn(max), per: per.join('/') };
}

const WORDS: Readonly<Record<string, (limits: Draft, value: string) => void>> = {
  globalConcurrency: (limits, value) => void (limits.globalConcurrency = numberIn(value)),
  rateLimit: (limits, value) => void (limits.rateLimit = rateIn(value)),
  'groups.concurrency': (limits, value) => void (limits.groups = { ...limits.groups, concurrency: numberIn(value) }),
  'groups.rateLimit': (limits, value) => void (limits.groups = { ...limits.groups, rateLimit: rateIn(value) }),
  'groups.retries': (limits, value) => void (limits.groups = { ...limits.groups, retries: value as 'pass' | 'block' }),
  priorityStep: (limits, value) => void (limits.priorityStep = value === '0' ? 0 : value),
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
    WORDS[name]!(limits, value);
  }
  resolveLimits(limits, (option) => `--set ${option}`);
  return limits;
}

/** What holds, and what applications say instead. */
export function fieldsOf({ limits, setBy, config }: StoredLimits): (readonly [label: string, text: string])[] {
  const others = setBy === 'operator' ? [['config', limitsSentence(config)] as const] : [];
  return [['setBy', setBy], ...(limits ? shownLimits(limits) : []), ...others];
}
