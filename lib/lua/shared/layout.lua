-- Refuses a shard written by a newer library, or one that needs a feature (rate limit, priority, ...) unknown here:
-- an old worker must not work on a queue whose rules it cannot keep.
local LAYOUT = 2

-- A number of `meta`; nil for none, and for junk. Such as `nan` and `1e300` are numbers to Lua: they would spread from field to
-- field, no comparison with them holds, and a shard would never again recover what a dead worker ran.
local function whole(text)
  local n = tonumber(text)
  if n and n >= 0 and n <= 8.64e15 and n % 1 == 0 then return n end
end

-- The shard that the caller takes this one for: the names of sessions of a sharded queue begin with `~3/8~`. An argument would
-- cost every call more than it costs to read the name (docs/decisions/0019-simplifications-tried.md).
local SESSION_NAME = #META - #'meta' + #'session:' + 1
local SHARD = string.byte(SESSION, SESSION_NAME) == 126 and string.match(SESSION, '^~(%d+/%d+)~', SESSION_NAME) or ''

-- `needs` holds words. One begins with `shards:` and says what these keys are (lib/shards/shard-state.ts); it is a feature like
-- others, so that a library which knows no shards stays away. @returns that word's rest, and the other words
local function shard_state(needs)
  local state, others = '', {}
  for word in string.gmatch(needs or '', '%S+') do
--#if limits
    if string.sub(word, 1, 7) == 'shards:' then
      state = string.sub(word, 8)
    elseif word ~= 'limits' then
      others[#others + 1] = word
    end
--#else
    if string.sub(word, 1, 7) == 'shards:' then state = string.sub(word, 8) else others[#others + 1] = word end
--#end
  end
  return state, table.concat(others, ' ')
end

--#if limits
-- These scripts are for queues that say so, and for the call that makes a queue one of them: see enqueue.lua. Of a queue with shards
-- all say so before the first has a group, and only limits/limit.lua makes them: see `beginGroups` of lib/shards/shard-check.ts.
local adopts = false
local function is_limited(needs)
  return string.find(' ' .. (needs or '') .. ' ', ' limits ', 1, true) ~= nil
end

--#end
local function unknown(layout, others)
  if layout and not whole(layout) then return redis.error_reply('DQDAMAGED layout ' .. META) end
  if layout and tonumber(layout) > LAYOUT then
    return redis.error_reply('DQLAYOUT layout ' .. layout .. ' is newer than ' .. LAYOUT .. ' at ' .. META)
  end
  if others ~= '' then
    return redis.error_reply('DQLAYOUT unknown features "' .. string.sub(others, 1, 100) .. '" are needed at ' .. META)
  end
end

-- `settling`: the call ends runs and starts none, which the old shards still permit before a change of their number.
-- @returns an error reply, or nil and whether they are about to be left
local function refusal(layout, needs, settling)
  --#limits if not is_limited(needs) and not adopts then return redis.error_reply('DQPLAIN no limits are kept at ' .. META) end
  if SHARD == '' and (not needs or needs == '') then return unknown(layout, '') end
  local state, others = shard_state(needs)
  local refused = unknown(layout, others)
  if refused or state == SHARD then return refused end
  local from, phase = string.match(state, '^(%d+)([~><^])')
  if not from then
    return redis.error_reply('DQSHARDS ' .. (state == '' and '?' or state) .. ' ' .. (SHARD == '' and '1' or SHARD) .. ' ' .. META)
  end
  if settling and phase == '~' and from == (string.match(SHARD, '%d+$') or '1') then return nil, true end
  return redis.error_reply('DQMOVING ' .. state .. ' ' .. META)
end

-- How a call without a session begins.
-- @returns an error reply or nil; then the named fields of `meta`, false for one that is not there
local function read_meta(settling, ...)
  local meta = call('HMGET', META, 'layout', 'needs', ...)
  return refusal(meta[1], meta[2], settling) or nil, unpack(meta, 3)
end

-- For the scripts that move jobs to another number of shards: a call that comes late, when that is over, must change nothing.
-- @returns an error reply or nil; then the named fields of `meta`
local function begin_moving(wanted, ...)
  local meta = call('HMGET', META, 'layout', 'needs', ...)
  local state, others = shard_state(meta[2])
  local refused = unknown(meta[1], others)
  if refused or state == wanted then return refused, unpack(meta, 3) end
  return redis.error_reply('DQMOVED ' .. (state == '' and '?' or state) .. ' ' .. META)
end
