import type { Command } from './command.js';

export const SET_COMMANDS: Record<string, Command> = {
  SADD: {
    least: 2,
    run: ({ keys }, [key, ...members]) =>
      keys.write(key!, 'set', (set) => {
        const before = set.size;
        for (const member of members) set.add(member);
        return set.size - before;
      }),
  },
  SREM: {
    least: 2,
    run: ({ keys }, [key, ...members]) =>
      keys.write(key!, 'set', (set) => members.filter((member) => set.delete(member)).length),
  },
  SMEMBERS: { least: 1, most: 1, run: ({ keys }, [key]) => [...(keys.read(key!, 'set') ?? [])] },
  // All at once: a set in this process is never too large for one answer.
  SSCAN: { least: 2, most: 4, run: ({ keys }, [key]) => ['0', [...(keys.read(key!, 'set') ?? [])]] },
  SCARD: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'set')?.size ?? 0 },
  SISMEMBER: { least: 2, most: 2, run: ({ keys }, [key, member]) => (keys.read(key!, 'set')?.has(member!) ? 1 : 0) },
};
