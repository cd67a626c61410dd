import { MOVE_ENVELOPE, MOVE_GROUPS } from '../../lib/testing/move-time.js';
import type { World } from './world.js';

// `seen` stays where it is, as if workers had looked at the queue all the time: otherwise this would be a jump of the clock,
// after which nothing is taken back for one lease. Claim numbers stay, because they are tokens.
const SHIFT = `${MOVE_ENVELOPE}${MOVE_GROUPS}
local by = tonumber(ARGV[1])
for i = 1, 5 do
  local flat = redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
  for n = 1, #flat, 2 do redis.call('ZADD', KEYS[i], string.format('%.1f', tonumber(flat[n + 1]) - by), flat[n]) end
end
local first = redis.call('HGETALL', KEYS[6])
for n = 1, #first, 2 do redis.call('HSET', KEYS[6], first[n], string.format('%.0f', tonumber(first[n + 1]) - by)) end
for i = 7, 8 do
  local envelopes = redis.call('HGETALL', KEYS[i])
  for n = 1, #envelopes, 2 do
    local mark = string.sub(envelopes[n + 1], 1, 1) == '!' and '!' or ''
    local text = string.sub(envelopes[n + 1], #mark + 1)
    local moved = #text > 1 and envelope(text, by)
    if moved then redis.call('HSET', KEYS[i], envelopes[n], mark .. moved) end
  end
end
move_groups(KEYS[9], KEYS[10], KEYS[11], KEYS[12], by)`;

/** Time goes by for a whole queue: everything that is stored about it moves into the past by the same distance. */
export async function later(world: World, queue: string, ms: number): Promise<void> {
  const names = ['due', 'leases', 'quarantine', 'dead', 'unique', 'debounce', 'jobs', 'followups'];
  const keys = [...names, 'grouped', 'ring', 'rates', 'meta'].map((name) => world.key(queue, name));
  await world.redis.eval(SHIFT, keys.length, ...keys, ms);
}
