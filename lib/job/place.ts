const OFFSET = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;
const MIX = 0xff51afd7ed558ccdn;
const MASK = 0xffffffffffffffffn;

/** How urgent a job may be: 0, or anything up to this. */
export const HIGHEST_PRIORITY = 9;

/** Of groups that many jobs name; their hashes cost more than all else of a job. */
const known = new Map<string, number>();
const MOST_KNOWN = 10_000;
/** Places of one group. */
const PLACES = 16;

/**
 * The first place of a group, which is a number for Redis: 49 bits of FNV-1a with a finalizer, of its UTF-8. A part of the stored format. 0 is
 * no group.
 */
function firstPlaceOf(group: string): number {
  const before = known.get(group);
  if (before !== undefined) return before;
  let hash = OFFSET;
  for (const byte of Buffer.from(group)) hash = ((hash ^ BigInt(byte)) * PRIME) & MASK;
  hash ^= hash >> 33n;
  hash = (hash * MIX) & MASK;
  hash ^= hash >> 33n;
  const first = Number(hash >> 15n || 1n) * PLACES;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(group, first);
  return first;
}

/** A place in an envelope: nine digits as those of its times (lib/lua/shared/envelope.lua). */
const PLACE_DIGITS = 9;
const BASE = 79;
const ZERO = 44;

/** The place of jobs with priority 0 of a group, by which `ring` and `rates` name the group. */
export function baseOf(group: string): string {
  return String(firstPlaceOf(group) + HIGHEST_PRIORITY);
}

/**
 * Where a job of this group and priority stands in the index of its queue (lib/lua/shared/groups.lua): its digits in an envelope, and
 * behind them the number.
 *
 * @returns undefined for a job with neither
 */
export function placeOf(group: string | undefined, priority = 0): string | undefined {
  if (group === undefined && priority === 0) return undefined;
  return placeText((group === undefined ? 0 : firstPlaceOf(group)) + HIGHEST_PRIORITY - priority);
}

/** The number of a group, of its name. */
export function groupNumber(group: string): number {
  return firstPlaceOf(group) / PLACES;
}

/** The same of a place as `placeOf` gives it; 0 without a group. */
export function groupNumberOf(place: string | null | undefined): number {
  return place ? Math.floor(Number(place.slice(PLACE_DIGITS)) / PLACES) : 0;
}

/** Of a place as `placeOf` gives it. */
export function priorityOf(place: string): number {
  return HIGHEST_PRIORITY - (Number(place.slice(PLACE_DIGITS)) % PLACES);
}

/** Of a place that is a number. */
export function placeText(place: number): string {
  let digits = '';
  for (let n = 0, rest = place; n < PLACE_DIGITS; n++, rest = Math.floor(rest / BASE)) {
    digits = String.fromCharCode(ZERO + (rest % BASE)) + digits;
  }
  return digits + place;
}
