-- The keys of recurring jobs, behind the fixed ones: only scripts that know schedules get them (lib/redis/keys.ts).
-- `schedules` holds per schedule the fields `{id}` (its record, lib/recurring/schedule-record.ts), `floor{id}` (the occurrence that
-- began last), `missed{id}`, `overlapped{id}` and `ahead{id}` (counts), and `paused{id}` (the moment of its last pause). Ids have no braces, so no two
-- of them share a field. `ticks` says when a schedule needs more occurrences. `pending` has the schedules of which a process was told, with
-- the score that they had in `ticks`, until more occurrences are written: who is told may die, or may not be able to read the record. `zoned`
-- has the jobs at a local time: other zone data may give them another moment.
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]
