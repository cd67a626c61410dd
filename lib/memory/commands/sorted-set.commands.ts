import type { Command, CommandContext } from './command.js';
import { ReplyError, SYNTAX } from '../memory.replies.js';
import type { Reply } from '../memory.replies.js';
import type { Bound, SortedSet } from '../sorted-set.js';
import { placesOf } from './list.commands.js';
import { floatOf, floatText, integerOf } from './read-number.js';

const NOT_A_NUMBER = 'ERR resulting score is not a number (NaN)';

function boundOf(text: string): Bound {
  const exclusive = text.startsWith('(');
  const score = exclusive ? text.slice(1) : text;
  return { exclusive, score: score === '' ? 0 : floatOf(score, 'ERR min or max is not a float') };
}

function scoreReply(score: number | undefined): string | null {
  return score === undefined ? null : floatText(score);
}

function add({ keys }: CommandContext, [key, ...rest]: readonly string[]): Reply {
  const flags = new Set<string>();
  while (['NX', 'XX', 'GT', 'LT', 'CH', 'INCR'].includes(rest[0]?.toUpperCase() ?? '')) {
    flags.add(rest.shift()!.toUpperCase());
  }
  if (rest.length === 0 || rest.length % 2 !== 0) throw new ReplyError(SYNTAX);
  if (flags.has('NX') && flags.has('XX')) {
    throw new ReplyError('ERR XX and NX options at the same time are not compatible');
  }
  if ([flags.has('GT'), flags.has('LT'), flags.has('NX')].filter(Boolean).length > 1) {
    throw new ReplyError('ERR GT, LT, and/or NX options at the same time are not compatible');
  }
  if (flags.has('INCR') && rest.length > 2) {
    throw new ReplyError('ERR INCR option supports a single increment-element pair');
  }
  const scores = rest.filter((_, n) => n % 2 === 0).map((text) => floatOf(text)); // All of them before the first write.
  return keys.write(key!, 'zset', (zset) => {
    let [added, changed] = [0, 0];
    let result: number | undefined;
    for (const [n, given] of scores.entries()) {
      const member = rest[n * 2 + 1]!;
      const was = zset.score(member);
      const score = flags.has('INCR') ? (was ?? 0) + given : given;
      if (Number.isNaN(score)) throw new ReplyError(NOT_A_NUMBER);
      if (flags.has(was === undefined ? 'XX' : 'NX')) continue;
      if (was !== undefined && ((flags.has('GT') && score <= was) || (flags.has('LT') && score >= was))) continue;
      zset.set(member, score);
      result = score;
      if (was === undefined) added++;
      else if (was !== score) changed++;
    }
    if (flags.has('INCR')) return scoreReply(result);
    return flags.has('CH') ? added + changed : added;
  });
}

interface RangeOptions {
  byScore: boolean;
  reverse: boolean;
  withScores: boolean;
  limit: readonly [offset: number, count: number];
}

function optionsOf(texts: readonly string[], start: Partial<RangeOptions>): RangeOptions {
  const options: RangeOptions = { byScore: false, reverse: false, withScores: false, limit: [0, -1], ...start };
  let limited = false;
  for (let i = 0; i < texts.length; i++) {
    const option = texts[i]!.toUpperCase();
    if (option === 'WITHSCORES') options.withScores = true;
    else if (option === 'BYSCORE' && !options.byScore) options.byScore = true;
    else if (option === 'REV' && !options.reverse) options.reverse = true;
    else if (option === 'LIMIT' && i + 2 < texts.length) {
      options.limit = [integerOf(texts[++i]!), integerOf(texts[++i]!)];
      limited = options.limit[1] !== -1;
    } else throw new ReplyError(SYNTAX);
  }
  if (limited && !options.byScore) {
    throw new ReplyError('ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX');
  }
  return options.byScore ? options : { ...options, limit: [0, -1] };
}

type Places = (zset: SortedSet) => [from: number, to: number];

function byScore(min: string, max: string): Places {
  const [low, high] = [boundOf(min), boundOf(max)];
  return (zset) => zset.between(low, high);
}

function byRank(from: string, to: string): Places {
  const places = placesOf(from, to);
  return (zset) => places(zset.size);
}

/** Reads a range before any key is looked at; of a sorted set it then tells what is in it. */
function rangeOf(from: string, to: string, options: RangeOptions): (zset: SortedSet | undefined) => string[] {
  const { reverse, withScores } = options;
  const [offset, count] = options.limit;
  const most = count < 0 ? Infinity : count;
  const places = options.byScore
    ? byScore(...(reverse ? ([to, from] as const) : ([from, to] as const)))
    : byRank(from, to);
  return (zset) => {
    if (!zset || offset < 0) return [];
    let [first, end] = places(zset);
    if (reverse && !options.byScore) [first, end] = [zset.size - end, zset.size - first]; // Counted from the other end.
    if (reverse) [first, end] = [Math.max(first, end - offset - most), end - offset];
    else [first, end] = [first + offset, Math.min(end, first + offset + most)];
    const found = end > first ? zset.slice(first, end) : [];
    const ordered = reverse ? found.toReversed() : found;
    const texts: string[] = [];
    for (const { member, score } of ordered) {
      texts.push(member);
      if (withScores) texts.push(floatText(score));
    }
    return texts;
  };
}

function ranging(start: Partial<RangeOptions>): Command {
  return {
    least: 3,
    run: ({ keys }, [key, from, to, ...texts]) => {
      const range = rangeOf(from!, to!, optionsOf(texts, start));
      return range(keys.read(key!, 'zset'));
    },
  };
}

function popping(highest: boolean): Command {
  return {
    least: 1,
    most: 2,
    run: ({ keys }, [key, count]) => {
      const many = count === undefined ? 1 : integerOf(count);
      if (many < 0) throw new ReplyError('ERR value is out of range, must be positive');
      const zset = keys.read(key!, 'zset');
      if (!zset || many === 0) return [];
      const options: RangeOptions = { byScore: false, reverse: highest, withScores: true, limit: [0, -1] };
      const found = rangeOf('0', String(many - 1), options)(zset);
      keys.write(key!, 'zset', () => found.forEach((member, n) => n % 2 === 0 && zset.delete(member)));
      return found;
    },
  };
}

function removing(read: (from: string, to: string) => Places): Command {
  return {
    least: 3,
    most: 3,
    run: ({ keys }, [key, from, to]) => {
      const places = read(from!, to!);
      return keys.write(key!, 'zset', (zset) => {
        const gone = zset.slice(...places(zset));
        for (const { member } of gone) zset.delete(member);
        return gone.length;
      });
    },
  };
}

function ranking(highestFirst: boolean): Command {
  return {
    least: 2,
    most: 2,
    run: ({ keys }, [key, member]) => {
      const zset = keys.read(key!, 'zset');
      const rank = zset?.rank(member!);
      return rank === undefined ? null : highestFirst ? zset!.size - 1 - rank : rank;
    },
  };
}

export const SORTED_SET_COMMANDS: Record<string, Command> = {
  ZADD: { least: 3, run: add },
  ZINCRBY: { least: 3, most: 3, run: (context, [key, by, member]) => add(context, [key!, 'INCR', by!, member!]) },
  ZREM: {
    least: 2,
    run: ({ keys }, [key, ...members]) =>
      keys.write(key!, 'zset', (zset) => members.filter((member) => zset.delete(member)).length),
  },
  ZCARD: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'zset')?.size ?? 0 },
  ZSCORE: { least: 2, most: 2, run: ({ keys }, [key, member]) => scoreReply(keys.read(key!, 'zset')?.score(member!)) },
  ZMSCORE: {
    least: 2,
    run: ({ keys }, [key, ...members]) => {
      const zset = keys.read(key!, 'zset');
      return members.map((member) => scoreReply(zset?.score(member)));
    },
  },
  ZRANK: ranking(false),
  ZREVRANK: ranking(true),
  ZCOUNT: {
    least: 3,
    most: 3,
    run: ({ keys }, [key, min, max]) => {
      const places = byScore(min!, max!);
      const zset = keys.read(key!, 'zset');
      const [from, to] = zset ? places(zset) : [0, 0];
      return to - from;
    },
  },
  ZRANGE: ranging({}),
  ZREVRANGE: ranging({ reverse: true }),
  ZRANGEBYSCORE: ranging({ byScore: true }),
  ZREVRANGEBYSCORE: ranging({ byScore: true, reverse: true }),
  // All at once: a set in this process is never too large for one answer.
  ZSCAN: {
    least: 2,
    most: 4,
    run: ({ keys }, [key]) => {
      const zset = keys.read(key!, 'zset');
      const entries = zset ? zset.slice(0, zset.size) : [];
      return ['0', entries.flatMap(({ member, score }) => [member, floatText(score)])];
    },
  },
  ZPOPMIN: popping(false),
  ZPOPMAX: popping(true),
  ZREMRANGEBYSCORE: removing(byScore),
  ZREMRANGEBYRANK: removing(byRank),
};
