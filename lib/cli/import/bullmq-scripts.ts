// What happens to the keys of BullMQ. All scripts refuse a process that has no say any more: another one goes on with its work.
// KEYS[1] is the lock, KEYS[2] the hash of jobs that are on their way: id -> phase, a space, and what is needed to go on.
// Phases: h held, so that no worker of BullMQ has it; p parked, so that the queue here has it as well, but does not run it yet.

const LOCKED = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('DQIMPORT another import goes on') end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/**
 * KEYS 3 delayed 4 wait 5 paused 6 prioritized; ARGV 1 token 2 ms of the lock, then per job: d|w|s|p where it is, id, its score as it was
 * read, what is noted. Replies per job 1, or 0 when it is no longer there with this score: what is noted has the due time that it had.
 */
export const TAKE = `${LOCKED}
local keys = { d = KEYS[3], w = KEYS[4], s = KEYS[5], p = KEYS[6] }
local out = {}
for i = 3, #ARGV, 4 do
  local place, id, score = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key, gone = keys[place], 0
  if place == 'd' or place == 'p' then
    if tonumber(redis.call('ZSCORE', key, id)) == tonumber(score) then gone = redis.call('ZREM', key, id) end
  else
    gone = redis.call('LREM', key, -1, id)
  end
  if gone == 1 then redis.call('HSET', KEYS[2], id, 'h ' .. place .. ' ' .. score .. ' ' .. ARGV[i + 3]) end
  out[#out + 1] = gone
end
return out`;

/** ARGV 1 token 2 ms of the lock, then ids: from now on they are never given back. */
export const PARKED = `${LOCKED}
for i = 3, #ARGV do
  local noted = redis.call('HGET', KEYS[2], ARGV[i])
  if noted then redis.call('HSET', KEYS[2], ARGV[i], 'p' .. string.sub(noted, 2)) end
end
return 'OK'`;

/** KEYS from 3 on per job: its hash, its log, the key of its deduplication or its hash again; ARGV 1 token 2 ms of the lock, then ids. */
export const FORGET = `${LOCKED}
for i = 3, #ARGV do
  local at = (i - 3) * 3 + 3
  if KEYS[at + 2] ~= KEYS[at] and redis.call('GET', KEYS[at + 2]) == ARGV[i] then redis.call('DEL', KEYS[at + 2]) end
  redis.call('DEL', KEYS[at], KEYS[at + 1])
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return 'OK'`;

/** KEYS as TAKE, and 7 marker, which wakes a worker; ARGV 1 token 2 ms of the lock, then ids. */
export const GIVE_BACK = `${LOCKED}
for i = 3, #ARGV do
  local noted = redis.call('HGET', KEYS[2], ARGV[i])
  local place, score = string.match(noted or '', '^h (%a) (%S+) ')
  if place == 'd' then redis.call('ZADD', KEYS[3], score, ARGV[i])
  elseif place == 'p' then redis.call('ZADD', KEYS[6], score, ARGV[i])
  elseif place then redis.call('RPUSH', place == 'w' and KEYS[4] or KEYS[5], ARGV[i]) end
  if place then
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('ZADD', KEYS[7], 0, '0')
  end
end
return 'OK'`;

export const KEEP_LOCK = `${LOCKED} return 'OK'`;

export const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 'OK'`;
