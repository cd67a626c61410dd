-- Sets the limits of a queue, or asks for them. They hold from the next step of any worker on; what runs is not stopped.
-- KEYS  the shard's fixed list
-- ARGV  1 the limits, as shared/groups.lua reads them, '' for none, or ? to ask   2 c from the settings of an application, o by an
--       operator, whom settings do not override, r gives them back: those of the application that booted last hold at once,
--       w says only that it is a queue with limits
-- Reply outcome (s set, k kept: an operator set others, u as they were, n it is no queue with limits), the limits before, o when an operator set those that hold, else c;
--       to the question also what applications said last, while an operator's hold
-- Cost  O(log n)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups
--#include changed
--#include wake

adopts = true
local asked, by = ARGV[1], ARGV[2]
local refused, before, setBy, needs, leader, paused, wokenAt, ofSettings =
  read_meta(false, 'limits', 'limitsBy', 'needs', 'leader', 'paused', 'wokenAt', 'limitsOfSettings')
if refused then return refused end
before, setBy = before or '', setBy or 'c'
if asked == '?' then return { is_limited(needs) and 'u' or 'n', before, setBy, ofSettings or '' } end
if by == 'c' and setBy == 'o' then
  call('HSET', META, 'limitsOfSettings', asked)
  return { before == asked and 'u' or 'k', before, setBy }
end
if by == 'r' then
  if setBy == 'c' then return { 'u', before, setBy } end
  asked, by = ofSettings or '', 'c'
elseif by == 'o' and setBy == 'c' then
  ofSettings = before
end
check_groups()
if by == 'w' then
  begin_groups(needs)
  return { 'u', before, setBy }
end
local head = is_limited(needs) and moment() or nil
if not is_limited(needs) and asked == '' then return { 'u', '', 'c' } end
begin_groups(needs)
call('HSET', META, 'limits', asked, 'limitsBy', by, 'limitsOfSettings', by == 'c' and asked or ofSettings or '')
limits = nil
read_limits()
if before ~= asked then
  if not limits.blocks then
    -- Jobs that kept the places of their groups while they wait give them up. What is beyond this number has them until it starts.
    local ids, waiting = call('ZRANGE', HELD, 0, 999), {}
    for n, due in ipairs(#ids > 0 and call('ZMSCORE', DUE, unpack(ids)) or {}) do
      if due then waiting[#waiting + 1] = ids[n] end
    end
    if #waiting > 0 then call('ZREM', HELD, unpack(waiting)) end
  end
  -- Groups at a limit are looked at anew by the steps that follow, some with each: widen() in step/begin-turns.lua.
  if call('ZCOUNT', RING, '(' .. exact(AT_LIMIT + now), '(' .. exact(LINE)) > 0 then
    limits.widened = exact(LINE) .. ' '
    call('HSET', META, 'widened', limits.widened)
  end
end
mark_changed()
wake_for_new_head(head, leader, paused, wokenAt)
return { before == asked and 'u' or 's', before, by }
