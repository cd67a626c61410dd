import { parseDuration, parseInstant } from '../../job/duration.js';
import { wallClock } from '../../time-and-randomness.js';
import { usage } from '../exit-codes.js';

const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];
const TIME = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?(Z|[+-]\d\d:?\d\d)?$/i;

/** A length of time in its two largest units: `2 h 5 min`, `340 ms`. */
export function span(ms: number): string {
  const whole = Math.round(ms);
  if (whole < 1_000) return `${whole} ms`;
  const first = UNITS.findIndex(([unit]) => whole >= unit);
  const [large, name] = UNITS[first]!;
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((whole % large) / next[0]) : 0;
  return `${Math.floor(whole / large)} ${name}${rest > 0 ? ` ${rest} ${next![1]}` : ''}`;
}

/** A moment as it was given. */
export interface Moment {
  /** It depends on what time it is. */
  readonly isRelative: boolean;
  /** @returns epoch ms */
  at(now: number): number;
}

/** How moments are read and shown: in the zone of this machine, or in UTC. */
export class Times {
  constructor(private readonly utc: boolean) {}

  /** For a person. */
  shown(at: Date | undefined): string {
    if (!at || Number.isNaN(at.getTime())) return '-';
    if (this.utc) return at.toISOString().replace('T', ' ').replace(/\.\d+/, '');
    const part = (value: number) => String(value).padStart(2, '0');
    const day = [at.getFullYear(), part(at.getMonth() + 1), part(at.getDate())].join('-');
    return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(part).join(':')}`;
  }

  /** `in 3 min`, `2 h ago`. */
  relative(at: Date | undefined, now: number): string {
    if (!at || Number.isNaN(at.getTime())) return '-';
    const ms = at.getTime() - now;
    return ms >= 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
  }

  /**
   * `now`, `+2h` and `-30m` from `now` on, ISO-8601, or epoch ms. Without a zone in the zone of this machine, or in UTC with `--utc`.
   *
   * It is read at once, though what time it is may have to be asked for: nothing is sent for what is no time.
   *
   * @throws CommandError, InvalidDelayError
   */
  moment(text: string, field: string): Moment {
    if (text === 'now') return { isRelative: true, at: (now) => now };
    const [, sign, length] = /^([+-])(.+)$/.exec(text) ?? [];
    if (sign !== undefined) {
      const ms = parseDuration(length, field);
      return { isRelative: true, at: (now) => Math.max(0, sign === '+' ? now + ms : now - ms) };
    }
    const at = parseInstant(this.#fixed(text, field), field, wallClock());
    return { isRelative: false, at: () => at };
  }

  #fixed(text: string, field: string): number {
    if (/^\d{10,16}$/.test(text)) return Number(text);
    const [match, zone] = TIME.exec(text) ?? [];
    const spelled = match && !match.includes(':') ? `${match}T00:00` : match?.replace(' ', 'T');
    const at = spelled === undefined ? NaN : Date.parse(zone === undefined && this.utc ? `${spelled}Z` : spelled);
    if (Number.isNaN(at) || !isDay(text)) {
      throw usage(
        `${field}: "${text}" is not a time. Use now, +2h, -30m, 2026-11-23T09:00, 2026-11-23T09:00Z or epoch ms.`,
      );
    }
    return at;
  }
}

/** Of a text that begins with a date: Date.parse takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  const [year, month, day] = text.split(/\D/, 3).map(Number) as [number, number, number];
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}

export function iso(at: Date | undefined): string {
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : '';
}
