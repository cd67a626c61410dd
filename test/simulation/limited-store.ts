import type { Oracle } from './oracle.js';

/** Of a job without a group and priority. */
export const NO_GROUP = '9';
const TIMES_FROM = 2;
const DIGITS = 7;
const PLACE_DIGITS = 9;
const BASE = 79;
const ZERO = 44;
const PLACES = 16;
/** Of `ring`, see lib/lua/shared/groups.lua. */
export const LINE = -4.5e15;
export const AT_LIMIT = -9e15;
/** From here on nothing of a group waits. */
const OVER = 8.65e15;
/** A head that is overdue is told again after so long; see lib/lua/shared/wake.lua. */
export const TOLD_AGAIN_MS = 50;
const TURNS_PER_MS = 1_024;

export interface RateOfQueue {
  readonly max: number;
  readonly per: number;
}

/** Which of how many shards of a queue; `0/1` of one in one piece. */
interface Part {
  readonly index: number;
  readonly shards: number;
}

/** As `meta` has them, and of limits of the queue the share of the shard; see lib/lua/shared/groups.lua. */
export interface StoredLimits extends Part {
  readonly text: string;
  readonly count: number;
  readonly rate: RateOfQueue | undefined;
  readonly groupCount: number;
  readonly groupRate: RateOfQueue | undefined;
  readonly blocks: boolean;
  readonly stepMs: number;
}

/** What an envelope says of the group of its job. */
export interface StoredPlace {
  /** Where the job stands in `grouped`. */
  readonly place: number;
  /** Of its group, as `ring` names it. */
  readonly base: string;
  readonly priority: number;
  /** Undefined without one, and where a queue without groups has stored the job. */
  readonly name: string | undefined;
  readonly expiresAt: number;
}

/** What is stored of one queue that may have limits. It reads the jobs, and not the indexes of groups, which are what is judged. */
export class LimitedStore {
  #needs = '';
  #text = '';
  #isLimited = false;
  #limits: StoredLimits = limitsIn('', WHOLE);
  readonly #places = new Map<string, { readonly envelope: string; readonly place: StoredPlace }>();

  /** @param base what its keys begin with */
  constructor(
    private readonly oracle: Oracle,
    readonly base: string,
  ) {}

  /** Whether it has limits, groups or priorities, and which limits hold. */
  read(): [isLimited: boolean, limits: StoredLimits] {
    const [needs, text] = this.oracle.peek('HMGET', `${this.base}meta`, 'needs', 'limits') as (string | null)[];
    this.#sees(needs ?? '', text ?? '');
    return [this.#isLimited, this.#limits];
  }

  #sees(needs: string, text: string): void {
    if (needs === this.#needs && text === this.#text) return;
    this.#limits = limitsIn(text, partIn(needs));
    this.#isLimited = /(?:^| )limits(?: |$)/.test(needs);
    [this.#needs, this.#text] = [needs, text];
  }

  /** When it is worth a look, as its indexes say; undefined while nothing may start before a run ends. @param now by the clock of the server */
  moment(now: number): number | undefined {
    const { count, rate } = this.#limits;
    if (this.size('running') >= count) return undefined;
    const opens = rate && this.#opensAt(rate, now);
    if (opens !== undefined) return opens;
    if (this.#isLookedAt) return now - TOLD_AGAIN_MS;
    const [first] = this.#ring('-inf', '+inf');
    if (!first) return undefined;
    if (first[1] >= LINE) return momentOf(first[1], now);
    const left = first[1] - AT_LIMIT;
    const [next] = this.#ring(String(LINE), '+inf');
    if (!next) return left;
    return next[1] < 0 ? momentOf(next[1], now) : Math.min(next[1], left);
  }

  /** Nobody knows yet which group may start something: jobs are still sorted in, the clock went back, or a limit was widened. */
  get #isLookedAt(): boolean {
    const fields = this.oracle.peek('HMGET', `${this.base}meta`, 'adopting', 'rewound', 'widened') as unknown[];
    return fields.some((field) => field !== null);
  }

  /** When the window of the queue has room; undefined where it has some. */
  #opensAt({ max, per }: RateOfQueue, now: number): number | undefined {
    const text = (this.oracle.peek('HGET', `${this.base}rates`, '') as string | null) ?? '';
    const starts = [...text.matchAll(/(\d+):(\d+)/g)].map(
      ([, at, n]) => [Math.min(Number(at), now), Number(n)] as const,
    );
    const within = starts.filter(([at]) => at + per > now);
    const used = within.reduce((sum, [, n]) => sum + n, 0);
    return used < max ? undefined : (within[0]?.[0] ?? now) + per;
  }

  #ring(from: string, to: string): [base: string, score: number][] {
    const flat = this.oracle.peek('ZRANGE', `${this.base}ring`, from, to, 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES') as string[]; // prettier-ignore
    return flat.length === 0 ? [] : [[flat[0]!, Number(flat[1])]];
  }

  /** Jobs that were stored before it had limits are still sorted in. */
  get isAdopting(): boolean {
    return this.oracle.peek('HEXISTS', `${this.base}meta`, 'adopting') === 1;
  }

  size(index: string): number {
    return Number(this.oracle.peek('ZCARD', this.base + index));
  }

  /** Members and scores. */
  entries(index: string, most = '+inf'): [id: string, score: number][] {
    const flat = this.oracle.peek('ZRANGE', this.base + index, '-inf', most, 'BYSCORE', 'WITHSCORES') as string[];
    return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, Number(flat[2 * i + 1])]);
  }

  score(index: string, id: string): number | undefined {
    const score = this.oracle.peek('ZSCORE', this.base + index, id) as string | null;
    return score === null ? undefined : Number(score);
  }

  /** It is on its way to another queue: it counts as running, and has no place in its group. What an enqueue put behind it changes nothing. */
  isReserved(id: string): boolean {
    const after = this.oracle.peek('HGET', `${this.base}followups`, id) as string | null;
    if (after === null) return false;
    const number = this.oracle.peek('ZSCORE', `${this.base}running`, id) as string | null;
    return after.startsWith('=') || (number !== null && this.oracle.isReservation(`${this.base}due`, number));
  }

  placeOf(id: string): StoredPlace {
    const envelope = (this.oracle.peek('HGET', `${this.base}jobs`, id) as string | null) ?? '';
    const known = this.#places.get(id);
    if (known?.envelope === envelope) return known.place;
    const place = placeIn(envelope);
    this.#places.set(id, { envelope, place });
    return place;
  }
}

const WHOLE: Part = { index: 0, shards: 1 };

/** Of a queue whose number of shards is changed nobody knows; nothing starts then. */
function partIn(needs: string): Part {
  const [, index, shards] = /(?:^| )shards:(\d+)\/(\d+)(?: |$)/.exec(needs) ?? [];
  return shards === undefined ? WHOLE : { index: Number(index), shards: Number(shards) };
}

/** Since when a group is in line, or when its head is due; undefined where nothing of it waits. */
function momentOf(score: number, now: number): number | undefined {
  if (score >= OVER) return undefined;
  if (score >= 0) return score;
  const since = Math.floor((score - LINE) / TURNS_PER_MS);
  // A turn of before the clock went back.
  return since <= now ? since : now - TOLD_AGAIN_MS;
}

function limitsIn(text: string, { index, shards }: Part): StoredLimits {
  const share = (all: number) => Math.floor(all / shards) + (index < all % shards ? 1 : 0);
  const numbers = (name: string): readonly [number, number] | undefined => {
    const [found, a, b] = new RegExp(`(?:^| )${name}:(\\d+)(?:/(\\d+))?`).exec(text) ?? [];
    return found === undefined ? undefined : [Number(a), Number(b)];
  };
  const rate = (name: string): RateOfQueue | undefined => {
    const [max, per] = numbers(name) ?? [];
    return max === undefined ? undefined : { max, per: per! };
  };
  const count = numbers('count')?.[0];
  const ofQueue = rate('rate');
  return {
    index,
    shards,
    text,
    count: count === undefined ? Infinity : share(count),
    rate: ofQueue && { max: share(ofQueue.max), per: ofQueue.per },
    groupCount: numbers('groupCount')?.[0] ?? Infinity,
    groupRate: rate('groupRate'),
    blocks: numbers('block')?.[0] === 1,
    stepMs: numbers('step')?.[0] ?? 60_000,
  };
}

function placeIn(envelope: string): StoredPlace {
  const flag = envelope[1];
  const expires = flag === 'x' || flag === 'y';
  const timesTo = TIMES_FROM + DIGITS * (expires ? 3 : 2);
  const isPlaced = flag === 'g' || flag === 'y';
  const place = isPlaced ? numberIn(envelope, timesTo, PLACE_DIGITS) : Number(NO_GROUP);
  const header = envelope.slice(isPlaced ? timesTo + PLACE_DIGITS : timesTo, Math.max(0, envelope.indexOf('\n')));
  return {
    place,
    base: String(place - (place % PLACES) + Number(NO_GROUP)),
    priority: Number(NO_GROUP) - (place % PLACES),
    name: isPlaced ? /"g":("(?:[^"\\]|\\.)*")/.exec(header)?.[1] : undefined,
    expiresAt: expires ? numberIn(envelope, TIMES_FROM + 2 * DIGITS, DIGITS) : Infinity,
  };
}

function numberIn(text: string, from: number, digits: number): number {
  let number = 0;
  for (let at = from; at < from + digits; at++) number = number * BASE + (text.charCodeAt(at) || ZERO) - ZERO;
  return number;
}
