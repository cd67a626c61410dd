import { jest } from '@jest/globals';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';

/** Cuts the process off Redis after some calls: the last one is lost before or after it took effect. */
export function killedAfter({ shards }: any, calls: number, runs: boolean): { restore(): void } {
  const connection = shards.connection as RedisConnection;
  const spies: { mockRestore(): void }[] = [];
  let left = calls;
  for (const method of ['run', 'send'] as const) {
    const real = (connection[method] as (...args: unknown[]) => Promise<unknown>).bind(connection);
    spies.push(
      jest.spyOn(connection as any, method).mockImplementation(async (...args: any[]) => {
        // `run` calls `send` for the same call.
        if (method === 'send' && inside > 0) return real(...args);
        if (left < 0 || (left === 0 && !runs)) throw new Error('killed');
        inside++;
        const answer = await real(...args).finally(() => inside--);
        if (left-- === 0) throw new Error('killed');
        return answer;
      }),
    );
  }
  let inside = 0;
  return { restore: () => spies.forEach((spy) => spy.mockRestore()) };
}

/** Lets something else happen after some calls of a process, before the next one. The process may go on meanwhile where it awaits no answer. */
export function interruptedAfter(
  { shards }: any,
  calls: number,
  act: () => Promise<unknown>,
): { ended(): Promise<boolean> } {
  const connection = shards.connection as RedisConnection;
  const real = (connection.send as (...args: unknown[]) => Promise<unknown>).bind(connection);
  let left = calls;
  let acting: Promise<unknown> | undefined;
  const spy = jest.spyOn(connection as any, 'send').mockImplementation(async (...args: any[]) => {
    if (left-- === 0) await (acting = act());
    return real(...args);
  });
  return {
    /** @returns whether there were so many calls */
    async ended() {
      spy.mockRestore();
      await acting;
      return acting !== undefined;
    },
  };
}
