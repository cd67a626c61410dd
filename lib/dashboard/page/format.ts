// Numbers, durations and times as people read them. Pure functions: the clock and the zone are arguments.

const NUMBER = new Intl.NumberFormat('en');

export function count(value: number): string {
  return NUMBER.format(value);
}

/** `jobs(1)` is "1 job". */
export function jobs(value: number): string {
  return `${count(value)} ${value === 1 ? 'job' : 'jobs'}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** The two largest units: "3 d 4 h", "1 min 20 s", "4.2 s", "340 ms". */
export function duration(ms: number): string {
  const size = Math.abs(ms);
  if (size < 1_000) return `${Math.round(size)} ms`;
  if (size < 9_950) return `${(size / 1_000).toFixed(1).replace(/\.0$/, '')} s`;
  let left = Math.round(size / 1_000) * 1_000;
  const parts: string[] = [];
  for (const [unit, width] of UNITS) {
    const many = Math.floor(left / width);
    if (many > 0) parts.push(`${many} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
    left -= many * width;
  }
  return parts.join(' ');
}

/** One unit: "3 d", "4 h", "20 s". */
export function shortDuration(ms: number): string {
  const size = Math.abs(ms);
  const [unit, width] = UNITS.find(([, most]) => size >= most) ?? ['ms', 1];
  return `${Math.floor(size / width)} ${unit}`;
}

export function relative(at: number, now: number): string {
  const distance = at - now;
  if (Math.abs(distance) < 1_000) return 'now';
  return distance > 0 ? `in ${shortDuration(distance)}` : `${shortDuration(distance)} ago`;
}

export type Zone = 'local' | 'utc';

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: Zone, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${name}`;
  let found = formats.get(key);
  if (!found) {
    const timeZone = zone === 'utc' ? { timeZone: 'UTC' } : {};
    formats.set(key, (found = new Intl.DateTimeFormat('en-GB', { ...options, ...timeZone, hourCycle: 'h23' })));
  }
  return found;
}

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;

/** "23 Nov 2026, 08:12:08", with " UTC" behind it where that is meant. */
export function absolute(at: number, zone: Zone): string {
  if (!isTime(at)) return 'unknown';
  const text = format(zone, 'full', { day: 'numeric', month: 'short', year: 'numeric', ...CLOCK }).format(at);
  return zone === 'utc' ? `${text} UTC` : text;
}

/** With milliseconds. */
export function precise(at: number, zone: Zone): string {
  if (!isTime(at)) return 'unknown';
  return absolute(at, zone).replace(
    /(:\d\d)( UTC)?$/,
    `$1.${String(new Date(at).getUTCMilliseconds()).padStart(3, '0')}$2`,
  );
}

/** The clock alone for what is near, else with the day. */
export function near(at: number, now: number, zone: Zone): string {
  if (!isTime(at)) return 'unknown';
  const day = (ms: number) => format(zone, 'day', { day: 'numeric', month: 'short', year: 'numeric' }).format(ms);
  const clock = format(zone, 'clock', CLOCK).format(at);
  if (day(at) === day(now)) return clock;
  const far = Math.abs(at - now) > 300 * 86_400_000;
  return far
    ? day(at)
    : `${format(zone, 'short', { day: 'numeric', month: 'short' }).format(at)}, ${clock.slice(0, 5)}`;
}

/** What stands below an axis whose marks are so far apart. */
export function axisTime(at: number, step: number, zone: Zone): string {
  if (step >= 86_400_000) return format(zone, 'short', { day: 'numeric', month: 'short' }).format(at);
  const clock = format(zone, 'clock', CLOCK).format(at);
  if (step < 60_000) return clock;
  return clock === '00:00:00'
    ? format(zone, 'short', { day: 'numeric', month: 'short' }).format(at)
    : clock.slice(0, 5);
}

/** A time of the form that `<input type="datetime-local">` has; '' for what is no time. */
export function toInput(at: number, zone: Zone): string {
  if (!isTime(at)) return '';
  const shifted = zone === 'utc' ? at : at - new Date(at).getTimezoneOffset() * 60_000;
  return new Date(shifted).toISOString().slice(0, 19);
}

/** @returns undefined for what is no time */
export function fromInput(text: string, zone: Zone): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text)) return undefined;
  const at = Date.parse(zone === 'utc' ? `${text}Z` : text);
  return Number.isNaN(at) ? undefined : at;
}

const TEXT_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Of a text such as `1h 30m`; undefined for what is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!/^\s*(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, many, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)) {
    const width = TEXT_UNITS[unit!];
    if (width === undefined) return undefined;
    sum += Number(many) * width;
  }
  return Number.isSafeInteger(Math.round(sum)) ? Math.round(sum) : undefined;
}

/** How often something happens: "20 a second", "one each 30 s". */
export function rate(many: number, spreadMs: number): string {
  if (many <= 1 || spreadMs <= 0) return 'at once';
  const each = spreadMs / many;
  if (each >= 1_000) return `one each ${duration(each)}`;
  const perSecond = 1_000 / each;
  return `${perSecond < 10 ? perSecond.toFixed(1).replace(/\.0$/, '') : count(Math.round(perSecond))} a second`;
}

export function bytes(size: number): string {
  if (size < 1_024) return `${size} B`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let value = size / 1_024;
  let unit = 0;
  for (; value >= 1_024 && unit < units.length - 1; unit++) value /= 1_024;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function isTime(at: number): boolean {
  return Math.abs(at) <= 8.64e15;
}
