import type { Command, CommandContext } from './command.js';
import { NOT_AN_INTEGER, OK, ReplyError, SYNTAX } from '../memory.replies.js';
import { integerOf } from './read-number.js';

function add(step: (args: readonly string[]) => number): Command['run'] {
  return ({ keys }, args) => {
    const by = step(args);
    const result = integerOf(keys.read(args[0]!, 'string')?.text ?? '0') + by;
    if (!Number.isSafeInteger(result)) throw new ReplyError(NOT_AN_INTEGER);
    keys.write(args[0]!, 'string', (value) => (value.text = String(result)));
    return result;
  };
}

/** The end of life that EX, PX, EXAT or PXAT asks for. */
function expiry({ now }: CommandContext, unit: string, text: string): number {
  const amount = integerOf(text);
  if (amount <= 0) throw new ReplyError("ERR invalid expire time in 'set' command");
  return amount * (unit.startsWith('EX') ? 1_000 : 1) + (unit.endsWith('AT') ? 0 : now);
}

export const STRING_COMMANDS: Record<string, Command> = {
  GET: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'string')?.text ?? null },
  MGET: {
    least: 1,
    run: ({ keys }, names) =>
      names.map((key) => (keys.typeOf(key) === 'string' ? (keys.read(key, 'string')?.text ?? null) : null)),
  },
  STRLEN: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'string')?.text.length ?? 0 },
  INCR: { least: 1, most: 1, run: add(() => 1) },
  DECR: { least: 1, most: 1, run: add(() => -1) },
  INCRBY: { least: 2, most: 2, run: add(([, by]) => integerOf(by!)) },
  DECRBY: { least: 2, most: 2, run: add(([, by]) => -integerOf(by!)) },
  SET: {
    least: 2,
    run: (context, [key, text, ...options]) => {
      const { keys } = context;
      const flags = new Set<string>();
      let end: [unit: string, amount: string] | undefined;
      for (let i = 0; i < options.length; i++) {
        const option = options[i]!.toUpperCase();
        if (['NX', 'XX', 'GET', 'KEEPTTL'].includes(option)) flags.add(option);
        else if (['EX', 'PX', 'EXAT', 'PXAT'].includes(option) && i + 1 < options.length && !end) {
          end = [option, options[++i]!];
        } else throw new ReplyError(SYNTAX);
      }
      if ((flags.has('NX') && flags.has('XX')) || (flags.has('KEEPTTL') && end)) {
        throw new ReplyError(SYNTAX);
      }
      const expiresAt = end && expiry(context, ...end);
      const before = flags.has('GET') ? (keys.read(key!, 'string')?.text ?? null) : undefined;
      const exists = keys.typeOf(key!) !== 'none';
      if (flags.has(exists ? 'NX' : 'XX')) return before ?? null;
      keys.setText(key!, text!, flags.has('KEEPTTL') ? keys.expiryOf(key!) : expiresAt);
      return before === undefined ? OK : before;
    },
  },
};
