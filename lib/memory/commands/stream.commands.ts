import type { Command, CommandContext } from './command.js';
import { ReplyError, SYNTAX } from '../memory.replies.js';
import type { Reply } from '../memory.replies.js';
import { compareIds } from '../stream.js';
import type { StreamEntry, StreamId } from '../stream.js';
import { integerOf } from './read-number.js';

const NO_ID = 'ERR Invalid stream ID specified as stream command argument';
const TOO_SMALL = 'ERR The ID specified in XADD is equal or smaller than the target stream top item';
const MOST = Number.MAX_SAFE_INTEGER;

/** @param missing the number of an id that is only a time */
function idOf(text: string, missing: number): StreamId {
  const [, ms, count] = /^(\d{1,15})(?:-(\d{1,20}))?$/.exec(text) ?? [];
  if (ms === undefined) throw new ReplyError(NO_ID);
  return [Number(ms), count === undefined ? missing : Number(count)];
}

function boundOf(text: string, isEnd: boolean): StreamId {
  if (text === '-') return [0, 0];
  if (text === '+') return [MOST, MOST];
  if (!text.startsWith('(')) return idOf(text, isEnd ? MOST : 0);
  const [ms, count] = idOf(text.slice(1), isEnd ? MOST : 0);
  return [ms, isEnd ? count - 1 : count + 1];
}

function add({ keys, now }: CommandContext, [key, ...rest]: readonly string[]): Reply {
  let most: number | undefined;
  if (rest[0]?.toUpperCase() === 'MAXLEN') {
    rest.shift();
    if (rest[0] === '~' || rest[0] === '=') rest.shift(); // A server may keep a few more with `~`; here none are.
    most = integerOf(rest.shift() ?? '');
    if (most < 0) throw new ReplyError('ERR The MAXLEN argument must be >= 0.');
  }
  const [given = '', ...fields] = rest;
  if (fields.length === 0 || fields.length % 2 !== 0) {
    throw new ReplyError("ERR wrong number of arguments for 'xadd' command");
  }
  const asked = given === '*' ? undefined : idOf(given, 0);
  if (asked && compareIds(asked, [0, 0]) === 0) {
    throw new ReplyError('ERR The ID specified in XADD must be greater than 0-0');
  }
  return keys.write(key!, 'stream', (stream) => {
    const [ms, count] = stream.last;
    const time = Math.floor(now);
    const id = asked ?? (time > ms ? [time, 0] : [ms, count + 1]);
    if (compareIds(id, stream.last) <= 0) throw new ReplyError(TOO_SMALL);
    stream.add(id, fields);
    if (most !== undefined) stream.trim(most);
    return id.join('-');
  });
}

function shown({ id, fields }: StreamEntry): Reply {
  return [id.join('-'), [...fields]];
}

function ranging(reverse: boolean): Command {
  return {
    least: 3,
    run: ({ keys }, [key, ...given]) => {
      const [from, to] = reverse ? [given[1]!, given[0]!] : [given[0]!, given[1]!];
      const [low, high] = [boundOf(from, false), boundOf(to, true)];
      const [option, limit] = given.slice(2);
      if (option !== undefined && (option.toUpperCase() !== 'COUNT' || limit === undefined))
        throw new ReplyError(SYNTAX);
      const most = limit === undefined ? Infinity : integerOf(limit);
      const stream = keys.read(key!, 'stream');
      if (!stream) return [];
      if (most <= 0) return null;
      const found = stream.between(low, high);
      return (reverse ? found.toReversed() : found).slice(0, most).map(shown);
    },
  };
}

export const STREAM_COMMANDS: Record<string, Command> = {
  XADD: { least: 4, run: add },
  XLEN: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'stream')?.entries.length ?? 0 },
  XRANGE: ranging(false),
  XREVRANGE: ranging(true),
};
