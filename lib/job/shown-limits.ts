import type { QueueLimits, RateLimit } from './queue-limits.js';

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

const shownRate = ({ max, per }: RateLimit) => `${max}/${shownLength(per)}`;

/** Each limit by the name of its option, with its value as the command line takes it: `rateLimit`, `100/1m`. */
export function shownLimits({ globalConcurrency, rateLimit, groups, priorityStep }: QueueLimits): [string, string][] {
  const shown: [string, string | undefined][] = [
    ['globalConcurrency', globalConcurrency?.toString()],
    ['rateLimit', rateLimit && shownRate(rateLimit)],
    ['groups.concurrency', groups?.concurrency?.toString()],
    ['groups.rateLimit', groups?.rateLimit && shownRate(groups.rateLimit)],
    ['groups.retries', groups?.retries],
    ['priorityStep', priorityStep === undefined ? undefined : shownLength(priorityStep)],
  ];
  return shown.filter((limit): limit is [string, string] => limit[1] !== undefined);
}

export function limitsSentence(limits: QueueLimits | undefined): string {
  const words = limits ? shownLimits(limits).map(([name, value]) => `${name}=${value}`) : [];
  return words.length === 0 ? 'no limits' : words.join(' ');
}
