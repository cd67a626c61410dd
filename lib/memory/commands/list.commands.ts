import type { Command } from './command.js';
import { integerOf } from './read-number.js';

function pop(take: (list: string[]) => string | undefined): Command {
  return {
    least: 1,
    most: 1,
    run: ({ keys }, [key]) => (keys.read(key!, 'list') ? (keys.write(key!, 'list', take) ?? null) : null),
  };
}

/**
 * Reads a range that may count from the end; of a size it then tells the first place, and the one behind the last.
 *
 * @throws ReplyError before any key is looked at, as Redis does
 */
export function placesOf(from: string, to: string): (size: number) => [number, number] {
  const [start, end] = [integerOf(from), integerOf(to)];
  return (size) => {
    const first = Math.max(0, start < 0 ? size + start : start);
    return [first, Math.max(first, Math.min(size, (end < 0 ? size + end : end) + 1))];
  };
}

export const LIST_COMMANDS: Record<string, Command> = {
  LPUSH: {
    least: 2,
    run: ({ keys }, [key, ...texts]) => keys.write(key!, 'list', (list) => list.unshift(...texts.toReversed())),
  },
  RPUSH: { least: 2, run: ({ keys }, [key, ...texts]) => keys.write(key!, 'list', (list) => list.push(...texts)) },
  LPOP: pop((list) => list.shift()),
  RPOP: pop((list) => list.pop()),
  LLEN: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'list')?.length ?? 0 },
  LRANGE: {
    least: 3,
    most: 3,
    run: ({ keys }, [key, from, to]) => {
      const places = placesOf(from!, to!);
      const list = keys.read(key!, 'list') ?? [];
      return list.slice(...places(list.length));
    },
  },
};
