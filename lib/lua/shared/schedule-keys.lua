-- The keys of recurring jobs, behind the fixed ones: only scripts that know schedules get them (lib/redis/keys.ts).
-- `schedules` holds per schedule the fields `{id}` (its record, lib/recurring/schedule-record.ts), `floor{id}` (the occurrence that
-- began last), `missed{id}`, `overlapped{id}` and `ahead{id}` (counts), `paused{id}` (the moment of its last pause) and `since{id}` (when it was
-- made, of what an older library made none). Ids have no braces, so no two
-- of them share a field. `ticks` says when a schedule needs more occurrences. `pending` has the schedules of which a process was told, with
-- the score that they had in `ticks`, until more occurrences are written: who is told may die, or may not be able to read the record. `zoned`
-- has the jobs at a local time: other zone data may give them another moment.
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]

-- @returns the field of the schedule that made this occurrence, and for when (ms of schedules); nil of another id
local function made_by(id)
  local field, at = string.match(id, '^({[^}]*})(%w+)$')
  if not field then return nil end
  local time = 0
  for digit in string.gmatch(at, '%w') do time = time * 36 + tonumber(digit, 36) end
  return field, time
end
