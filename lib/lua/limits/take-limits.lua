-- Makes a shard to which jobs are about to move one of a queue with limits.
-- KEYS  the shard's fixed list
-- ARGV  1 the state these keys must be in   2 the limits, as shared/groups.lua reads them, '' for none   3 c from the settings of an
--       application, o by an operator   4 what applications said last   5 their revision
-- Reply OK
-- Cost  O(1)
--#include keys
--#include clock
--#include layout
--#include envelope
--#include groups
--#include changed

local refused, needs = begin_moving(ARGV[1], 'needs')
if refused then return refused end
check_groups()
if begin_groups(needs) then mark_changed() end
call('HSET', META, 'limits', ARGV[2], 'limitsBy', ARGV[3], 'limitsOfSettings', ARGV[4], 'limitsRevision', ARGV[5])
return 'OK'
