import { describe, expect, it } from '@jest/globals';
import { InvalidIdError } from '../../lib/delay-queue.errors.js';
import { assertJobId, contentId, createIdGenerator } from '../../lib/job/job-id.js';

describe('a job id', () => {
  it.each([
    ['the usual', 'order-4711'],
    ['one character', '1'],
    ['256 characters', 'i'.repeat(256)],
    ['256 characters of two units each', '🚀'.repeat(256)],
    ['spaces', 'order 4711 '],
    ['what objects have anyway', '__proto__'],
  ])('may be %s', (_, id) => {
    expect(assertJobId(id)).toBe(id);
  });

  it.each([
    ['empty', ''],
    ['257 characters', 'i'.repeat(257)],
    ['braces', '{a}'],
    ['a line feed', 'a\nb'],
    ['a C1 control', 'a\x85b'],
    ['half a surrogate pair', 'a\ud83d'],
    ['undefined', undefined],
    ['null', null],
    ['an array', ['a']],
  ])('is not %s', (_, id) => {
    expect(() => assertJobId(id)).toThrow(InvalidIdError);
  });

  it('is not a number, because 1 and "1" would be two jobs to some and one to others', () => {
    expect(() => assertJobId(4711)).toThrow(
      'Job id: 4711 is not text. Use 1 to 256 printable characters without braces. Use String(id).',
    );
  });
});

describe('a generated id', () => {
  const byteOrder = (ids: readonly string[]) => ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

  it('has 20 letters and digits and is a valid id', () => {
    const next = createIdGenerator();
    for (let i = 0; i < 1000; i++) {
      const id = next();
      expect(id).toMatch(/^[0-9A-Za-z]{20}$/);
      expect(assertJobId(id)).toBe(id);
    }
  });

  it.each<[string, (call: number) => number]>([
    ['goes on', (call) => 1_800_000_000_000 + Math.floor(call / 7)],
    ['stands still', () => 1_800_000_000_000],
    ['goes back', (call) => 1_800_000_000_000 - call],
    ['jumps about', (call) => 1_800_000_000_000 + ((call * 7919) % 1000)],
    ['has fractions', (call) => 1_800_000_000_000 + call / 10],
    ['crosses a digit', (call) => 62 ** 6 - 50 + Math.floor(call / 100)],
    ['starts at 0', (call) => Math.floor(call / 100)],
    ['is broken', (call) => (call % 2 ? NaN : 1_800_000_000_000)],
  ])('is new and sorts behind the one before when the clock %s', (_, clock) => {
    let call = 0;
    const next = createIdGenerator({ now: () => clock(call++) });
    const ids = Array.from({ length: 10_000 }, next);
    expect(byteOrder(ids)).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('borrows from the next millisecond when one is full', () => {
    const next = createIdGenerator({ now: () => 1_800_000_000_000, random: () => 0 });
    for (let i = 0; i < 62 ** 4 - 2; i++) next();
    const ids = Array.from({ length: 4 }, next);
    expect(byteOrder(ids)).toEqual(ids);
    expect(new Set(ids).size).toBe(4);

    const later = createIdGenerator({ now: () => 1_800_000_000_001, random: () => 0 });
    expect(ids.slice(2)).toEqual([later(), later()]);
  });

  it('differs between generators at the same moment', () => {
    const ids = Array.from({ length: 1000 }, () => createIdGenerator({ now: () => 1_800_000_000_000 })());
    expect(new Set(ids).size).toBe(1000);
  });

  it('begins with the time, so that ids of different processes sort roughly by age', () => {
    const early = createIdGenerator({ now: () => 1_800_000_000_000 });
    const late = createIdGenerator({ now: () => 1_800_000_000_001 });
    for (let i = 0; i < 100; i++) expect(early() < late()).toBe(true);
  });

  it('takes its own part from the given source', () => {
    const draws = [0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99, 1 - Number.EPSILON];
    const next = createIdGenerator({ now: () => 0, random: () => draws.shift()! });
    expect(next()).toBe('000000000000' + '0CObntzz');
    expect(next()).toBe('000000000001' + '0CObntzz');
  });
});

describe('an id made from content', () => {
  it('is the same for the same text and another for another', () => {
    expect(contentId('{"a":1}')).toBe(contentId('{"a":1}'));
    expect(contentId('{"a":1}')).not.toBe(contentId('{"a":2}'));
  });

  it('never changes between versions of the library', () => {
    expect(contentId('{"a":1}')).toBe('AVq9f1zFei3ZS3WQ8ErYCE');
  });

  it('has 22 URL-safe characters, and counts bytes of UTF-8', () => {
    for (const text of ['', '{}', '"é"', '"🚀"', 'x'.repeat(1e6)]) expect(contentId(text)).toMatch(/^[\w-]{22}$/);
  });
});
