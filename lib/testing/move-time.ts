import { ENVELOPE } from '../lua/scripts.limited.generated.js';
import { KEY_NAMES, LIMIT_KEY_NAMES, SCHEDULE_KEY_NAMES } from '../redis/keys.js';

/** Each key under its name in capitals, as lib/lua/shared/keys.lua has it. */
const KEYS = [...KEY_NAMES, ...SCHEDULE_KEY_NAMES, ...LIMIT_KEY_NAMES]
  .map((name, at) => `local ${name.toUpperCase()} = KEYS[${at + 1}]`)
  .join('\n');

/** An envelope whose times are all `by` ms sooner; nil for what is none. */
export const MOVE_ENVELOPE = `${ENVELOPE}
local function sooner(text, by)
  local at = time_at(text, 1)
  return at and digits(at - by) or text
end

local function envelope(text, by)
  local flag = string.sub(text, 2, 2)
  if not string.find(flag, '[-xgy]') then return nil end
  local times = sooner(string.sub(text, 3, 9), by) .. sooner(string.sub(text, 10, 16), by)
  if flag == '-' or flag == 'g' then return string.sub(text, 1, 2) .. times .. string.sub(text, 17) end
  return string.sub(text, 1, 2) .. times .. sooner(string.sub(text, 17, 23), by) .. string.sub(text, 24)
end
`;

/** The same of what lib/lua/shared/groups.lua keeps: groups, whose turn it is, what started within the last window. */
export const MOVE_GROUPS = `
local function move_groups(grouped, ring, rates, meta, by)
  local all = redis.call('ZRANGE', grouped, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    redis.call('ZREM', grouped, all[i])
    all[i] = sooner(string.sub(all[i], 1, 7), by) .. string.sub(all[i], 8)
  end
  for i = 1, #all, 2 do redis.call('ZADD', grouped, all[i + 1], all[i]) end
  local groups = redis.call('ZRANGE', ring, 0, -1, 'WITHSCORES')
  for i = 1, #groups, 2 do
    local at = tonumber(groups[i + 1])
    local inLine = at >= -4.5e15 and at < 0
    local moved = inLine and at - by * 1024 or at < 0 and at - by or math.max(0, at - by)
    redis.call('ZADD', ring, string.format('%.17g', moved), groups[i])
  end
  local windows = redis.call('HGETALL', rates)
  for i = 1, #windows, 2 do
    local moved = string.gsub(windows[i + 1], '(%d+):(%d+):?(%-?%d*)', function(at, n, first)
      local to = math.max(0, at - by)
      return string.format('%.0f:%s:%.0f', to, n, (tonumber(first) or 0) + (at - to) * 1024)
    end)
    redis.call('HSET', rates, windows[i], moved)
  end
  local turn = tonumber(redis.call('HGET', meta, 'turn') or nil)
  if turn then redis.call('HSET', meta, 'turn', string.format('%.0f', math.max(0, turn - by * 1024))) end
end
`;

/**
 * Takes ARGV[1] ms from every time that is stored in a shard, as if they had passed. KEYS are its fixed keys, those of schedules, whose
 * records keep the times for which they are planned (`movedMs` of the connection), and those of groups. The other
 * arguments claims whose leases stay as they are. It reads the whole shard, which only a test may do, and is atomic, so that
 * no worker meets half of it. What processes that live say of themselves (`idle`, `leader`, sessions) is not moved.
 */
export const MOVE_TIME = `${MOVE_ENVELOPE}${MOVE_GROUPS}
local by = tonumber(ARGV[1])
local kept = {}
for i = 2, #ARGV do kept[ARGV[i]] = true end
${KEYS}

local function scores(key, except)
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local at = tonumber(all[i + 1])
    if at and at < 8e15 and not (except and except[all[i]]) then redis.call('ZADD', key, string.format('%.17g', at - by), all[i]) end
  end
end

local function values(key, change)
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local value = change(all[i + 1])
    if value then redis.call('HSET', key, all[i], value) end
  end
end

for _, key in ipairs({ DUE, QUARANTINE, DEAD, UNIQUE, COMPLETED, TICKS, PENDING, ZONED }) do scores(key) end
scores(LEASES, kept)
values(JOBS, function(text) return envelope(text, by) end)
values(FOLLOWUPS, function(after)
  local held = string.match(after, '^=(.+)$')
  if held then return tonumber(held) and '=' .. string.format('%.17g', tonumber(held) - by) end
  -- A mark before it tells that the run was cancelled.
  local mark = string.sub(after, 1, 1) == '!' and '!' or ''
  local moved = envelope(string.sub(after, #mark + 1), by)
  return moved and mark .. moved
end)
values(HISTORY, function(text)
  local record, rest = string.match(text, '^([^\\n]*\\n)(.*)$')
  local moved = rest and envelope(rest, by)
  return moved and record .. moved
end)
values(DEBOUNCE, function(at) return tonumber(at) and string.format('%.0f', tonumber(at) - by) end)
for _, field in ipairs({ 'graceUntil', 'graceFrom', 'lateAt', 'wokenAt', 'since' }) do
  local at = tonumber(redis.call('HGET', META, field) or nil)
  if at and at > 0 then redis.call('HSET', META, field, string.format('%.0f', math.max(0, at - by))) end
end
move_groups(GROUPED, RING, RATES, META, by)
-- The scripts believe no lease for a while after a pause, such as a test that looks at something.
local time = redis.call('TIME')
if redis.call('HEXISTS', META, 'seenAt') == 1 then
  redis.call('HSET', META, 'seenAt', time[1] * 1000 + math.floor(time[2] / 1000))
end
`;
