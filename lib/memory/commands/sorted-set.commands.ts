import type { Command, CommandContext } from '../memory.commands.js';
import { ReplyError, SYNTAX } from '../memory.replies.js';
import type { Reply } from '../memory.replies.js';
import type { Bound, SortedSet } from '../sorted-set.js';
import { places } from './list.commands.js';
import { floatOf, floatText, integerOf } from './read-number.js';

const NOT_A_NUMBER = 'ERR resulting score is not a number (NaN)';

function boundOf(text: string): Bound {
  const exclusive = text.startsWith('(');
  return { exclusive, score: floatOf(exclusive ? text.slice(1) : text, 'ERR min or max is not a float') };
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
      limited = true;
    } else throw new ReplyError(SYNTAX);
  }
  if (limited && !options.byScore) {
    throw new ReplyError(
      'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX',
    );
  }
  return options;
}

function range(zset: SortedSet | undefined, from: string, to: string, options: RangeOptions): string[] {
  const { byScore, reverse, withScores } = options;
  const size = zset?.size ?? 0;
  let [first, end] = [0, 0];
  if (byScore) {
    const [min, max] = [boundOf(reverse ? to : from), boundOf(reverse ? from : to)];
    if (zset) [first, end] = zset.between(min, max);
  } else {
    [first, end] = places(size, from, to);
    if (reverse) [first, end] = [size - end, size - first];
  }
  const [offset, count] = options.limit;
  if (offset < 0 || !zset) return [];
  const most = count < 0 ? Infinity : count;
  if (reverse) [first, end] = [Math.max(first, end - offset - most), end - offset];
  else [first, end] = [first + offset, Math.min(end, first + offset + most)];
  const found = zset.slice(Math.max(0, first), Math.max(0, first, end));
  const ordered = reverse ? found.toReversed() : found;
  return ordered.flatMap(({ member, score }) => (withScores ? [member, floatText(score)] : [member]));
}

function ranging(fewest: number, start: Partial<RangeOptions>): Command {
  return {
    least: fewest,
    run: ({ keys }, [key, from, to, ...texts]) => {
      const options = optionsOf(texts, start);
      return range(keys.read(key!, 'zset'), from!, to!, options);
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
      const found = range(zset, '0', String(many - 1), options);
      keys.write(key!, 'zset', () => found.forEach((member, n) => n % 2 === 0 && zset.delete(member)));
      return found;
    },
  };
}

function removing(placesOf: (zset: SortedSet, from: string, to: string) => [number, number]): Command['run'] {
  return ({ keys }, [key, from, to]) =>
    keys.write(key!, 'zset', (zset) => {
      const gone = zset.slice(...placesOf(zset, from!, to!));
      for (const { member } of gone) zset.delete(member);
      return gone.length;
    });
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
      const [low, high] = [boundOf(min!), boundOf(max!)];
      const [from, to] = keys.read(key!, 'zset')?.between(low, high) ?? [0, 0];
      return to - from;
    },
  },
  ZRANGE: ranging(3, {}),
  ZREVRANGE: ranging(3, { reverse: true }),
  ZRANGEBYSCORE: ranging(3, { byScore: true }),
  ZREVRANGEBYSCORE: ranging(3, { byScore: true, reverse: true }),
  ZPOPMIN: popping(false),
  ZPOPMAX: popping(true),
  ZREMRANGEBYSCORE: { least: 3, most: 3, run: removing((zset, min, max) => zset.between(boundOf(min), boundOf(max))) },
  ZREMRANGEBYRANK: { least: 3, most: 3, run: removing((zset, from, to) => places(zset.size, from, to)) },
};
