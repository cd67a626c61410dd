import type { Oracle } from './oracle.js';

/** Of a job without a group and priority. */
export const NO_GROUP = '9';
const TIMES_FROM = 2;
const DIGITS = 7;
const PLACE_DIGITS = 9;
const BASE = 79;
const ZERO = 44;
const PLACES = 16;

export interface RateOfQueue {
  readonly max: number;
  readonly per: number;
}

/** As `meta` has them; see lib/lua/shared/groups.lua. */
export interface StoredLimits {
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
  #limits: StoredLimits = limitsIn('');
  readonly #places = new Map<string, { readonly envelope: string; readonly place: StoredPlace }>();

  /** @param base what its keys begin with */
  constructor(
    private readonly oracle: Oracle,
    readonly base: string,
  ) {}

  /** Whether it has limits, groups or priorities, and which limits hold. */
  read(): [isLimited: boolean, limits: StoredLimits] {
    const [needs, text] = this.oracle.peek('HMGET', `${this.base}meta`, 'needs', 'limits') as (string | null)[];
    if ((text ?? '') !== this.#limits.text) this.#limits = limitsIn(text ?? '');
    return [/(?:^| )limits(?: |$)/.test(needs ?? ''), this.#limits];
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

  /** It is on its way to another queue: it counts as running, and has no place in its group. */
  isReserved(id: string): boolean {
    const after = this.oracle.peek('HGET', `${this.base}followups`, id) as string | null;
    return after?.startsWith('=') ?? false;
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

function limitsIn(text: string): StoredLimits {
  const numbers = (name: string): readonly [number, number] | undefined => {
    const [found, a, b] = new RegExp(`(?:^| )${name}:(\\d+)(?:/(\\d+))?`).exec(text) ?? [];
    return found === undefined ? undefined : [Number(a), Number(b)];
  };
  const rate = (name: string): RateOfQueue | undefined => {
    const [max, per] = numbers(name) ?? [];
    return max === undefined ? undefined : { max, per: per! };
  };
  return {
    text,
    count: numbers('count')?.[0] ?? Infinity,
    rate: rate('rate'),
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
