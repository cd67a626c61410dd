import { describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidOptionError } from '../../lib/index.js';
import { instantOf, parseLocalTime } from '../../lib/job/wall-clock.js';
import type { LocalTime } from '../../lib/job/wall-clock.js';

const at = (local: string, timeZone: string, ambiguous?: LocalTime['ambiguous']) => {
  const ms = instantOf({ local, timeZone, ...(ambiguous && { ambiguous }) });
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 16);
};

describe('a local time', () => {
  it.each<[string, string, string, string, string]>([
    ['Europe/Berlin', '2027-07-01T09:00', '2027-07-01T07:00', '2027-07-01T07:00', 'once'],
    ['Europe/Berlin', '2027-03-28T02:30', '2027-03-28T00:30', '2027-03-28T01:30', 'never'],
    ['Europe/Berlin', '2027-10-31T02:30', '2027-10-31T00:30', '2027-10-31T01:30', 'twice'],
    ['Australia/Lord_Howe', '2027-10-03T02:15', '2027-10-02T15:15', '2027-10-02T15:45', 'never'],
    ['America/Santiago', '2027-09-05T00:30', '2027-09-05T03:30', '2027-09-05T04:30', 'never'],
    ['Asia/Kathmandu', '2027-01-01T00:00', '2026-12-31T18:15', '2026-12-31T18:15', 'once'],
  ])('in %s, %s is one moment, also where clocks show it twice or never', (zone, local, earlier, later, how) => {
    expect(at(local, zone, 'earlier')).toBe(earlier);
    expect(at(local, zone, 'later')).toBe(later);
    expect(at(local, zone)).toBe(how === 'never' ? later : earlier);
    expect(at(local, zone, 'reject')).toBe(how === 'once' ? earlier : undefined);
  });

  it('is the moment at which clocks show it, in 30 zones over a year', () => {
    const zones = Intl.supportedValuesOf('timeZone').filter((_, n) => n % 14 === 0);
    expect(zones.length).toBeGreaterThan(29);
    for (const timeZone of zones) {
      const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
      for (let ms = Date.UTC(2027, 0, 1); ms < Date.UTC(2028, 0, 1); ms += 37 * 3_600_000) {
        const local = format.format(ms).replace(' ', 'T');
        const found = [
          instantOf({ local, timeZone, ambiguous: 'earlier' }),
          instantOf({ local, timeZone, ambiguous: 'later' }),
        ];
        expect([timeZone, local, found.includes(ms)]).toEqual([timeZone, local, true]);
      }
    }
  });

  it.each<[unknown, new (message: string) => Error]>([
    [{ local: '2027-02-30T09:00', timeZone: 'UTC' }, InvalidDelayError],
    [{ local: '2027-03-28T09:00Z', timeZone: 'UTC' }, InvalidDelayError],
    [{ local: '2027-03-28', timeZone: 'UTC' }, InvalidDelayError],
    [{ local: '2027-03-28T02:30', timeZone: 'Europe/Berlin', ambiguous: 'reject' }, InvalidDelayError],
    [{ local: '2027-03-28T09:00' }, InvalidOptionError],
    [{ local: '2027-03-28T09:00', timeZone: 'Mars/Base' }, InvalidOptionError],
    [{ local: '2027-03-28T09:00', timeZone: 'UTC', ambiguous: 'both' }, InvalidOptionError],
    [{ local: '2027-03-28T09:00', timeZone: 'UTC', zone: 1 }, InvalidOptionError],
  ])('%j is refused', (value, error) => {
    expect(() => parseLocalTime(value, 'at')).toThrow(error);
  });
});

it('a day that does not exist is said not to exist', () => {
  const parse = (local: string) => () => parseLocalTime({ local, timeZone: 'UTC' }, 'at');
  expect(parse('2027-02-29T09:00')).toThrow(/"2027-02-29T09:00" does not exist: no clock shows it\./);
  expect(parse('2027-02-28T24:30')).toThrow(/does not exist/);
  expect(parse('2027-2-28')).toThrow(/is not a local time, such as/);
});
