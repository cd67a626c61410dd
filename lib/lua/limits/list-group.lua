-- A page of the jobs of one group that wait, in the order of their due times; those of one moment by the bytes of their ids. Reads only.
-- KEYS  the shard's fixed list
-- ARGV  1 l delayed | d due   2 base of the group   3 due time of the last job of the page before or -   4 its id   5 limit (1..200)
--       6 most bytes
-- Reply as that of list.lua
-- Cost  O(priorities in use x log n) commands of O(log n), and O(limit) for each priority in use
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups
--#include behind

adopts = true
local refused = read_meta(false)
if refused then return refused end
read_limits()
local base, cursor, after, limit, most = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
-- Of due jobs from the beginning on, of delayed ones behind those that are due.
local last = cursor and digits(cursor) .. after or ARGV[1] == 'l' and digits(now + 1) or ''
local found = {}
for priority in string.gmatch(limits.priorities, '%d') do
  local place = exact(base - tonumber(priority))
  local from, to = place_behind(GROUPED, place, last), call('ZCOUNT', GROUPED, '-inf', place)
  for _, member in ipairs(from < to and call('ZRANGE', GROUPED, from, math.min(from + limit, to - 1)) or {}) do
    local due = time_at(member, 1) or 0
    if ARGV[1] == 'l' or due <= now then found[#found + 1] = { due = due, id = string.sub(member, 8) } end
  end
end
table.sort(found, function(a, b)
  if a.due ~= b.due then return a.due < b.due end
  return is_before(a.id, b.id)
end)
local out, bytes = { #found > limit and 1 or 0 }, 0
for n = 1, math.min(limit, #found) do
  local id = found[n].id
  local record, failure, envelope = call('HGET', ATTEMPTS, id) or '', call('HGET', ERRORS, id) or '', call('HGET', JOBS, id) or ''
  bytes = bytes + #id + #record + #failure + #envelope
  if bytes > most and n > 1 then
    out[1] = 1
    break
  end
  local at = #out
  out[at + 1], out[at + 2], out[at + 3], out[at + 4], out[at + 5] = id, exact(found[n].due), record, failure, envelope
end
return out
