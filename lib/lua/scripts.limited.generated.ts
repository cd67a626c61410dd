// Written by generate.mjs from the .lua files beside it. Change those, then run `npm run generate`.
import { joined, PARTS } from './scripts.generated.js';
export const LIMITED_KEY_COUNT = 25;
const LIMITED = {
  part6: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local GROUPED, RING, HELD, RATES = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`,
  shardState2: `local function shard_state(needs)
local state, others = '', {}
for word in string.gmatch(needs or '', '%S+') do
if string.sub(word, 1, 7) == 'shards:' then
state = string.sub(word, 8)
elseif word ~= 'limits' then
others[#others + 1] = word
end
end
return state, table.concat(others, ' ')
end`,
  part7: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local GROUPED, RING, HELD, RATES = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]`,
  isLimited: `local function is_limited(needs)
return string.find(' ' .. (needs or '') .. ' ', ' limits ', 1, true) ~= nil
end`,
  refusal2: `local function refusal(layout, needs, settling)
if not is_limited(needs) and not adopts then return redis.error_reply('DQPLAIN no limits are kept at ' .. META) end
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
end`,
  readLimits: `local function read_limits()
if limits then return limits end
local text, turn, priorities, adopting, flip, rewound, widened, seenAt, rated =
unpack(call('HMGET', META, 'limits', 'turn', 'priorities', 'adopting', 'flip', 'rewound', 'widened', 'seenAt', 'rated'))
text = ' ' .. (text or '') .. ' '
local function numbers(name)
local a, b = string.match(text, ' ' .. name .. ':(%d+)/?(%d*) ')
return whole(a), whole(b)
end
local index, shards = string.match(SHARD, '^(%d+)/(%d+)$')
local function share(n)
return n and index and math.floor(n / tonumber(shards)) + (tonumber(index) < n % tonumber(shards) and 1 or 0) or n
end
local latest = whole(turn) or 0
if latest > (now + 86400000) * 1024 then latest = 0 end
limits = { count = share(numbers('count')), step = numbers('step') or 60000, groupCount = numbers('groupCount'), expired = {} }
limits.max, limits.per = numbers('rate')
limits.max = share(limits.max)
limits.groupMax, limits.groupPer = numbers('groupRate')
limits.blocks = numbers('block') == 1
limits.counts = (limits.count or limits.max or limits.groupCount or limits.groupMax) ~= nil
limits.turn, limits.flip = math.max(latest, now * 1024), flip == '1' and 1 or 0
limits.priorities, limits.adopting, limits.rewound, limits.widened = priorities or '0', adopting, rewound, widened
limits.seen, limits.rated = math.min(now, whole(seenAt) or 0), whole(rated) or 0
return limits
end`,
  window: `local function window(text, max, per)
local used, kept, ahead = 0, {}, false
for at, n, first in string.gmatch(text or '', '(%d+):(%d+):?(%-?%d*)') do
at, n = tonumber(at), tonumber(n)
first = at * 1024 + (tonumber(first) or 0)
if at > now then at, ahead = now, true end
if at + per > now then
used = used + n
kept[#kept + 1] = { at, n, first }
end
end
return { ahead = ahead, left = math.max(0, max - used), opens = kept[1] and kept[1][1] + per, kept = kept, per = per }
end`,
  moment: `local function moment()
read_limits()
if limits.count and call('ZCARD', RUNNING) >= limits.count then return nil end
if limits.max then
local rate = window(call('HGET', RATES, ''), limits.max, limits.per)
if rate.left == 0 then return rate.opens or now + limits.per end
end
if limits.adopting or limits.rewound or limits.widened then return now - 50 end
local first, opens = call('ZRANGE', RING, 0, 0, 'WITHSCORES'), math.huge
if first[1] and tonumber(first[2]) < LINE then
opens = tonumber(first[2]) - AT_LIMIT
first = call('ZRANGE', RING, exact(LINE), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
end
local at = first[1] and tonumber(first[2]) or math.huge
if at < 0 then
local since = math.floor((at - LINE) / 1024)
return since <= now and since or now - 50
end
at = math.min(at, opens)
return at < OVER and at or nil
end`,
  endGroupIfEmpty: `local function end_group_if_empty(base)
local place = tonumber(base)
if call('ZRANGE', GROUPED, exact(place - 9), base, 'BYSCORE', 'LIMIT', 0, 1)[1] then return end
local starts = call('HGET', RATES, base)
if not starts then return call('ZREM', RING, base) end
read_limits()
local kept = window(starts, 0, limits.groupPer or 0).kept
call('ZADD', RING, exact(OVER + (kept[1] and kept[#kept][1] + limits.groupPer or now)), base)
end`,
  depart: `local function depart(...)
for n, due in ipairs(call('ZMSCORE', DUE, ...)) do
local member = due and digits(tonumber(due)) .. select(n, ...)
local place = member and tonumber(call('ZSCORE', GROUPED, member) or nil)
if place then
call('ZREM', GROUPED, member)
end_group_if_empty(base_of(place))
end
end
end`,
  free: `local function free(...)
read_limits()
local bases, seen = {}, {}
if limits.groupCount then
for _, place in ipairs(call('ZMSCORE', HELD, ...)) do
local base = place and base_of(tonumber(place))
if base and not seen[base] then
seen[base] = true
bases[#bases + 1] = base
end
end
end
call('ZREM', HELD, ...)
local joined = {}
for i, score in ipairs(#bases > 0 and call('ZMSCORE', RING, unpack(bases)) or {}) do
if score and tonumber(score) < LINE then
limits.turn = limits.turn + 1
joined[#joined + 1] = exact(limits.turn + LINE)
joined[#joined + 1] = bases[i]
end
end
if #joined == 0 then return end
call('ZADD', RING, unpack(joined))
call('HSET', META, 'turn', exact(limits.turn))
end`,
  checkGroups: `local function check_groups()
call('ZCARD', GROUPED); call('ZCARD', RING); call('ZCARD', HELD); call('HLEN', RATES)
end`,
  wakeForRoom: `local function wake_for_room(before)
wake_for_new_head(before, unpack(call('HMGET', META, 'leader', 'paused', 'wokenAt')))
end`,
  cancelOne2: `local function cancel_one(id, evenRunning, expected)
local place, due = place_of(id)
if place == 'r' and evenRunning then
call('HSET', FOLLOWUPS, id, '!')
call('HDEL', DEBOUNCE, id)
call('ZREM', UNIQUE, id)
end
if place ~= 'w' then return NOT_WAITING[place] end
local state = (due and due > now) and 'l' or 'd'
if expected and due ~= expected then return 'm ' .. state end
depart(id); free(id); call('ZREM', DUE, id)
call('ZREM', QUARANTINE, id)
erase_unfinished(id)
return 'c ' .. state
end`,
  part8: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local GROUPED, RING, HELD, RATES = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`,
  restOf: `local function rest_of(envelope)
local flag = string.sub(envelope, 2, 2)
return flag == 'x' and 24 or flag == 'g' and 26 or flag == 'y' and 33 or 17
end`,
  placed: `local function placed(stamp)
return (string.byte(stamp) == 120 and 'y' or 'g') .. string.sub(stamp, 2)
end`,
  stampAt: `local function stamp_at(due, expiry, place)
local stamp = stamp_of(due, expiry)
return place == '' and stamp or placed(stamp) .. string.sub(place, 1, 9)
end`,
  moved2: `local function moved(envelope, due)
local was = due_of(envelope)
if not was then return envelope end
local head = string.sub(envelope, 1, 9) .. digits(due)
local flag = string.sub(envelope, 2, 2)
if flag ~= 'x' and flag ~= 'y' then return head .. string.sub(envelope, 17) end
return head .. digits((time_at(envelope, 17) or due) + due - was) .. string.sub(envelope, 24)
end`,
  placeIn: `local function place_in(envelope)
local flag = string.sub(envelope or '', 2, 2)
local from = flag == 'g' and 17 or flag == 'y' and 24
local place = 0
for at = from or 1, from and from + 8 or 0 do
place = place * 79 + (string.byte(envelope, at) or 44) - 44
end
return from and place >= 0 and place < 2 ^ 53 and place or 9
end`,
  enter: `local function enter(jobs, places)
if #places == 0 then return end
read_limits()
local entries, ring, known = {}, {}, {}
local lastDue, time, prefix, lastPlace, base, entered
for n, place in ipairs(places) do
local due = jobs[2 * n - 1]
if due ~= lastDue then
lastDue, time = due, tonumber(due)
prefix, time = digits(time), exact(math.max(limits.seen, math.min(time, 8.64e15)))
entered = nil
end
if place ~= lastPlace then
lastPlace, entered = place, nil
local behind = tonumber(place) % 16
base = behind == 9 and place or base_of(tonumber(place))
local priority = exact(math.max(0, 9 - behind))
if not known[behind] and not string.find(limits.priorities, priority, 1, true) then
limits.priorities = limits.priorities .. priority
call('HSET', META, 'priorities', limits.priorities)
end
known[behind] = true
end
entries[2 * n - 1], entries[2 * n] = place, prefix .. jobs[2 * n]
if not entered then
entered = true
ring[#ring + 1], ring[#ring + 2] = time, base
end
end
call('ZADD', GROUPED, unpack(entries))
call('ZADD', RING, 'LT', unpack(ring))
end`,
  setDue: `local function set_due(due, id, envelope)
depart(id)
enter({ due, id }, { exact(place_in(envelope)) })
call('ZADD', DUE, due, id)
end`,
  beginGroups: `local function begin_groups(needs)
if is_limited(needs) then return false end
call('HSET', META, 'needs', (needs and needs ~= '' and needs .. ' ' or '') .. 'limits')
if call('ZCARD', DUE) > 0 then
call('HSET', META, 'adopting', '-inf ')
call('HDEL', META, 'wokenAt')
end
return true
end`,
  rescheduleOne2: `local function reschedule_one(id, target_of, onlySooner, expected)
local place, due = place_of(id)
if place ~= 'w' then return NOT_WAITING[place] .. ' 0' end
local state = (due and due > now) and 'l' or 'd'
if expected and due ~= expected then return 'm ' .. state .. ' 0' end
local target = target_of(due)
if onlySooner and (not due or due <= target) then target = due or now
else
local envelope = call('HGET', JOBS, id)
set_due(target, id, envelope); free(id)
if envelope then call('HSET', JOBS, id, moved(envelope, target)) end
disown(id)
call('ZREM', QUARANTINE, id)
end
return 's ' .. state .. string.format(' %.0f', target)
end`,
  follow2: `local function follow(id, after)
local envelope = follower(after)
if string.byte(after) == 61 then
set_due(string.sub(after, 2), id, call('HGET', JOBS, id))
elseif envelope then
set_due(due_of(envelope) or now, id, envelope)
call('HSET', JOBS, id, envelope)
forget_attempts(id)
else
erase(id)
end
call('ZREM', RUNNING, id)
free(id)
call('ZREM', QUARANTINE, id)
call('HDEL', FOLLOWUPS, id)
end`,
  withdraw2: `local function withdraw(ids, stay)
local found, erased, count = {}, {}, 0
for _, id in ipairs(ids) do
if not found[id] and is_unbegun(id) then
found[id] = true
count = count + 1
if not (stay and stay[id]) then erased[#erased + 1] = id end
end
end
local waited = {}
for id in pairs(found) do waited[#waited + 1] = id end
table.sort(waited)
if #waited > 0 then free(unpack(waited)) end
if #erased > 0 then
depart(unpack(erased)); call('ZREM', DUE, unpack(erased))
erase_unfinished(unpack(erased))
end
return count, found
end`,
};
export const LIMITED_SOURCES = {
  adoptShard: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, `local refused, sinceBefore, took = begin_moving(ARGV[1], 'since', 'took:' .. ARGV[3])
if refused then return refused end
if string.find(ARGV[2], 'p', 1, true) then call('HSET', META, 'paused', '1') end
if string.find(ARGV[2], 'b', 1, true) then call('HSET', META, 'publishingPaused', '1') end
if ARGV[3] == '' or took then return 'OK' end
local since = whole(ARGV[4]) or 0
local fields = { 'took:' .. ARGV[3], 1 }
if since > 0 then
fields[3], fields[4] = 'since', string.format('%.0f', math.min(since, whole(sinceBefore) or since))
end
for i = 5, #ARGV, 2 do
fields[#fields + 1] = ARGV[i]
fields[#fields + 1] = string.format('%.0f', (whole(call('HGET', META, ARGV[i])) or 0) + (whole(ARGV[i + 1]) or 0))
end
call('HSET', META, unpack(fields))
return 'OK'`),
  beginOccurrence: joined(LIMITED.part7, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.readRecord, `local function is_cancelled(after)
return after and string.byte(after) == 33
end
local id, occurrence, claim, asked = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local refused, skipped = read_meta(true, 'skipped')
if refused then return refused end
local field = '{' .. id .. '}'
local floor = 'floor' .. field
call('HLEN', ATTEMPTS)
local known = call('HEXISTS', SCHEDULES, field) == 1
if tonumber(call('ZSCORE', RUNNING, occurrence) or nil) ~= claim then return 'l' end
local function skip(what)
if call('HEXISTS', FOLLOWUPS, occurrence) == 1 then return end
if known then call('HSET', SCHEDULES, what .. field, (whole(call('HGET', SCHEDULES, what .. field)) or 0) + 1) end
call('HSET', META, 'skipped', string.format('%.0f', (whole(skipped) or 0) + 1))
call('HSET', FOLLOWUPS, occurrence, '!')
end
local holder = call('HGET', SCHEDULES, floor)
if holder == occurrence then return 'g' end
local text = call('HGET', ATTEMPTS, occurrence)
local charged, losses, snoozes, _, limit = read_record(text)
local is_over = is_cancelled(call('HGET', FOLLOWUPS, occurrence))
local since, _, at = whole(call('HGET', SCHEDULES, 'since' .. field)), made_by(occurrence)
local is_left = not is_over and (not known or (since and at < since))
if is_left and text then return 'g' end
local has_begun = charged > losses or snoozes > 0
local paused = whole(call('HGET', SCHEDULES, 'paused' .. field))
local is_paused = paused and tonumber(ARGV[5]) <= paused and not has_begun
if is_paused then asked = 'm' end
local is_there = #ARGV == 5 or is_paused or is_over
for i = 6, #ARGV do is_there = is_there or call('HEXISTS', JOBS, ARGV[i]) == 1 or call('ZSCORE', COMPLETED, ARGV[i]) end
if asked == 'm' and not is_there then return 'n' end
if asked == 'm' then
skip('missed')
return 'm'
end
if holder and call('HEXISTS', JOBS, holder) == 1 and not call('ZSCORE', DEAD, holder) then
if asked == 's' then skip('overlapped') end
if asked == 'w' and losses > 0 and not has_begun and not limit then call('HDEL', ATTEMPTS, occurrence) end
return 'b'
end
if is_over then return 'l' end
if known then call('HSET', SCHEDULES, floor, occurrence) end
return 'g'`),
  cancelMany: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, LIMITED.cancelOne2, `local seq, evenRunning = sequence(ARGV[1]), ARGV[2] == '1'
local replied = begin(seq, false)
if replied then return replied end
check_groups()
local head = moment()
call('ZCARD', DUE); call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD)
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answers = {}
for i = 3, #ARGV, 2 do
answers[#answers + 1] = cancel_one(ARGV[i], evenRunning, tonumber(ARGV[i + 1]))
end
local answer = table.concat(answers, ' ')
remember(seq, answer)
wake_for_room(head)
return answer`),
  cancelOccurrences: joined(LIMITED.part7, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, LIMITED.cancelOne2, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.isBefore, PARTS.placeBehind, `local seq, schedule, most, waiting = sequence(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[6] == '1'
local replied = begin(seq, false)
if replied then return replied end
check_groups()
local head = moment()
call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('HLEN', FOLLOWUPS); call('HLEN', SCHEDULES)
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local index = waiting and DUE or RUNNING
local from = place_behind(index, ARGV[4], ARGV[5])
local page = call('ZRANGE', index, from, from + most - 1, 'WITHSCORES')
local prefix, count = '{' .. schedule .. '}', 0
for i = 1, #page, 2 do
local id = page[i]
if string.sub(id, 1, #prefix) == prefix and not (waiting and is_unbegun(id)) then
if waiting then cancel_one(id, false) else call('HSET', FOLLOWUPS, id, '!') end
count = count + 1
end
end
local answer = string.format('%d', count)
if #page == 2 * most then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
wake_for_room(head)
return answer`),
  cancel: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, LIMITED.cancelOne2, `local seq, id, evenRunning = sequence(ARGV[1]), ARGV[2], ARGV[3] == '1'
local replied = begin(seq, false)
if replied then return replied end
check_groups()
local head = moment()
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answer = cancel_one(id, evenRunning, nil)
remember(seq, answer)
wake_for_room(head)
return answer`),
  counts: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.timeAt, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, `local refused, paused, publishingPaused, graceUntil, longestLease, enqueued, completed, failed, retried, buried, expired, since, seenAt,
skipped =
read_meta(false, 'paused', 'publishingPaused', 'graceUntil', 'longestLease', 'enqueued', 'completed', 'failed', 'retried', 'dead',
'expired', 'since', 'seenAt', 'skipped')
if refused then return refused end
local quarantined = call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')
local due = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local later = call('ZRANGE', DUE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local nQuarantined = call('ZCARD', QUARANTINE)
local oldest = due[1] and tonumber(due[2])
if quarantined[1] then oldest = math.min(oldest or math.huge, tonumber(quarantined[2])) end
local first = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
local grace = whole(graceUntil) or 0
if grace > now + math.max(whole(longestLease) or 0, 30000) then grace = 0 end
local running = call('ZCARD', RUNNING)
local over = running > 0 and first[1] and now - math.max(tonumber(first[2]), grace) or 0
local ahead, pending = call('ZRANGE', TICKS, 0, 0, 'WITHSCORES'), call('ZRANGE', PENDING, 0, 0, 'WITHSCORES')
local need = math.min(tonumber(ahead[2]) or math.huge, tonumber(pending[2]) or math.huge)
if paused == '1' or publishingPaused == '1' then need = now end
read_limits()
local limited = limits.count and running >= limits.count or false
if limits.max then limited = limited or window(call('HGET', RATES, ''), limits.max, limits.per).left == 0 end
local waiting = -1
for _, base in ipairs(limited and {} or call('ZRANGE', RING, exact(LINE), exact(now), 'BYSCORE', 'LIMIT', 0, 50)) do
for priority in string.gmatch(limits.priorities, '%d') do
local place = exact(tonumber(base) - tonumber(priority))
local first = call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', 0, 1)[1]
local at = first and time_at(first, 1)
if at and at <= now and (waiting < 0 or at < waiting) then waiting = at end
end
end
if quarantined[1] and not limited then waiting = math.min(waiting < 0 and math.huge or waiting, tonumber(quarantined[2])) end
local function total(count) return whole(count) or 0 end
return {
now, call('ZCOUNT', DUE, '(' .. now, '+inf'), call('ZCOUNT', DUE, '-inf', now) + nQuarantined, running,
call('ZCARD', DEAD), nQuarantined, paused == '1' and 1 or 0, oldest and math.max(0, oldest) or -1,
later[1] and math.min(tonumber(later[2]), 9e15) or -1, call('ZCOUNT', IDLE, now, '+inf'),
total(enqueued), total(completed), total(failed), total(retried), total(buried), total(expired), total(since), total(seenAt),
publishingPaused == '1' and 1 or 0, call('ZCARD', COMPLETED), math.max(0, math.min(over, 9e15)),
total(skipped), call('ZCARD', TICKS), math.max(0, math.min(now - need, 9e15)),
limited and 1 or 0, call('ZCOUNT', RING, exact(LINE), exact(now)), call('ZCOUNT', RING, '-inf', '(' .. exact(LINE)), call('ZCARD', RING), waiting,
moment() or -1,
}`),
  endShard: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local limits
local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local refused, leader, since = begin_moving(ARGV[1], 'leader', 'since')
if refused then return refused end
if ARGV[4] and ARGV[4] ~= (since or '') then return 'anew' end
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE)
call('ZCARD', LEASES); call('ZCARD', IDLE); call('HLEN', HISTORY)
call('HLEN', SCHEDULES); call('ZCARD', PENDING)
local left = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) + call('ZCARD', DEAD) + call('ZCARD', TICKS)
local kept = call('ZCOUNT', UNIQUE, '(' .. now, '+inf') + call('ZCARD', COMPLETED) + call('ZCARD', ZONED)
if ARGV[3] == 'f' then left = 0 elseif ARGV[3] ~= 'j' then left = left + kept end
if left > 0 then return string.format('%d', left) end
if ARGV[2] == '' then wake(holder(leader)) end
call('UNLINK', DUE, RUNNING, LEASES, JOBS, FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD, ERRORS, UNIQUE, DEBOUNCE, IDLE, COMPLETED, HISTORY,
SCHEDULES, TICKS, ZONED, PENDING, META, CHANGED, GROUPED, RING, HELD, RATES)
if ARGV[2] ~= '' then call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. ARGV[2]) end
return 'OK'`),
  enqueue: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, PARTS.versionOf, LIMITED.restOf, `local enqueued`, PARTS.stampOf, LIMITED.placed, LIMITED.stampAt, `local function at_place(envelope, place)
local from = rest_of(envelope)
if place == '' or from > 24 then return envelope end
return string.sub(envelope, 1, 1) .. placed(string.sub(envelope, 2, from - 1)) .. string.sub(place, 1, 9) .. string.sub(envelope, from)
end`, PARTS.sealed, `local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.beginGroups, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end`, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.mustWake, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, `local specs, counts, starts, checked, limited = {}, {}, {}, false, false
local widths, placeOfJob = {}, ''
local function stamp_of(due, expiry)
return stamp_at(due, expiry, placeOfJob)
end
do
local at, n = 2, 0
while at <= #ARGV do
local spec, count = ARGV[at], 1
local star = string.find(spec, '*', 1, true)
if star then count, spec = tonumber(string.sub(spec, 1, star - 1)), string.sub(spec, star + 1) end
local isPlaced = string.sub(spec, -2) == ' @'
if isPlaced then spec, adopts = string.sub(spec, 1, -3), SHARD == '' end
widths[n + 1] = isPlaced and 3 or 2
n = n + 1
specs[n], counts[n], starts[n] = spec, count, at
local rules = string.find(spec, ' ', 1, true)
if rules and string.find(spec, ' %S+ %S+ %S+ %d+$', rules) then limited = true end
if string.byte(spec) ~= 110 or rules and not string.find(spec, '^ %S+ %- %- ?%d*$', rules) then checked = true end
at = at + 1 + widths[n] * count
end
end
local function options_of(spec)
local at = string.find(spec, ' ', 1, true)
local value, expiry, maxWait, uniqueFor, limit = string.sub(spec, 3)
if at then value, expiry, maxWait, uniqueFor, limit = string.match(spec, '^..(%d+) (%S+) (%S+) (%S+) ?(%d*)$') end
local dueAt = tonumber(value)
if string.byte(spec, 2) == 100 then dueAt = now + dueAt end
return dueAt, expiry, tonumber(maxWait), tonumber(uniqueFor), tonumber(limit)
end
local function expiry_of(expiry, dueAt)
if not expiry or expiry == '-' then return nil end
local ms = tonumber(string.sub(expiry, 2))
if string.sub(expiry, 1, 1) == 'i' then return dueAt + ms end
return ms
end
local seq = sequence(ARGV[1])
local replied, leader, paused, wokenAt, enqueuedBefore, since, publishingPaused = begin(seq, false, 'leader', 'paused', 'wokenAt', 'enqueued', 'since', 'publishingPaused')
if replied then return replied end
if publishingPaused == '1' then
local more = -1
for _, count in ipairs(counts) do more = more + count end
local answer = now .. ' b - 0' .. (more > 0 and ' =' .. more or '')
remember(seq, answer)
return answer
end
check_groups()
local begun = adopts and begin_groups(call('HGET', META, 'needs'))
local head = not begun and moment() or nil
local size = 0
if limited then
local ahead = whole(call('HGET', META, 'ahead')) or 0
size = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) - ahead
end
local due, running, dead, quarantined, windowEnds, burstStarts, known, history
local ids = {}
for r, start in ipairs(starts) do
for k = 0, counts[r] - 1 do ids[#ids + 1] = ARGV[start + widths[r] * k + 1] end
end
if not checked and #ids > 0 then
for _, envelope in ipairs(call('HMGET', JOBS, unpack(ids))) do
if envelope then checked = true end
end
end
if checked then
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
due, running = call('ZMSCORE', DUE, unpack(ids)), call('ZMSCORE', RUNNING, unpack(ids))
dead, quarantined = call('ZMSCORE', DEAD, unpack(ids)), call('ZMSCORE', QUARANTINE, unpack(ids))
windowEnds, burstStarts = call('ZMSCORE', UNIQUE, unpack(ids)), call('HMGET', DEBOUNCE, unpack(ids))
known, history = {}, call('ZCARD', COMPLETED)
if history > 0 then call('HLEN', HISTORY) end
end
local out = { now }
local zadd, hset, pending, anew, created, windows = {}, {}, 0, {}, 0, 0
local after = head or math.huge
local putAt = {}
local function put(id, dueAt, envelope)
putAt[pending / 2 + 1] = placeOfJob == '' and '9' or string.sub(placeOfJob, 10)
zadd[pending + 1], zadd[pending + 2] = dueAt, id
hset[pending + 1], hset[pending + 2] = id, envelope
pending = pending + 2
created = created + 1
end
local function flush()
if pending == 0 then return end
call('HSET', JOBS, unpack(hset))
enter(zadd, putAt)
putAt = {}
call('ZADD', DUE, unpack(zadd))
zadd, hset, pending = {}, {}, 0
end
if checked or limited then
local bursts = {}
local function look_up(n, id)
if known[id] then return known[id] <= now and 'd' or 'l' end
local at = tonumber(due[n])
local indexed = at or running[n] or dead[n] or quarantined[n]
local ghost = false
if indexed and not running[n] and not dead[n] and call('HEXISTS', JOBS, id) == 0 then
indexed, ghost = nil, true
end
if indexed then
local state = running[n] and 'r' or dead[n] and 'x' or (not at or at <= now) and 'd' or 'l'
return state, ghost, state == 'r' and call('HGET', FOLLOWUPS, id)
end
if windowEnds[n] and tonumber(windowEnds[n]) > now then return 'c', ghost end
return nil, ghost
end
local function newest(id, after)
return follower(after) or call('HGET', JOBS, id)
end
local function kept_due(n, id, after_run)
if running[n] and not known[id] then
local envelope = follower(after_run)
return envelope and due_of(envelope)
end
if known[id] or due[n] then return known[id] or tonumber(due[n]) end
return quarantined[n] and due_of(call('HGET', JOBS, id) or '')
end
local function outcome_of(mode, state, ghost, ending, limit)
local full = limit and size >= limit
if not state then return full and not ghost and 'f' or 'c' end
if mode == 'x' then return 'x' end
if state == 'c' then return 'k' end
if ending then return 'p' end
if mode == 'p' or mode == 'u' then return 'p' end
if mode == 'r' then return 'r' end
if state ~= 'x' or mode ~= 'k' then return 'k' end
return full and 'f' or 'p'
end
local function overwrite(id, dueAt, envelope, outcome, state)
set_due(dueAt, id, envelope); free(id)
call('HSET', JOBS, id, envelope)
if outcome == 'p' or state == 'x' then
forget_attempts(id)
else
disown(id)
end
call('ZREM', QUARANTINE, id)
call('ZREM', DEAD, id)
if state == 'x' then size = size + 1 end
known[id] = dueAt
end
local function open(id, uniqueFor)
call('ZADD', UNIQUE, now + uniqueFor, id)
windows = windows + 1
end
local function create(id, dueAt, envelope, ghost)
if not ghost then size = size + 1 end
if ghost then after = false elseif after then after = math.min(after, dueAt) end
put(id, dueAt, envelope)
if checked then known[id] = dueAt end
if checked and history > 0 then anew[#anew + 1] = id end
if ghost then
call('ZREM', QUARANTINE, id)
forget_attempts(id)
end
end
local function decide(n, spec, id, content)
local mode = string.sub(spec, 1, 1)
local dueAt, expiry, maxWait, uniqueFor, limit = options_of(spec)
local state, ghost, after_run, burst
if checked then
state, ghost, after_run = look_up(n, id)
if maxWait then
burst = state and state ~= 'c' and (bursts[id] or tonumber(burstStarts[n])) or now
local waits = state and state ~= 'c' and kept_due(n, id, after_run)
if waits then dueAt = math.min(dueAt, math.max(waits, burst + maxWait)) end
end
end
local ending = after_run == '!' and mode ~= 'm'
local outcome = outcome_of(mode, state, ghost, ending, limit)
if outcome == 'c' then
if ghost then depart(id) end; if mode == 'm' then content = at_place(content, placeOfJob) end
create(id, dueAt, mode == 'm' and content or sealed(content, stamp_of(dueAt, expiry_of(expiry, dueAt))), ghost)
elseif outcome == 'p' or outcome == 'r' then
after = false
flush()
if mode == 'u' then dueAt = kept_due(n, id, after_run) or dueAt end
local envelope = outcome == 'r' and newest(id, after_run)
envelope = envelope and moved(envelope, dueAt) or sealed(content, stamp_of(dueAt, expiry_of(expiry, dueAt)))
if state == 'r' then
call('HSET', FOLLOWUPS, id, is_cancelled(after_run) and '!' .. envelope or envelope)
else
overwrite(id, dueAt, envelope, outcome, state)
end
elseif outcome == 'f' then
dueAt = size
elseif state ~= 'c' then
dueAt = known[id] or tonumber(due[n]) or due_of(call('HGET', JOBS, id) or '') or 0
end
if outcome == 'c' or outcome == 'p' or outcome == 'r' then
if uniqueFor and (outcome == 'c' or state == 'x' or ending) then open(id, uniqueFor) end
if burst then
bursts[id] = burst
call('HSET', DEBOUNCE, id, burst)
end
end
return outcome .. ' ' .. (state or '-') .. ' ' .. string.format('%.0f', dueAt)
end
local n = 0
for r, spec in ipairs(specs) do
for at = starts[r] + 1, starts[r] + widths[r] * counts[r], widths[r] do
placeOfJob = widths[r] == 3 and ARGV[at + 2] or ''
n = n + 1
out[n + 1] = decide(n, spec, ARGV[at], ARGV[at + 1])
end
end
else
for r, spec in ipairs(specs) do
placeOfJob = ''
local dueAt, expiry = options_of(spec)
local score, stamp = string.format('%.0f', dueAt), stamp_of(dueAt, expiry_of(expiry, dueAt))
after = math.min(after, dueAt)
out[#out + 1] = 'c - ' .. score
if counts[r] > 1 then out[#out + 1] = '=' .. counts[r] - 1 end
if widths[r] == 3 then stamp = placed(stamp) end
for at = starts[r] + 1, starts[r] + widths[r] * counts[r], widths[r] do
placeOfJob = widths[r] == 3 and ARGV[at + 2] or ''
put(ARGV[at], score, sealed(ARGV[at + 1], stamp .. string.sub(placeOfJob, 1, 9)))
end
end
end
flush()
if #anew > 0 then
call('ZREM', COMPLETED, unpack(anew))
call('HDEL', HISTORY, unpack(anew))
end
if windows > 0 then
local ended = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, 2 * windows)
if #ended > 0 then call('ZREM', UNIQUE, unpack(ended)) end
end
local answer = (since and '' or '+') .. table.concat(out, ' ')
remember(seq, answer)
local fields = { 'enqueued', (whole(enqueuedBefore) or 0) + created }
if not since then
fields[3], fields[4], fields[5], fields[6] = 'layout', LAYOUT, 'since', now
end
after = moment()
if after and (not head or after < head) then mark_changed() end
local woken = paused ~= '1' and must_wake(head, after, tonumber(wokenAt))
if woken then
fields[#fields + 1] = 'wokenAt'
fields[#fields + 1] = now
end
call('HSET', META, unpack(fields))
if woken then wake(holder(leader)) end
return answer`),
  extend: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.nextClaim, `local function claim_name(number)
return string.format('%.0f', number)
end
local function sole_deadline(deadline)
return deadline + 0.5
end
local function is_sole(deadline)
return deadline % 1 ~= 0
end`, PARTS.endLeaseIfEmpty, `local seq, old, id, lease = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local replied, lastClaim, longestLease = begin(seq, true, 'claim', 'longestLease')
if replied then return replied end
local answer = '0'
call('ZCARD', LEASES)
if tonumber(call('ZSCORE', RUNNING, id)) == old then
answer = claim_name(next_claim(whole(lastClaim)))
local was = claim_name(old)
local longest = math.max(whole(longestLease) or 0, lease)
local deadline = tonumber(call('ZSCORE', LEASES, was)) or 0
local fresh = math.min(math.max(math.floor(deadline), now + lease), now + longest)
local sole = is_sole(deadline) and call('ZCOUNT', RUNNING, was, was) <= 1
call('ZADD', LEASES, sole and sole_deadline(fresh) or fresh, answer)
call('ZADD', RUNNING, answer, id)
end_lease_if_empty(was)
call('HSET', META, 'claim', answer, 'longestLease', longest)
end
remember(seq, answer)
return answer`),
  get: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local id = ARGV[1]
local refused = read_meta(false)
if refused then return refused end
local state, score = 'r', call('ZSCORE', RUNNING, id)
if not score then
score = call('ZSCORE', DUE, id)
state = score and tonumber(score) > now and 'l' or 'd'
end
if not score then state, score = 'd', call('ZSCORE', QUARANTINE, id) and '-inf' end
if not score then state, score = 'x', call('ZSCORE', DEAD, id) end
if not score then
score = call('ZSCORE', COMPLETED, id)
if not score then return nil end
local record, envelope = string.match(call('HGET', HISTORY, id) or '', '^([^\\n]*)\\n(.*)$')
return { 'c', score, record or '', '', envelope or '' }
end
return { state, score, call('HGET', ATTEMPTS, id) or '', call('HGET', ERRORS, id) or '', call('HGET', JOBS, id) or '' }`),
  groups: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.timeAt, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, PARTS.isBefore, PARTS.placeBehind, `adopts = true
local refused = read_meta(false)
if refused then return refused end
read_limits()
local limit = math.min(100, tonumber(ARGV[2]))
local LONGEST_HEAD = 65536
local function count_due(place)
local low = call('ZCOUNT', GROUPED, '-inf', '(' .. place)
local from, high = low, call('ZCOUNT', GROUPED, '-inf', place)
while low < high do
local middle = math.floor((low + high) / 2)
local member = call('ZRANGE', GROUPED, middle, middle)[1]
if (time_at(member, 1) or 0) <= now then low = middle + 1 else high = middle end
end
return low - from
end
local out = { '' }
local function add(base, score)
local lowest, due = exact(tonumber(base) - 9), 0
local waiting, running = call('ZCOUNT', GROUPED, lowest, base), call('ZCOUNT', HELD, lowest, base)
if waiting + running == 0 then return end
for priority in string.gmatch(limits.priorities, '%d') do due = due + count_due(exact(tonumber(base) - tonumber(priority))) end
local waits = call('ZRANGE', GROUPED, lowest, base, 'BYSCORE', 'LIMIT', 0, 1)[1]
local runs = call('ZRANGE', HELD, lowest, base, 'BYSCORE', 'LIMIT', 0, 1)[1]
if running == 1 and call('ZSCORE', DUE, runs) then running = 0 end
local envelope = call('HGET', JOBS, waits and string.sub(waits, 8) or runs) or ''
local head = string.sub(envelope, 1, math.min((string.find(envelope, '\\n', 1, true) or LONGEST_HEAD + 1) - 1, LONGEST_HEAD))
out[#out + 1] = { base, waiting, due, running, score and score < LINE and score - AT_LIMIT or -1, head }
end
local behind = string.match(ARGV[1], '^r(%d+)$')
if not behind then
local score, base = string.match(ARGV[1], '^p(%-?%d+)_(%d+)$')
local skip = score and place_behind(RING, score, base) or tonumber(ARGV[1]) or 0
local found = call('ZRANGE', RING, skip, skip + limit - 1, 'WITHSCORES')
for n = 1, #found / 2 do add(found[2 * n - 1], tonumber(found[2 * n])) end
limit = limit - #found / 2
if limit == 0 and call('ZCARD', RING) > skip + #found / 2 then
out[1] = 'p' .. exact(tonumber(found[#found])) .. '_' .. found[#found - 1]
return out
end
end
local last = tonumber(behind) or 9
for _ = 1, limit do
local place = call('ZRANGE', HELD, '(' .. exact(last), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
if not place then return out end
local base = base_of(tonumber(place))
if not call('ZSCORE', RING, base) then add(base) end
last = tonumber(base)
end
if call('ZCOUNT', HELD, '(' .. exact(last), '+inf') > 0 then out[1] = 'r' .. exact(last) end
return out`),
  leave: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, `local SESSION_PX = 600000
local SESSION_OVER = '9007199254740991 '
local ASKED, ARRIVES_BY, IN_DOUBT = 0, math.huge, false
local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end
local me = ARGV[1]
local refused, leader, isolator, paused = read_meta(true, 'leader', 'isolator', 'paused')
if refused then return refused end
local head = head_of_due()
call('ZREM', IDLE, me)
if ARGV[2] == 'd' then call('SET', SESSION, SESSION_OVER, 'PX', SESSION_PX) else call('UNLINK', SESSION) end
if holder(isolator) == me then call('HSET', META, 'isolator', '') end
if holder(leader) == me then
local successor, entered = unpack(sleepers(1))
local till = successor and leads_until(entered)
call('HSET', META, 'leader', till and successor .. ' ' .. string.format('%.0f', till) or '')
if till then tell(successor) elseif successor then wake(nil, me) end
elseif head and paused ~= '1' then
wake(holder(leader), me)
end
return 'OK'`),
  limit: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.beginGroups, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `adopts = true
local asked, by, read = ARGV[1], ARGV[2], whole(ARGV[3])
local refused, before, setBy, needs, leader, paused, wokenAt, ofSettings, revision, lastClaim =
read_meta(false, 'limits', 'limitsBy', 'needs', 'leader', 'paused', 'wokenAt', 'limitsOfSettings', 'limitsRevision', 'claim')
if refused then return refused end
before, setBy, ofSettings, revision = before or '', setBy or 'c', ofSettings or '', whole(revision) or 0
local function answer(outcome, holds)
return { outcome, before, setBy, ofSettings, exact(revision), holds }
end
local function next_revision()
return math.max(TIME[1] * 1000000 + TIME[2], revision + 1, (asked == '?' and read or 0) + 1)
end
if asked == '?' then
if not is_limited(needs) then return answer('n', before) end
if read and revision < read then
revision = next_revision()
call('HSET', META, 'limitsRevision', exact(revision))
end
return answer('u', before)
end
if by == 't' then
if read <= revision then return answer('u', before) end
elseif read and read ~= revision then
return answer('c', before)
end
if by == 'c' and setBy == 'o' then
if ofSettings ~= asked or revision == 0 then revision = next_revision() end
ofSettings = asked
call('HSET', META, 'limitsOfSettings', asked, 'limitsRevision', exact(revision))
return answer(before == asked and 'u' or 'k', before)
end
check_groups()
if by == 'w' then
if begin_groups(needs) then mark_changed() end
return answer('u', before)
end
local former = ofSettings
if by == 'r' then
asked, by = setBy == 'c' and before or ofSettings, 'c'
elseif by == 'o' and setBy == 'c' then
ofSettings = before
end
if not is_limited(needs) and asked == '' and by ~= 't' then return answer('n', '') end
local head = is_limited(needs) and moment() or nil
begin_groups(needs)
if by == 't' then
by, ofSettings, revision = ARGV[4], ARGV[5], read
else
if by == 'c' then ofSettings = asked end
if before ~= asked or setBy ~= by or ofSettings ~= former or revision == 0 then revision = next_revision() end
end
setBy = by
call('HSET', META, 'limits', asked, 'limitsBy', by, 'limitsOfSettings', ofSettings, 'limitsRevision', exact(revision))
limits = nil
read_limits()
if before ~= asked then
for _, name in ipairs({ ' rate:', ' groupRate:' }) do
if string.find(' ' .. asked, name, 1, true) and not string.find(' ' .. before, name, 1, true) then
call('HSET', META, 'rated', lastClaim or 0)
end
end
if not limits.blocks then
local ids, waiting = call('ZRANGE', HELD, 0, 999), {}
for n, due in ipairs(#ids > 0 and call('ZMSCORE', DUE, unpack(ids)) or {}) do
if due then waiting[#waiting + 1] = ids[n] end
end
if #waiting > 0 then call('ZREM', HELD, unpack(waiting)) end
end
if call('ZCOUNT', RING, '(' .. exact(AT_LIMIT + now), '(' .. exact(LINE)) > 0 then
limits.widened = exact(LINE) .. ' '
call('HSET', META, 'widened', limits.widened)
end
end
mark_changed()
wake_for_new_head(head, leader, paused, wokenAt)
return answer(before == asked and 'u' or 's', asked)`),
  listGroup: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.digits, PARTS.timeAt, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, PARTS.isBefore, PARTS.placeBehind, `adopts = true
local refused = read_meta(false)
if refused then return refused end
read_limits()
local base, cursor, after, limit, most = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
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
return out`),
  list: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local state, cursor, after, limit, most = ARGV[1], ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local refused = read_meta(false)
if refused then return refused end`, PARTS.isBefore, PARTS.placeBehind, `local out, bytes = { 0 }, 0
local room = limit
local function tell(index, first, last, mark)
if first >= last then return end
local found = room > 0 and call('ZRANGE', index, first, math.min(first + room, last) - 1, 'WITHSCORES') or {}
if first + #found / 2 < last then out[1] = 1 end
for i = 1, #found, 2 do
local id, record, failure, envelope = found[i], nil, '', nil
if state == 'c' then
record, envelope = string.match(call('HGET', HISTORY, id) or '', '^([^\\n]*)\\n(.*)$')
else
record, failure, envelope = call('HGET', ATTEMPTS, id), call('HGET', ERRORS, id) or '', call('HGET', JOBS, id)
end
record, envelope = record or '', envelope or ''
bytes = bytes + #id + #record + #failure + #envelope
if bytes > most and room < limit then
out[1], room = 1, 0
return
end
local n = #out
out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, mark .. found[i + 1], record, failure, envelope
room = room - 1
end
end
local quarantined = string.match(cursor, '^s(.+)$')
if not quarantined then
local index = state == 'r' and RUNNING or state == 'x' and DEAD or state == 'c' and COMPLETED or DUE
local low, high = '-inf', '+inf'
if state == 'l' then low = '(' .. now elseif state == 'd' then high = now end
if state ~= 'r' then
if ARGV[2] ~= '-' and (low == '-inf' or tonumber(ARGV[2]) > now) then low = ARGV[2] end
if ARGV[3] ~= '-' and (high == '+inf' or tonumber(ARGV[3]) < now) then high = ARGV[3] end
end
local first = 0
if string.sub(low, 1, 1) == '(' then
first = call('ZCOUNT', index, '-inf', string.sub(low, 2))
elseif low ~= '-inf' then
first = call('ZCOUNT', index, '-inf', '(' .. low)
end
if cursor ~= '-' then first = math.max(first, place_behind(index, cursor, after)) end
tell(index, first, call('ZCOUNT', index, '-inf', high), '')
end
if state == 'd' then
tell(QUARANTINE, quarantined and place_behind(QUARANTINE, quarantined, after) or 0, call('ZCARD', QUARANTINE), 's')
end
return out`),
  markShard: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, PARTS.markChanged, `local to, conditions = ARGV[1], ARGV[2]
local function condition(letter) return string.find(conditions, letter, 1, true) ~= nil end
local meta = call('HMGET', META, 'layout', 'needs')
local state, others = shard_state(meta[2])
local refused = unknown(meta[1], others)
if refused then return refused end
local running = call('ZCARD', RUNNING)
if state == '' and condition('u') and call('HLEN', META) > 0 then return { 'u', state, running } end
local accepted = false
for i = 3, #ARGV do accepted = accepted or ARGV[i] == state end
if not accepted then return { 'n', state, running } end
if condition('r') and running > 0 then return { 'b', state, running } end
if condition('e') then
local jobs = running + call('ZCARD', DUE) + call('ZCARD', QUARANTINE) + call('ZCARD', DEAD) + call('ZCARD', COMPLETED)
local notes = call('ZCARD', TICKS) + call('ZCOUNT', ZONED, '(' .. now, '+inf')
if jobs + notes + call('ZCOUNT', UNIQUE, '(' .. now, '+inf') > 0 then return { 'b', state, running } end
end
if to ~= '' then
call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. to .. (is_limited(meta[2]) and ' limits' or ''))
elseif is_limited(meta[2]) then
call('HSET', META, 'needs', 'limits')
elseif meta[2] then
call('HDEL', META, 'needs')
end
mark_changed()
return { 'y', state, running }`),
  moveIn: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, PARTS.digits, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.placeIn, LIMITED.enter, LIMITED.checkGroups, `local refused = begin_moving(ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', RUNNING)
call('ZCARD', COMPLETED); call('HLEN', HISTORY); call('ZCARD', ZONED)
local indexes, fresh = { d = DUE, s = QUARANTINE, x = DEAD }, 0
check_groups()
indexes.b = DUE
for i = 2, #ARGV, 11 do
local id, index = ARGV[i], indexes[ARGV[i + 1]]
if index and not (call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id) or call('ZSCORE', DEAD, id) or
call('ZSCORE', RUNNING, id)) then
local place = place_in(ARGV[i + 3])
if index == DUE then enter({ ARGV[i + 2], id }, { exact(place) }) end
if place >= 16 and (index == QUARANTINE or ARGV[i + 1] == 'b') then call('ZADD', HELD, exact(place), id) end
call('ZADD', index, ARGV[i + 2], id)
if ARGV[i + 3] ~= '' then call('HSET', JOBS, id, ARGV[i + 3]) end
if ARGV[i + 4] ~= '' then call('HSET', ATTEMPTS, id, ARGV[i + 4]) end
if ARGV[i + 5] ~= '' then call('HSET', ERRORS, id, ARGV[i + 5]) end
if ARGV[i + 7] ~= '' then call('HSET', DEBOUNCE, id, ARGV[i + 7]) end
fresh = fresh + 1
end
if ARGV[i + 6] ~= '' then call('ZADD', UNIQUE, 'NX', ARGV[i + 6], id) end
if ARGV[i + 8] ~= '' and ARGV[i + 9] ~= '' then
call('HSET', HISTORY, id, ARGV[i + 9])
call('ZADD', COMPLETED, 'NX', ARGV[i + 8], id)
end
if ARGV[i + 10] ~= '' then
call('ZADD', ZONED, ARGV[i + 10], id)
call('HDEL', META, 'zoneData', 'zoneWalk')
end
end
return fresh`),
  moveOff: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, PARTS.digits, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.checkGroups, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local refused = begin_moving(ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', COMPLETED); call('HLEN', HISTORY)
call('ZCARD', ZONED)
local ids = { unpack(ARGV, 2) }
check_groups()
depart(unpack(ids))
call('ZREM', HELD, unpack(ids))
call('ZREM', DUE, unpack(ids))
call('ZREM', QUARANTINE, unpack(ids))
call('ZREM', DEAD, unpack(ids))
call('ZREM', COMPLETED, unpack(ids))
call('HDEL', HISTORY, unpack(ids))
call('ZREM', ZONED, unpack(ids))
erase_unfinished(unpack(ids))
return 'OK'`),
  moveOut: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local limits
local refused = begin_moving(ARGV[1])
if refused then return refused end
local most, bytes, out = tonumber(ARGV[2]), 0, {}
for i = 3, #ARGV do
local id = ARGV[i]
local index, score = 'd', call('ZSCORE', DUE, id)
if score and call('ZSCORE', HELD, id) then index = 'b' end
if not score then index, score = 's', call('ZSCORE', QUARANTINE, id) end
if not score then index, score = 'x', call('ZSCORE', DEAD, id) end
if not score then index, score = '-', '' end
local envelope, failure, kept = call('HGET', JOBS, id) or '', call('HGET', ERRORS, id) or '', call('HGET', HISTORY, id) or ''
bytes = bytes + #envelope + #failure + #kept
if bytes > most and #out > 0 then break end
local values = { id, index, score, envelope, call('HGET', ATTEMPTS, id) or '', failure, call('ZSCORE', UNIQUE, id) or '',
call('HGET', DEBOUNCE, id) or '', call('ZSCORE', COMPLETED, id) or '', kept, call('ZSCORE', ZONED, id) or '' }
for n = 1, 11 do out[#out + 1] = values[n] end
end
return out`),
  pausePublishing: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local function micros()
return string.format('%.0f', TIME[1] * 1000000 + TIME[2])
end`, PARTS.nextPlace, PARTS.isOvertaken, PARTS.markChanged, `local refused, paused, pauseAsked, lastPlace = read_meta(false, 'publishingPaused', 'publishingPauseAsked', 'lastPlace')
if refused then return refused end
if ARGV[1] == '?' then return next_place(lastPlace, pauseAsked) end
if is_overtaken(ARGV[2], pauseAsked) then return '0' end
call('HSET', META, 'publishingPaused', ARGV[1], 'publishingPauseAsked', ARGV[2] or micros())
if (paused or '0') ~= ARGV[1] then mark_changed() end
return (paused or '0') == ARGV[1] and '0' or '1'`),
  pause: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end
local function micros()
return string.format('%.0f', TIME[1] * 1000000 + TIME[2])
end`, PARTS.nextPlace, PARTS.isOvertaken, `local refused, leader, paused, pauseAsked, lastPlace = read_meta(false, 'leader', 'paused', 'pauseAsked', 'lastPlace')
if refused then return refused end
if ARGV[1] == '?' then return next_place(lastPlace, pauseAsked) end
if is_overtaken(ARGV[2], pauseAsked) then return '0' end
local head = head_of_due()
call('ZCARD', IDLE)
call('HSET', META, 'paused', ARGV[1], 'pauseAsked', ARGV[2] or micros())
if (paused or '0') ~= ARGV[1] then mark_changed() end
if ARGV[1] == '0' and paused == '1' and head then wake(holder(leader)) end
return (paused or '0') == ARGV[1] and '0' or '1'`),
  purgeWaiting: joined(LIMITED.part7, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.isBefore, PARTS.placeBehind, `local seq, most, room, score, after, moved = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local replied = begin(seq, false)
if replied then return replied end
check_groups()
local head = moment()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE); call('ZCARD', QUARANTINE)
call('HLEN', SCHEDULES)
local function is_ahead(id)
local field, time = made_by(id)
return field and time > now + moved and call('HEXISTS', SCHEDULES, field) == 1 and is_unbegun(id)
end
local from = place_behind(DUE, score, after)
local page, gone, looked = call('ZRANGE', DUE, from, from + most - 1, 'WITHSCORES'), {}, 0
while looked < #page and #gone < room do
local id = page[looked + 1]
if not is_ahead(id) then gone[#gone + 1] = id end
looked = looked + 2
end
local goes_on = looked == 2 * most or looked < #page
if looked > 0 then score, after = page[looked], page[looked - 1] end
if #gone > 0 then
depart(unpack(gone)); free(unpack(gone))
call('ZREM', DUE, unpack(gone))
end
if not goes_on and #gone < room then
local ids = call('ZRANGE', QUARANTINE, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, room - #gone)
if #ids > 0 then
free(unpack(ids))
call('ZREM', QUARANTINE, unpack(ids))
for _, id in ipairs(ids) do gone[#gone + 1] = id end
end
end
if #gone > 0 then erase_unfinished(unpack(gone)) end
local answer = string.format('%d,%d', #gone, call('ZCARD', DUE) + call('ZCARD', QUARANTINE))
if goes_on or (#gone == room and call('ZCARD', QUARANTINE) > 0) then answer = answer .. ' ' .. score .. ' ' .. after end
remember(seq, answer)
wake_for_room(head)
return answer`),
  remove: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local seq, dead, most, before = sequence(ARGV[1]), ARGV[2] == 'x', tonumber(ARGV[3]), tonumber(ARGV[4])
local replied = begin(seq, false)
if replied then return replied end
check_groups()
local head = moment()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('HLEN', HISTORY)
local function sweep(index, room)
local ids = { unpack(ARGV, 5) }
if #ids == 0 and room > 0 then
ids = call('ZRANGE', index, '-inf', before >= 0 and dead and '(' .. before or '+inf', 'BYSCORE', 'LIMIT', 0, room)
end
local gone = {}
for _, id in ipairs(ids) do
if call('ZSCORE', index, id) then gone[#gone + 1] = id end
end
if #gone > 0 and index == COMPLETED then
call('ZREM', index, unpack(gone))
call('HDEL', HISTORY, unpack(gone))
elseif #gone > 0 then
if index == DUE then depart(unpack(gone)) end
free(unpack(gone))
call('ZREM', index, unpack(gone))
erase_unfinished(unpack(gone))
end
return #gone
end
local removed, remaining
if dead then
removed = sweep(DEAD, most)
remaining = call('ZCARD', DEAD)
elseif ARGV[2] == 'c' then
removed = sweep(COMPLETED, most)
remaining = call('ZCARD', COMPLETED)
else
call('ZCARD', QUARANTINE)
removed = sweep(DUE, most)
removed = removed + sweep(QUARANTINE, most - removed)
remaining = call('ZCARD', DUE) + call('ZCARD', QUARANTINE)
end
local answer = string.format('%d %d', removed, remaining)
remember(seq, answer)
wake_for_room(head)
return answer`),
  requeueDead: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, PARTS.isBefore, PARTS.placeBehind, `local seq, delay, forget, spread = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
local before, reason = tonumber(ARGV[5]), ARGV[6]
local position, total, most = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
check_groups()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('ZCARD', DEAD); call('ZCARD', IDLE)
local ids = { unpack(ARGV, 11) }
local place = ''
if #ids == 0 and most > 0 then
local score, id = string.match(ARGV[7], '^(%S+) (.+)$')
local from, past = score and place_behind(DEAD, score, id) or 0, call('ZCOUNT', DEAD, '-inf', before >= 0 and '(' .. before or '+inf')
if from < past then ids = call('ZRANGE', DEAD, from, math.min(from + most, past) - 1) end
local last = ids[#ids]
if last then place = ' ' .. call('ZSCORE', DEAD, last) .. ' ' .. last end
end
local count = 0
for _, id in ipairs(ids) do
local died = tonumber(call('ZSCORE', DEAD, id))
local why = died and reason ~= '' and string.match(call('HGET', ERRORS, id) or '', '^([^\\n]*)')
if died and (before < 0 or died < before) and (reason == '' or why == reason) then
local extra = spread > 0 and math.floor(spread * (position + count) / math.max(1, total)) or 0
local due, envelope = now + delay + extra, call('HGET', JOBS, id)
set_due(due, id, envelope)
if envelope then call('HSET', JOBS, id, moved(envelope, due)) end
if forget then
call('HDEL', ATTEMPTS, id)
else
local charged, _, snoozes = read_record(call('HGET', ATTEMPTS, id))
call('HSET', ATTEMPTS, id, record(charged, 0, snoozes, 0, charged + 1))
end
call('ZREM', DEAD, id)
count = count + 1
end
end
local answer = string.format('%d %d %d', count, #ids, call('ZCARD', DEAD)) .. place
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  rescheduleMany: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, LIMITED.rescheduleOne2, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, onlySooner = sequence(ARGV[1]), ARGV[2] == '1'
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
check_groups()
call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD)
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local how, ms
local function target_of(due)
if how == 'd' then return now + ms end
if how == 'b' then return (due or now) + ms end
if how == 'n' then return math.max(due or now, ms) end
return ms
end
local answers = {}
for i = 3, #ARGV, 4 do
how, ms = ARGV[i + 1], tonumber(ARGV[i + 2])
answers[#answers + 1] = reschedule_one(ARGV[i], target_of, onlySooner, tonumber(ARGV[i + 3]))
end
local answer = table.concat(answers, ' ')
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  reschedule: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, LIMITED.rescheduleOne2, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, onlySooner = sequence(ARGV[1]), ARGV[2], ARGV[5] == '1'
local target = tonumber(ARGV[4])
if ARGV[3] == 'd' then target = now + target end
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
check_groups()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local answer = reschedule_one(id, function() return target end, onlySooner, nil)
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  reserve: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.nextClaim, `local function claim_name(number)
return string.format('%.0f', number)
end`, PARTS.endLeaseIfEmpty, `local seq, lease, byteLimit = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, lastClaim, longestLease = begin(seq, false, 'claim', 'longestLease')
if replied then return replied end
local ids = { unpack(ARGV, 4) }
check_groups()
local head = moment()
call('ZCARD', LEASES)
local due, running = call('ZMSCORE', DUE, unpack(ids)), call('ZMSCORE', RUNNING, unpack(ids))
local dead, quarantined = call('ZMSCORE', DEAD, unpack(ids)), call('ZMSCORE', QUARANTINE, unpack(ids))
local envelopes, after = call('HMGET', JOBS, unpack(ids)), call('HMGET', FOLLOWUPS, unpack(ids))
local function abandoned(n)
if not after[n] or string.sub(after[n], 1, 1) ~= '=' then return nil end
local deadline = tonumber(call('ZSCORE', LEASES, claim_name(tonumber(running[n]))))
if not deadline or deadline < now then return string.sub(after[n], 2) end
end
local words, held, claims, nexts, before, bytes = {}, {}, {}, {}, {}, 0
local claim = claim_name(next_claim(whole(lastClaim)))
for n, id in ipairs(ids) do
local back
if running[n] then
back = abandoned(n)
elseif envelopes[n] then
back = due[n] or quarantined[n] and string.format('%.0f', due_of(envelopes[n]) or now)
end
if back and envelopes[n] then
bytes = bytes + #envelopes[n]
if bytes > byteLimit and #held > 0 then break end
held[#held + 1] = id
claims[#claims + 1] = claim
claims[#claims + 1] = id
nexts[#nexts + 1] = id
nexts[#nexts + 1] = '=' .. back
if running[n] then before[claim_name(tonumber(running[n]))] = true end
words[n] = 'h' .. back
else
words[n] = running[n] and 'r' or dead[n] and 'x' or 'n'
end
end
if #held > 0 then
call('ZADD', LEASES, now + lease, claim)
call('HSET', FOLLOWUPS, unpack(nexts))
call('ZADD', RUNNING, unpack(claims))
depart(unpack(held))
free(unpack(held))
call('ZREM', DUE, unpack(held))
call('ZREM', QUARANTINE, unpack(held))
for old in pairs(before) do
end_lease_if_empty(old)
end
mark_changed()
call('HSET', META, 'claim', claim, 'longestLease', math.max(whole(longestLease) or 0, lease))
end
local answer = (#held > 0 and claim or '0') .. ' ' .. table.concat(words, ' ')
remember(seq, answer)
wake_for_room(head)
return answer`),
  rezone: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, PARTS.versionOf, LIMITED.restOf, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, read, was, due, content = sequence(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local zone_data = ARGV[7]
local replied, leader, paused, wokenAt, known, walk = begin(seq, false, 'leader', 'paused', 'wokenAt', 'zoneData', 'zoneWalk')
if replied then return replied end
local is_old = zone_data ~= '' and ((known or '') > zone_data or string.match(walk or '', '^%S*') > zone_data)
local head = head_of_due()
check_groups()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE); call('ZCARD', ZONED)
local place, waits = place_of(id)
local answer = 'c'
if place ~= 'w' then
answer = NOT_WAITING[place] .. ' 0'
elseif not is_old and (not was or waits == was) and call('HGET', JOBS, id) == read then
local version, tail = version_of(content)
set_due(due, id, read); free(id)
call('HSET', JOBS, id, moved(version .. string.sub(read, 2, rest_of(read) - 1) .. tail, due))
call('ZADD', ZONED, due, id)
disown(id)
call('ZREM', QUARANTINE, id)
answer = 's ' .. ((waits and waits > now) and 'l' or 'd') .. string.format(' %.0f', due)
end
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  schedulesIn: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, PARTS.countAhead, `local refused = begin_moving(ARGV[1])
if refused then return refused end
call('ZCARD', TICKS); call('ZCARD', PENDING)
local LEAVES = '^[^\\n]*\\n[^\\n]*"leaving":{'
local COUNTED = LEAVES .. '[^\\n]*"counted":{"missed":(%d+),"overlapped":(%d+)}'
local fresh, names = 0, { '', 'floor', 'missed', 'overlapped', 'paused', 'since' }
for i = 2, #ARGV, 9 do
local id, field, text = ARGV[i], '{' .. ARGV[i] .. '}', ARGV[i + 2]
local here = call('HGET', SCHEDULES, field)
local is_left = here and string.find(here, LEAVES) and not string.find(text, LEAVES)
if ARGV[i + 1] ~= '' and text ~= '' and (not here or is_left) then
local counted = { string.match(here or '', COUNTED) }
for n = 1, 6 do
local value = ARGV[i + 1 + n]
local was = whole(counted[n - 2])
if was then value = (whole(value) or 0) + math.max(0, (whole(call('HGET', SCHEDULES, names[n] .. field)) or 0) - was) end
if value ~= '' then call('HSET', SCHEDULES, names[n] .. field, value) end
end
count_ahead(field, whole(ARGV[i + 8]) or 0)
if is_left then
call('ZREM', TICKS, id)
call('ZREM', PENDING, id)
end
fresh = fresh + 1
end
if ARGV[i + 1] ~= '' and call('HEXISTS', SCHEDULES, field) == 1 then call('ZADD', TICKS, 'NX', ARGV[i + 1], id) end
end
return fresh`),
  schedulesOff: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, PARTS.countAhead, `local refused = begin_moving(ARGV[1])
if refused then return refused end
call('ZCARD', TICKS); call('ZCARD', PENDING)
for i = 2, #ARGV do
local id, field = ARGV[i], '{' .. ARGV[i] .. '}'
count_ahead(field, 0)
call('HDEL', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field)
call('ZREM', TICKS, id)
call('ZREM', PENDING, id)
end
return 'OK'`),
  schedulesOut: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, PARTS.unknown, PARTS.beginMoving, `local refused = begin_moving(ARGV[1])
if refused then return refused end
local most, bytes, out = tonumber(ARGV[2]), 0, {}
for i = 3, #ARGV do
local id, field = ARGV[i], '{' .. ARGV[i] .. '}'
local values = call('HMGET', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field,
'ahead' .. field)
bytes = bytes + #(values[1] or '')
if bytes > most and #out > 0 then break end
out[#out + 1] = id
out[#out + 1] = call('ZSCORE', PENDING, id) or call('ZSCORE', TICKS, id) or ''
for n = 1, 7 do out[#out + 1] = values[n] or '' end
end
return out`),
  schedules: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local only, most, score, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local refused = read_meta(false)
if refused then return refused end
local found
if only ~= '' then
found = { only, call('ZSCORE', TICKS, only) or '' }
else
local from = score == '' and 0 or place_behind(TICKS, score, after)
found = call('ZRANGE', TICKS, from, from + most - 1, 'WITHSCORES')
end
local out = { now }
for i = 1, #found, 2 do
local field = '{' .. found[i] .. '}'
local values = call('HMGET', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field)
if values[1] then
out[#out + 1] = found[i]
out[#out + 1] = found[i + 1]
out[#out + 1] = values[1]
for n = 2, 4 do out[#out + 1] = values[n] or '' end
end
end
return out`),
  select: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.isBefore, PARTS.placeBehind, `local mode, from, to, cursor, after, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local refused = read_meta(false)
if refused then return refused end
if mode == 'i' then
local out = { now, 0, 0 }
for i = 7, #ARGV do
local place, due = place_of(ARGV[i])
local state = place == 'w' and ((due and due > now) and 'l' or 'd') or place == 'n' and '-' or place
local n = #out
out[n + 1], out[n + 2], out[n + 3] = ARGV[i], state, due and string.format('%.17g', due) or ''
end
return out
end
local index = DUE
local first = from == '-' and 0 or call('ZCOUNT', index, '-inf', '(' .. from)
local last = call('ZCOUNT', index, '-inf', to == '-' and '+inf' or '(' .. to)
local total = math.max(0, last - first)
if cursor ~= '-' then
local behind = place_behind(index, cursor, after)
if mode == 'a' then
first = math.max(first, behind)
else
local at = call('ZSCORE', index, after)
last = math.min(last, (at and tonumber(at) == tonumber(cursor)) and behind - 1 or behind)
end
end
local more = last - first > limit and 1 or 0
local room = limit
if mode == 'z' then first = math.max(first, last - room) end
local found = last > first and call('ZRANGE', index, first, math.min(first + room, last) - 1, 'WITHSCORES') or {}
local out = { now, more, total }
for i = 1, #found, 2 do
local at = mode == 'z' and #found - i or i
local n = #out
out[n + 1], out[n + 2], out[n + 3] = found[at], tonumber(found[at + 1]) > now and 'l' or 'd', found[at + 1]
end
return out`),
  signal: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, PARTS.versionOf, LIMITED.restOf, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, LIMITED.moved2, `local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }
local LONGEST_HEAD = 65536
local function header_of(head)
return string.sub(head, 1, 1) .. string.sub(head, rest_of(head))
end`, PARTS.withPayload, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, known, content = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
check_groups()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local envelope = call('HGET', JOBS, id)
local place, due = place_of(id)
local answer = (NOT_WAITING[place] or NOT_WAITING.n) .. ' 0'
if place == 'w' and envelope then
local text, shown = with_payload(envelope, known, content)
if not text then
answer = 'h ' .. shown
else
local state = (due and due > now) and 'l' or 'd'
if state == 'l' then
set_due(now, id, text); free(id)
text, due = moved(text, now), now
end
call('HSET', JOBS, id, text)
disown(id)
if state == 'l' then call('ZREM', QUARANTINE, id) end
answer = 'g ' .. state .. string.format(' %.0f', due or now)
end
end
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  step: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, PARTS.versionOf, LIMITED.restOf, `local enqueued
local function has_expired(envelope, at)
local flag = string.byte(envelope, 2)
return (flag == 120 or flag == 121) and at > (time_at(envelope, 17) or at) or nil
end
local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, `local function text_of_starts(kept)
local texts = {}
for i, entry in ipairs(kept) do texts[i] = exact(entry[1]) .. ':' .. exact(entry[2]) .. ':' .. exact(entry[3] - entry[1] * 1024) end
return table.concat(texts, ' ')
end`, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, `local function keeps_place(id)
if not limits.blocks or limits.groupCount ~= 1 then return false end
local place, due = tonumber(call('ZSCORE', HELD, id) or nil), tonumber(call('ZSCORE', DUE, id) or nil)
if not (place and due) then return false end
local base = base_of(place)
if call('ZCOUNT', HELD, exact(tonumber(base) - 9), base) > 1 then due = now end
call('ZADD', RING, exact(AT_LIMIT + math.min(due, -LINE - 1)), base)
return true
end`, LIMITED.checkGroups, PARTS.readRecord, PARTS.record, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.nextClaim, `local function claim_name(number)
return string.format('%.0f', number)
end
local function sole_deadline(deadline)
return deadline + 0.5
end
local function is_sole(deadline)
return deadline % 1 ~= 0
end
local function mark_of(deadline)
local mark = deadline % 1
return mark == mark and mark or 0
end`, PARTS.endLeaseIfEmpty, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.markChanged, PARTS.changedAt, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, LIMITED.follow2, `local MOST = 200
local me, seq, lease = ARGV[1], sequence(ARGV[2]), tonumber(ARGV[3])
local claimLimit, ahead = string.match(ARGV[4], '^(%d+) ?(%d*)$')
claimLimit, ahead = math.min(MOST, tonumber(claimLimit)), tonumber(ahead) or 0
local byteLimit, flags = tonumber(ARGV[5]), ARGV[6]
local quarantineLimit, waited = string.match(ARGV[7], '^(%d+) ?(%d*)$')
quarantineLimit, waited = math.min(MOST, tonumber(quarantineLimit)), tonumber(waited)
local deadKept, deadAge = tonumber(ARGV[9]), tonumber(ARGV[10])
local nRenewals, nGroups, nOutcomes = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local SWEEP = 50
local FREE_LOSSES = 3
local function flag(letter) return string.find(flags, letter, 1, true) ~= nil end
local meta = call('HMGET', META, 'layout', 'needs', 'leader', 'isolator', 'paused', 'wokenAt', 'claim', 'seenAt', 'graceUntil',
'longestLease', 'completed', 'retried', 'dead', 'expired', 'failed', 'since', 'graceFrom', 'longestLeaseUntil',
'lateAt', 'lease')
local refused, leaving = refusal(meta[1], meta[2], true)
if refused then return refused end
local answer, stale = remembered(seq, true)
if answer == false then return stale end
local leaderEntry, isolatorEntry, pausedEntry, wokenAt, claimBefore, seenAt, graceUntil,
longestBefore, completedBefore, retriedBefore, deadBefore, expiredBefore, failedBefore, since, graceFrom, longestUntil,
lateAt = unpack(meta, 3)
local leader, leaderTill = holder(leaderEntry)
local isolator, isolatorTill = holder(isolatorEntry)
local paused = pausedEntry == '1' or leaving == true
call('ZCARD', DUE)
check_groups()
local headBefore = moment()
local write = {}
local function put(field, value)
write[#write + 1] = field
write[#write + 1] = value
end
if not since then put('since', now) end
if (whole(meta[1]) or 0) < 2 then put('layout', LAYOUT) end
local completed, retried, buried, expired, failed = 0, 0, 0, 0, 0
local keeps, kept = flag('k'), 0
local lost, aborted, left, superseded = {}, {}, {}, {}
local settles, sweeps = nGroups + nOutcomes > 0, flag('s')
local plain = false
local due, headLeft = headBefore ~= nil and headBefore <= now, headBefore
local nQuarantined = call('ZCARD', QUARANTINE)
local idle = flag('i') and call('ZCARD', IDLE) or -1
local followups, records, errors, bursts, windows = 0, 0, 0, 0, 0
if settles or due or quarantineLimit > 0 or not plain then
followups, records, errors = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('HLEN', ERRORS)
end
local onlyClaims = plain and not settles and records == 0
if not onlyClaims then call('ZCARD', LEASES) end
local moves = not plain or followups > 0 or records > 0
local slots = claimLimit - ahead
if limits.counts then claimLimit, ahead = slots, 0 end
if ahead > 0 and due then
local waiting = sleepers(2)
for i = 1, #waiting, 2 do
if waiting[i] ~= me and leads_until(waiting[i + 1]) then claimLimit = slots end
end
end
local claims = quarantineLimit > 0 or claimLimit > 0 and (due or moves)
if claims or moves then
if not onlyClaims then call('HLEN', JOBS) end
call('ZCARD', RUNNING); call('ZCARD', DEAD)
bursts, windows = call('HLEN', DEBOUNCE), call('ZCARD', UNIQUE)
if keeps then call('ZCARD', COMPLETED); call('HLEN', HISTORY) end
end
local ERRORS_KEPT, ERRORS_MOST_BYTES = 5, 65536
local function note(id, why, error)
local text, old = why .. '\\n' .. error, errors > 0 and call('HGET', ERRORS, id)
local first = old and #old <= ERRORS_MOST_BYTES and string.find(old, '\\n', 1, true)
local from = first and string.find(old, '\\n', first + 1, true)
if from then
local to = from
for _ = 1, string.find(error, '\\n', 1, true) and ERRORS_KEPT - 1 or ERRORS_KEPT do
to = to and string.find(old, '\\n', to + 1, true)
end
text = text .. string.sub(old, from, to and to - 1 or -1)
end
call('HSET', ERRORS, id, text)
end
local function bury(id, reason, error)
call('ZADD', DEAD, now, id)
note(id, reason, error)
buried = buried + 1
end
do
local function unbook(field, max, per, claim)
local kept, from = window(call('HGET', RATES, field), max, per).kept, nil
for i, entry in ipairs(kept) do
if entry[3] <= claim then from = i end
end
if not from then return end
kept[from][2] = kept[from][2] - 1
if kept[from][2] < 1 then table.remove(kept, from) end
if #kept > 0 then call('HSET', RATES, field, text_of_starts(kept)) else call('HDEL', RATES, field) end
end
local function give_back(id, claim)
local envelope = call('HGET', JOBS, id)
if has_expired(envelope or '', math.floor(claim / 1024)) then return end
read_limits()
if claim <= limits.rated then return end
if limits.max then unbook('', limits.max, limits.per, claim) end
local base = base_of(place_in(envelope))
if not limits.groupMax or base == '9' then return end
unbook(base, limits.groupMax, limits.groupPer, claim)
local score = tonumber(call('ZSCORE', RING, base) or nil)
if score and score < LINE then call('ZADD', RING, exact(AT_LIMIT + now), base) end
if score and score >= 0 then end_group_if_empty(base) end
end
local NO_DELAY_MS = 60000
local function delayed_by(text)
return now + (whole(text) or NO_DELAY_MS)
end
local function drop(id)
depart(id)
free(id)
call('ZREM', RUNNING, id)
call('ZREM', DUE, id)
call('ZREM', QUARANTINE, id)
erase(id)
end
local function keep(ids)
local envelopes = call('HMGET', JOBS, unpack(ids))
local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
local scores, entries = {}, {}
for i, id in ipairs(ids) do
if envelopes[i] then
scores[#scores + 1] = now
scores[#scores + 1] = id
entries[#entries + 1] = id
entries[#entries + 1] = (texts[i] or '') .. '\\n' .. envelopes[i]
end
end
if #scores == 0 then return end
call('HSET', HISTORY, unpack(entries))
call('ZADD', COMPLETED, unpack(scores))
kept = kept + #scores / 2
end
local function owns(id, claim, score)
if score and tonumber(score) == claim then return true end
if score or records == 0 then return false end
local _, _, _, last = read_record(call('HGET', ATTEMPTS, id))
if last ~= claim then return false end
return call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id)
end
local touched, emptied, at = {}, {}, 13 + nRenewals * 3
if not answer and settles then
for _ = 1, nGroups do
local token, n = ARGV[at + 1], tonumber(ARGV[at + 2])
local claim = tonumber(token)
local ids = { unpack(ARGV, at + 3, at + 2 + n) }
at = at + 2 + n
local members, held, scores = call('ZRANGE', RUNNING, token, token, 'BYSCORE', 'LIMIT', 0, n + 1), {}, nil
if #members > n then scores = call('ZMSCORE', RUNNING, unpack(ids)) end
for _, id in ipairs(members) do held[id] = token end
local after = followups > 0 and call('HMGET', FOLLOWUPS, unpack(ids))
local ended = {}
for i = 1, n do
local score = held[ids[i]]
if not score then
if scores then score = scores[i] else score = call('ZSCORE', RUNNING, ids[i]) end
end
if score and tonumber(score) == claim and not (after and after[i]) then
ended[#ended + 1] = ids[i]
elseif not owns(ids[i], claim, score) then
lost[#lost + 1] = ids[i]
elseif after and after[i] then
follow(ids[i], after[i])
completed = completed + 1
else
if keeps then keep({ ids[i] }) end
drop(ids[i])
completed = completed + 1
end
end
if #ended > 0 then
if keeps then keep(ended) end
call('HDEL', JOBS, unpack(ended))
call('ZREM', RUNNING, unpack(ended))
free(unpack(ended))
if records > 0 then call('HDEL', ATTEMPTS, unpack(ended)) end
if errors > 0 then call('HDEL', ERRORS, unpack(ended)) end
completed = completed + #ended
end
if nOutcomes > 0 or not scores and #ended < #members then
touched[#touched + 1] = claim
elseif not scores then
emptied[#emptied + 1] = token
end
end
for _ = 1, nOutcomes do
local verb, claim, id = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
local a, b, c = ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6])
at = at + 6
touched[#touched + 1] = claim
local after = followups > 0 and call('HGET', FOLLOWUPS, id)
if not owns(id, claim, call('ZSCORE', RUNNING, id)) then
lost[#lost + 1] = id
elseif after then
if verb == 'l' and c > 0 then give_back(id, claim) end; follow(id, after)
superseded[#superseded + 1] = id
if verb == 'r' or verb == 'd' and c == 1 then failed = failed + 1 end
if verb == 'x' then expired = expired + 1 end
else
local charged, losses, snoozes, lostClaim, limit = read_record(call('HGET', ATTEMPTS, id))
if verb == 'r' then
set_due(delayed_by(a), id, call('HGET', JOBS, id))
call('HSET', ATTEMPTS, id, record(charged + 1, 0, snoozes, 0, limit))
note(id, 'retry', b)
retried, failed = retried + 1, failed + 1
elseif verb == 's' then
set_due(delayed_by(a), id, call('HGET', JOBS, id))
call('HSET', ATTEMPTS, id, record(charged, 0, snoozes + 1, 0, limit))
local envelope = call('HGET', JOBS, id)
if b ~= '' and envelope then
local version, tail = version_of(b)
call('HSET', JOBS, id, version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail)
end
elseif verb == 'l' then
if c > 0 then give_back(id, claim) end; local due, envelope = tonumber(a), call('HGET', JOBS, id)
due = math.max(due == due and due or now, now + (whole(b) or -math.huge))
set_due(due, id, envelope)
if lostClaim > 0 or due ~= due_of(envelope or '') then call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit)) end
elseif verb == 'd' then
bury(id, a, b)
if c == 1 then failed = failed + 1 end
if charged + c + snoozes > 0 or limit then
call('HSET', ATTEMPTS, id, record(charged + c, 0, snoozes, 0, limit))
else
call('HDEL', ATTEMPTS, id)
end
depart(id)
call('ZREM', DUE, id)
elseif verb == 'x' then
expired = expired + 1
drop(id)
end
call('ZREM', QUARANTINE, id)
call('ZREM', RUNNING, id)
if verb == 'l' and c == 2 or not keeps_place(id) then free(id) end
end
end
if #emptied > 0 then call('ZREM', LEASES, unpack(emptied)) end
for _, claim in ipairs(touched) do
end_lease_if_empty(claim_name(claim))
end
if moves then followups, records, nQuarantined = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('ZCARD', QUARANTINE) end
end
end
if buried > 0 or (sweeps and not answer) then
local old = call('ZRANGE', DEAD, '-inf', now - deadAge, 'BYSCORE', 'LIMIT', 0, SWEEP)
local over = math.min(math.max(SWEEP, 2 * buried), call('ZCARD', DEAD) - deadKept)
if #old == 0 and over > 0 then old = call('ZRANGE', DEAD, 0, over - 1) end
if #old > 0 then
call('ZREM', DEAD, unpack(old))
erase(unpack(old))
end
end
if keeps and (kept > 0 or (sweeps and not answer)) then
local room, most, age = math.max(SWEEP, 2 * kept), tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
local old = call('ZRANGE', COMPLETED, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, room)
local over = math.min(room, call('ZCARD', COMPLETED) - most)
if #old == 0 and over > 0 then old = call('ZRANGE', COMPLETED, 0, over - 1) end
if #old > 0 then
call('ZREM', COMPLETED, unpack(old))
call('HDEL', HISTORY, unpack(old))
end
end
local given, longest = lease, math.max(whole(longestBefore) or 0, lease)
for i = 0, nRenewals - 1 do
local claim, held, own = ARGV[14 + i * 3], tonumber(ARGV[15 + i * 3]), tonumber(ARGV[16 + i * 3])
local sole = is_sole(own)
local stays = own < 0
own = own >= 1 and math.floor(own) or lease
if not stays then given, longest = math.max(given, own), math.max(longest, own) end
local deadline = tonumber(call('ZSCORE', LEASES, claim))
if deadline then
local fresh = math.floor(deadline)
if not stays then fresh = math.min(math.max(fresh, now + own), now + longest) end
call('ZADD', LEASES, 'XX', sole and sole_deadline(fresh) or fresh, claim)
end
local count = deadline and call('ZCOUNT', RUNNING, claim, claim) or 0
if count ~= held then
local ids = count > 0 and call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, 200) or {}
left[#left + 1] = claim
left[#left + 1] = #ids
for _, id in ipairs(ids) do left[#left + 1] = id end
end
if followups > 0 and count > 0 then
local ids = call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, 200)
for n, after in ipairs(call('HMGET', FOLLOWUPS, unpack(ids))) do
if is_cancelled(after) then aborted[#aborted + 1] = ids[n] end
end
end
end
local firstLease, takenBack, grace, proved = -1, 0, whole(graceUntil) or 0, nil
do
local seen, graceBegan = whole(seenAt), whole(graceFrom) or 0
if graceBegan > now then
graceBegan = -1
put('graceFrom', now)
end
local CORRECTED_MS = 1000
if grace > now + longest + CORRECTED_MS then
grace = now + lease
put('graceUntil', grace)
end
proved = now >= grace and now or -1
if seen and (now < seen - CORRECTED_MS or now > seen + lease / 2) then
if call('ZCARD', LEASES) > 0 then
local late = whole(lateAt) or 0
local jumped = late > seen and late <= now + CORRECTED_MS or ASKED > 0 and math.abs(now - ASKED) > lease / 4
proved = not jumped and grace > 0 and now >= grace and graceBegan or -1
if not jumped and now < grace and now > seen then
grace = math.max(grace, now + math.floor(lease / 2))
else
grace = now + lease
put('graceFrom', now)
end
put('graceUntil', grace)
end
if now < seen then
redis.pcall('DEL', IDLE)
mark_changed()
put('leader', '')
leader = nil
limits.rewound, limits.widened = '0 ', exact(LINE) .. ' '
call('HSET', META, 'rewound', limits.rewound, 'widened', limits.widened)
end
end
if not seen or now < seen or now > seen + math.min(1000, lease / 8) then put('seenAt', now) end
end
if sweeps then
do
local far = call('ZRANGE', LEASES, '(' .. now + longest + 1, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
for i = 1, #far, 2 do call('ZADD', LEASES, 'XX', now + longest + mark_of(tonumber(far[i + 1])), far[i]) end
local ahead = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, SWEEP) or {}
for _, id in ipairs(ahead) do call('ZADD', QUARANTINE, 'XX', now, id) end
end
if proved >= 0 and not answer then
local over = call('ZRANGE', LEASES, '-inf', proved, 'BYSCORE', 'LIMIT', 0, SWEEP, 'WITHSCORES')
local room = SWEEP
for i = 1, #over, 2 do
if room == 0 then break end
local claim, deadline = over[i], tonumber(over[i + 1])
if not (string.match(claim, '^%-?%d+$') or string.match(claim, '^%-?inf$')) then
call('ZREM', LEASES, claim)
claim = '0'
end
local ids = call('ZRANGE', RUNNING, claim, claim, 'BYSCORE', 'LIMIT', 0, room)
local sole = is_sole(deadline) and #ids == 1
room = room - #ids
for _, id in ipairs(ids) do
local after = followups > 0 and call('HGET', FOLLOWUPS, id)
if after then
follow(id, after)
else
local charged, losses, snoozes, _, limit = read_record(call('HGET', ATTEMPTS, id))
call('ZADD', QUARANTINE, now, id)
call('HSET', ATTEMPTS, id, record(charged + (sole and 1 or 0), losses + 1, snoozes, tonumber(claim), limit))
call('ZREM', RUNNING, id)
nQuarantined, takenBack = nQuarantined + 1, takenBack + 1
end
end
end_lease_if_empty(claim)
end
local oldest = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')
if oldest[1] then
local claim = claim_name(tonumber(oldest[2]))
if tonumber(claim) ~= tonumber(oldest[2]) then call('ZADD', RUNNING, 'XX', claim, oldest[1]) end
if not call('ZSCORE', LEASES, claim) then call('ZADD', LEASES, now + lease, claim) end
end
if #over > 0 then records = call('HLEN', ATTEMPTS) end
end
if windows > 0 then
local gone = call('ZRANGE', UNIQUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP)
if #gone > 0 then call('ZREM', UNIQUE, unpack(gone)) end
end
local soonest = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
if soonest[1] then firstLease = math.max(math.floor(tonumber(soonest[2])) + 1, grace) end
end
local claim_by_turns, startable, start_isolated
do`, PARTS.isBefore, PARTS.placeBehind, `local function sweep_ring()
local longest = now + math.max(limits.groupPer or 0, limits.blocks and 86400000 or 5000)
local far = call('ZRANGE', RING, '(' .. exact(AT_LIMIT + longest), '(' .. exact(LINE), 'BYSCORE', 'LIMIT', 0, SWEEP)
for _, base in ipairs(far) do call('ZADD', RING, 'XX', exact(AT_LIMIT + now), base) end
end
local function adopt()
local score, id = string.match(limits.adopting, '^(%S+) (.*)$')
local from = (score and score ~= '-inf') and place_behind(DUE, score, id) or 0
local found = call('ZRANGE', DUE, from, from + MOST - 1, 'WITHSCORES')
local all, old, jobs, at = {}, {}, {}, {}
for n = 1, #found / 2 do
all[n], old[n] = found[2 * n - 1], digits(tonumber(found[2 * n])) .. found[2 * n - 1]
end
for n, place in ipairs(#all > 0 and call('ZMSCORE', GROUPED, unpack(old)) or {}) do
if not place then
jobs[#jobs + 1], jobs[#jobs + 2], at[#at + 1] = found[2 * n], all[n], '9'
end
end
enter(jobs, at)
if #all < MOST then
call('HDEL', META, 'adopting')
limits.adopting = nil
else
put('adopting', found[#found] .. ' ' .. all[#all])
end
end
local function head_of(base)
local head
for digit in string.gmatch(limits.priorities, '%d') do
local place = exact(base - tonumber(digit))
local member = call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', 0, 1)[1]
if member then head = math.min(head or math.huge, time_at(member, 1) or 0) end
end
return head
end
local function rewind()
local score, member = string.match(limits.rewound, '^(%d+) (.*)$')
local from = place_behind(RING, score or '0', member or '')
local found = call('ZRANGE', RING, from, from + SWEEP - 1, 'WITHSCORES')
for i = 1, #found, 2 do
local base, at = tonumber(found[i]), tonumber(found[i + 1])
local head = base and at > now and head_of(base)
if head and head < at then call('ZADD', RING, 'XX', exact(math.max(now, head)), found[i]) end
end
if #found < 2 * SWEEP then
call('HDEL', META, 'rewound')
limits.rewound = nil
else
put('rewound', exact(tonumber(found[#found])) .. ' ' .. found[#found - 1])
end
end
local function widen()
local score, member = string.match(limits.widened, '^(-?%d+) (.*)$')
local before = 0
if member == '' then
before = call('ZCOUNT', RING, '-inf', '(' .. score)
elseif member then
before = place_behind(RING, score, member)
if tonumber(call('ZSCORE', RING, member) or nil) == tonumber(score) then before = before - 1 end
end
local from = math.max(before - MOST, call('ZCOUNT', RING, '-inf', exact(AT_LIMIT + now)))
local found, anew = from < before and call('ZRANGE', RING, from, before - 1, 'WITHSCORES') or {}, {}
for i = 1, #found, 2 do anew[i], anew[i + 1] = exact(AT_LIMIT + now), found[i] end
if #anew > 0 then call('ZADD', RING, unpack(anew)) end
if #found < 2 * MOST then
call('HDEL', META, 'widened')
limits.widened = nil
else
put('widened', exact(tonumber(found[2])) .. ' ' .. found[1])
end
end
if not answer then
read_limits()
if limits.widened then widen() end
if limits.rewound then rewind() end
if limits.adopting then adopt() end
if sweeps then sweep_ring() end
end
end
do
local function room_of(want, onlyRate)
read_limits()
local room = want
if limits.count and not onlyRate then room = math.min(room, limits.count - call('ZCARD', RUNNING)) end
if limits.max then
limits.window = window(call('HGET', RATES, ''), limits.max, limits.per)
if limits.window.ahead then call('HSET', RATES, '', text_of_starts(limits.window.kept)) end
room = math.min(room, limits.window.left)
end
return math.max(0, room)
end
local function book(rate, n)
local kept = rate.kept
local last = kept[#kept]
if last and last[1] == now then last[2] = last[2] + n else kept[#kept + 1] = { now, n, limits.claim } end
if #kept > 128 then
local fewer, width = {}, rate.per / 64
for _, entry in ipairs(kept) do
local before = fewer[#fewer]
if before and math.floor(before[1] / width) == math.floor(entry[1] / width) then
before[1], before[2] = entry[1], before[2] + entry[2]
else
fewer[#fewer + 1] = entry
end
end
kept = fewer
end
return text_of_starts(kept), now + rate.per
end
local function book_starts(n)
if limits.window and n > 0 then call('HSET', RATES, '', (book(limits.window, n))) end
end
if sweeps and not answer then
local groups = call('ZRANGE', RING, exact(OVER), exact(OVER + now), 'BYSCORE', 'LIMIT', 0, MOST)
local ended = {}
for i, starts in ipairs(#groups > 0 and call('HMGET', RATES, unpack(groups)) or {}) do
local rate = window(starts, 0, limits.groupPer or 0)
if #rate.kept > 0 then
call('ZADD', RING, exact(OVER + rate.kept[#rate.kept][1] + rate.per), groups[i])
if rate.ahead then call('HSET', RATES, groups[i], text_of_starts(rate.kept)) end
else
ended[#ended + 1] = groups[i]
end
end
if #ended > 0 then
call('ZREM', RING, unpack(ended))
call('HDEL', RATES, unpack(ended))
end
end
local reserved_for
do
local LOOKED_AT = 50
local LAST_MS = 55000
local function group_of(place, id)
return base_of(tonumber(place or nil) or place_in(call('HGET', JOBS, id) or ''))
end
local known = {}
local function window_of(base)
if not known[base] then
known[base] = window(call('HGET', RATES, base), limits.groupMax, limits.groupPer)
if known[base].ahead then call('HSET', RATES, base, text_of_starts(known[base].kept)) end
end
return known[base]
end
local function with_room(most, waited)
most = room_of(most, true)
if most == 0 then return {} end
local many = limits.groupMax and math.max(most, LOOKED_AT) or most
local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, many)
or call('ZRANGE', QUARANTINE, 0, many - 1)
if not limits.groupMax or #ids == 0 then return ids end
local found, places, given = {}, call('ZMSCORE', HELD, unpack(ids)), {}
for i, id in ipairs(ids) do
if #found == most then break end
local base = group_of(places[i], id)
given[base] = given[base] or 0
if base == '9' or given[base] < window_of(base).left then
found[#found + 1] = id
given[base] = given[base] + 1
end
end
return found
end
function startable(most, waited)
local ids = with_room(most, waited)
if #ids == 0 and isolator == me then
put('isolator', '')
isolator = nil
end
return ids
end
function start_isolated(few, take)
local room = room_of(#few)
if room == 0 then return end
local ids = take(QUARANTINE, { unpack(few, 1, room) })
local n, bases, starts = 0, {}, {}
local places = limits.groupMax and #ids > 0 and call('ZMSCORE', HELD, unpack(ids)) or {}
for i, id in ipairs(ids) do
if not limits.expired[id] then
n = n + 1
local base = limits.groupMax and group_of(places[i], id) or '9'
if base ~= '9' and not starts[base] then bases[#bases + 1] = base end
starts[base] = (starts[base] or 0) + 1
end
end
book_starts(n)
for _, base in ipairs(bases) do
local text, ends = book(window_of(base), starts[base])
call('HSET', RATES, base, text)
call('ZADD', RING, 'NX', exact(OVER + ends), base)
end
end
local reserved
function reserved_for(base)
if not reserved then
reserved = {}
local ids = nQuarantined > 0 and call('ZRANGE', QUARANTINE, '-inf', now - LAST_MS, 'BYSCORE', 'LIMIT', 0, LOOKED_AT) or {}
for _, place in ipairs(#ids > 0 and call('ZMSCORE', HELD, unpack(ids)) or {}) do
local base = place and base_of(tonumber(place)) or '9'
reserved[base], limits.reservedTill = 1, now + 1000
if base == '9' or not limits.groupMax or window_of(base).left > 0 then reserved[''] = 1 end
end
end
return reserved[base] or 0
end
end
local joining, leaving, rates = {}, {}, {}
local function join(base)
limits.turn = limits.turn + 1
joining[#joining + 1] = exact(limits.turn + LINE)
joining[#joining + 1] = base
end
local function write_ring()
if #joining > 0 then call('ZADD', RING, unpack(joining)) end
if #leaving > 0 then
call('ZREM', RING, unpack(leaving))
if call('HLEN', RATES) > 0 then call('HDEL', RATES, unpack(leaving)) end
end
if #rates > 0 then call('HSET', RATES, unpack(rates)) end
joining, leaving, rates = {}, {}, {}
end
local function read_line(want, room)
for _, base in ipairs(call('ZRANGE', RING, '-inf', exact(AT_LIMIT + now), 'BYSCORE', 'LIMIT', 0, want + 50)) do join(base) end
write_ring()
local most = room + 16
local line = call('ZRANGE', RING, '0', exact(now), 'BYSCORE', 'LIMIT', 0, most)
local newcomers = #line
for n, base in ipairs(call('ZRANGE', RING, exact(LINE), '(0', 'BYSCORE', 'LIMIT', 0, most)) do line[newcomers + n] = base end
return line, newcomers
end
local looked = { free = {}, took = {}, started = {}, windows = {}, heads = {}, done = {}, past = {}, retries = {}, cut = {} }
local picked, picks = { members = {}, dues = {}, places = {}, groups = {} }, 0
local pick
do
local allow, visit
do
local function next_attempt(lowest, base)
local ids, first = call('ZRANGE', HELD, lowest, base, 'BYSCORE', 'LIMIT', 0, 1000), nil
for n, score in ipairs(call('ZMSCORE', DUE, unpack(ids))) do
local due = tonumber(score or nil)
if not due then return nil end
if not first or due < first.due then first = { due = due, member = digits(due) .. ids[n] } end
end
return first
end
function allow(g, base, text)
local most = math.huge
if base ~= '9' then
if limits.groupCount then
local lowest = exact(tonumber(base) - 9)
most = limits.groupCount - call('ZCOUNT', HELD, lowest, base)
if most < 1 and limits.groupCount == 1 then
looked.retries[g] = next_attempt(lowest, base)
if looked.retries[g] and looked.retries[g].due <= now then most = 1 end
end
end
if limits.groupMax then
looked.windows[g] = window(text, limits.groupMax, limits.groupPer)
most = math.min(most, looked.windows[g].left - reserved_for(base))
end
end
looked.free[g], looked.took[g], looked.started[g] = math.max(0, most), 0, 0
end
end
do
local function give(g, member, due, place)
picks = picks + 1
picked.members[picks], picked.dues[picks], picked.places[picks], picked.groups[picks] = member, due, place, g
end
local function due_in(member)
local a, b, c, d, e, f, g = string.byte(member, 1, 7)
return g and ((((((a - 44) * 79 + b - 44) * 79 + c - 44) * 79 + d - 44) * 79 + e - 44) * 79 + f - 44) * 79 + g - 44 or 0
end
local text_of = { [0] = '0', '1', '2', '3', '4', '5', '6' }
local function by_priority(g, base, n)
local found, past = {}, looked.past[g] or {}
looked.past[g] = past
for digit in string.gmatch(limits.priorities, '%d') do
local priority = tonumber(digit)
local place = exact(tonumber(base) - priority)
for _, member in ipairs(call('ZRANGE', GROUPED, place, place, 'BYSCORE', 'LIMIT', text_of[past[priority] or 0] or past[priority], text_of[n] or n)) do
local due = due_in(member)
local order = due <= now and due - priority * limits.step or due
found[#found + 1] = { member = member, due = due, order = order, nth = #found, priority = priority, place = place }
end
end
table.sort(found, function(a, b)
if a.order ~= b.order then return a.order < b.order end
return a.nth < b.nth
end)
return found, past
end
function visit(g, base, most)
looked.heads[g] = nil
local retry = looked.retries[g]
if retry and retry.due <= now then
local place = call('ZSCORE', GROUPED, retry.member)
if place and most > 0 then
give(g, retry.member, retry.due, exact(tonumber(place)))
looked.took[g] = looked.took[g] + 1
end
looked.heads[g] = now
elseif limits.priorities == '0' then
local found = call('ZRANGE', GROUPED, base, base, 'BYSCORE', 'LIMIT', text_of[looked.took[g]] or looked.took[g], text_of[most + 1] or most + 1)
for i = 1, #found do
local member = found[i]
local due = due_in(member)
if i > most or due > now then
looked.heads[g] = due
break
end
give(g, member, due, base)
looked.took[g] = looked.took[g] + 1
end
else
local found, past = by_priority(g, base, most + 1)
for i, job in ipairs(found) do
if i > most or job.due > now then
looked.heads[g] = job.due
break
end
give(g, job.member, job.due, job.place)
looked.took[g] = looked.took[g] + 1
past[job.priority] = (past[job.priority] or 0) + 1
end
end
looked.done[g] = not looked.heads[g] or looked.heads[g] > now or looked.took[g] >= looked.free[g]
end
end
local TURN = 5
function pick(line, newcomers, room)
local texts = limits.groupMax and call('HMGET', RATES, unpack(line)) or {}
local open = #line
limits.flip = 1 - limits.flip
local reserved = #line > newcomers and math.floor((room + limits.flip) / 2) or 0
for pass = 1, 3 do
local left = open
for g, base in ipairs(line) do
local spare = pass == 1 and g <= newcomers and room - reserved or room
if spare > 0 and not looked.done[g] then
if not looked.free[g] then allow(g, base, texts[g]) end
local most = left > 0 and spare > TURN * left and math.floor(spare / left) or TURN
local before = picks
visit(g, base, math.min(spare, most, looked.free[g] - looked.took[g]))
room = room - (picks - before)
if looked.done[g] then open = open - 1 end
end
left = left - 1
end
if room <= 0 or open == 0 then break end
end
end
end
local function end_turn(g, base)
local rate, head, ends = looked.windows[g], looked.heads[g], nil
if rate and looked.started[g] > 0 then
local text
text, ends = book(rate, looked.started[g])
rates[#rates + 1] = base
rates[#rates + 1] = text
elseif rate and #rate.kept > 0 then
ends = rate.kept[#rate.kept][1] + rate.per
if rate.ahead then
rates[#rates + 1] = base
rates[#rates + 1] = text_of_starts(rate.kept)
end
end
if looked.cut[g] then return end
if not head and not ends then
leaving[#leaving + 1] = base
return
end
if not head then
joining[#joining + 1] = exact(OVER + ends)
elseif head > now then
joining[#joining + 1] = exact(head)
elseif looked.took[g] >= looked.free[g] and looked.took[g] == looked.started[g] and not (looked.kept and looked.took[g] > 0) then
local till = looked.retries[g] and looked.retries[g].due > now and math.min(looked.retries[g].due, -LINE - 1) or now + 5000
if rate and rate.left <= looked.started[g] then till = rate.opens or ends elseif reserved_for(base) > 0 then till = limits.reservedTill end
joining[#joining + 1] = exact(AT_LIMIT + till)
else
return join(base)
end
joining[#joining + 1] = base
end
local function indexed()
local ids, kept, members, dues, groups = {}, 0, picked.members, picked.dues, picked.groups
for n = 1, picks do ids[n] = string.sub(members[n], 8) end
local scores = call('ZMSCORE', DUE, unpack(ids))
for n = 1, picks do
local member, score = members[n], tonumber(scores[n] or nil)
if score and (score == dues[n] or digits(score) == string.sub(member, 1, 7)) then
kept = kept + 1
if kept < n then
members[kept], dues[kept], picked.places[kept], groups[kept] = member, dues[n], picked.places[n], groups[n]
ids[kept], scores[kept] = ids[n], scores[n]
end
else
call('ZREM', GROUPED, member)
looked.took[groups[n]] = looked.took[groups[n]] - 1
end
end
for n = kept + 1, picks do ids[n], scores[n] = nil, nil end
picks = kept
return ids, scores
end
local function start(take)
local ids, scores = indexed()
if picks == 0 then return 0 end
local runs, reached = take(DUE, ids, scores)
for n = picks, reached + 1, -1 do
local g = picked.groups[n]
looked.took[g], looked.heads[g] = looked.took[g] - 1, picked.dues[n]
looked.cut[g] = g ~= picked.groups[1]
end
local runsNow, held, booked = {}, {}, 0
for _, id in ipairs(#runs < reached and runs or {}) do runsNow[id] = true end
for n = 1, reached do
local id, place, g = ids[n], picked.places[n], picked.groups[n]
local isRun = #runs == reached or runsNow[id]
if isRun and limits.expired[id] then
isRun, looked.took[g] = false, looked.took[g] - 1
elseif isRun then
looked.started[g], booked = looked.started[g] + 1, booked + 1
end
if #place > 1 and (isRun or call('ZSCORE', QUARANTINE, id)) then
held[#held + 1] = place
held[#held + 1] = id
end
end
local long = #held > 32 and '{' .. string.rep('-', 64) .. '}'
if long then held = { '0', long, unpack(held) } end
if #held > 0 and call('ZADD', HELD, unpack(held)) < #held / 2 then looked.kept = not limits.blocks end
if long then call('ZREM', HELD, long) end
call('ZREM', GROUPED, unpack(picked.members, 1, reached))
return booked
end
function claim_by_turns(want, take)
local room = room_of(want + 1)
local left = room - reserved_for('')
if room > 0 and left == 0 then limits.lookAgain = limits.reservedTill end
room = math.min(want, left)
if room <= 0 then return end
local line, newcomers = read_line(want, room)
if #line == 0 then return end
pick(line, newcomers, room)
if picks > 0 then book_starts(start(take)) end
put('flip', limits.flip)
for g, base in ipairs(line) do
if looked.free[g] then end_turn(g, base) end
end
write_ring()
put('turn', exact(limits.turn))
end
end
local claim, batch, filled = 0, {}, 0
local postponed = {}
local firstDue
local joins = 0
local function tell_of(id, due, text, envelope)
due = due or string.format('%.0f', due_of(envelope) or now)
firstDue = firstDue or due
local attempts = text and string.match(text, '^%d+ %d+ %d+ %d+ ?%d*$')
batch[filled + 1], batch[filled + 2], batch[filled + 3] = attempts and due .. ' ' .. attempts or due, id, envelope
filled = filled + 3
joins = joins and not (string.find(envelope, '\\30', 1, true) or string.find(id, '\\30', 1, true)) and joins + #envelope
end
local MAKES_SKIPLIST = '{' .. string.rep('-', 64) .. '}'
local WORTH_A_SKIPLIST = 16
local lastClaim = whole(claimBefore) or 0
if ASKED > now + 50 and lastClaim < ASKED * 1024 then
lastClaim = ASKED * 1024
put('claim', claim_name(lastClaim))
end
local function take(index, ids, scores)
local envelopes = call('HMGET', JOBS, unpack(ids))
local texts = records > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}
claim = next_claim(lastClaim)
limits.claim = claim
local number, bytes, started, running, others = claim_name(claim), 0, {}, {}, {}
local losses, damaged = 0, false
for i = 1, #ids do
local id, envelope, text = ids[i], envelopes[i], texts[i]
if not envelope then
if onlyClaims then call('ZCARD', LEASES) end
bury(id, 'undecodable', '{"name":"StoredDataError","message":"The index names a job that has no record."}')
damaged = true
others[#others + 1] = id; free(id)
elseif text and index == DUE and select(2, read_record(text)) > 0 then
call('ZADD', QUARANTINE, now, id)
others[#others + 1] = id
nQuarantined = nQuarantined + 1
else
local n = #started
bytes = bytes + #envelope
if bytes > byteLimit and n > 0 then
byteLimit = 0
break
end
started[n + 1] = id
limits.expired[id] = has_expired(envelope, now)
if index == QUARANTINE then losses = select(2, read_record(text)) end
running[2 * n + 1] = number
running[2 * n + 2] = id
if text and scores and tonumber(scores[i]) ~= due_of(envelope) then postponed[#postponed + 1] = scores[i] .. ' ' .. id end
tell_of(id, scores and scores[i], text, envelope)
end
end
if #started > 0 then
local sole = #started == 1 and (flag('a') or losses >= FREE_LOSSES)
call('ZADD', LEASES, sole and sole_deadline(now + lease) or now + lease, number)
if #started >= WORTH_A_SKIPLIST then
call('ZADD', RUNNING, number, MAKES_SKIPLIST, unpack(running))
call('ZREM', RUNNING, MAKES_SKIPLIST)
else
call('ZADD', RUNNING, unpack(running))
end
put('claim', number)
if whole(meta[20]) ~= lease then put('lease', lease) end
if bursts > 0 then call('HDEL', DEBOUNCE, unpack(started)) end
call('ZREM', index, unpack(started))
else
claim = 0
end
if #others > 0 then call('ZREM', index, unpack(others)) end
if damaged then byteLimit = 0 end
return started, #started + #others
end
if not answer and not paused then
if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
local may = startable(math.max(1, quarantineLimit), waited)
if #may > 0 and not waited and (not isolator or isolator == me) then
if not isolator or isolatorTill < now + ROLE_MS / 2 then
put('isolator', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
end
isolator = me
end
if quarantineLimit > 0 then
local ids = may
or {}
local few = {}
for i, text in ipairs(#ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}) do
local losses = select(2, read_record(text or ''))
if losses > 1 then
if i == 1 then few[1] = ids[1] end
break
end
few[i] = ids[i]
end
start_isolated(few, take)
nQuarantined = call('ZCARD', QUARANTINE)
end
elseif isolator == me and nQuarantined == 0 then
put('isolator', '')
isolator = nil
end
if claims and quarantineLimit == 0 then
claim_by_turns(claimLimit, take)
end
end
if not answer and (settles or claim > 0 or IN_DOUBT) then
local names = table.concat(lost, '\\n')
if #superseded > 0 then names = names .. '\\n\\t' .. table.concat(superseded, '\\n\\t') end
if #postponed > 0 then names = names .. '\\n\\v' .. table.concat(postponed, '\\n\\v') end
remember(seq, string.format('%.0f ', claim) .. names, claim > 0 and math.max(SESSION_PX, lease) or nil)
end
if answer then
local number, names = string.match(answer, '^(%d+) ?(.*)$')
claim = tonumber(number)
local dues = {}
for mark, name in string.gmatch(names, '([\\t\\v]?)([^\\n]+)') do
if mark == '\\v' then
local due, id = string.match(name, '^(%S+) (.*)$')
if due then dues[id] = due end
elseif mark == '\\t' then
superseded[#superseded + 1] = name
else
lost[#lost + 1] = name
end
end
local ids = claim > 0 and call('ZRANGE', RUNNING, number, number, 'BYSCORE', 'LIMIT', 0, 200) or {}
if #ids > 0 then
local envelopes, texts = call('HMGET', JOBS, unpack(ids)), call('HMGET', ATTEMPTS, unpack(ids))
for i, id in ipairs(ids) do
if envelopes[i] then
tell_of(id, dues[id], texts[i], envelopes[i])
end
end
end
end
local head = headLeft
head = head_of_due(); if limits.lookAgain and head and head <= now then head = limits.lookAgain end
local claimed = filled / 3
local free = slots > claimed and not flag('o') or flag('f')
local woken
if free then
if flag('i') then
local idleFor = tonumber(ARGV[8])
call('ZADD', IDLE, now + idleFor + (idleFor >= 400000 and 0.5 or 0), me)
local gone = call('ZRANGE', IDLE, '-inf', now - ROLE_MS, 'BYSCORE', 'LIMIT', 0, 10)
if #gone > 0 then call('ZREM', IDLE, unpack(gone)) end
end
local late = claimed > 0 and now - (tonumber(firstDue) or now) > 20
if not leader or late or (leader == me and leaderTill < now + ROLE_MS / 2) then
put('leader', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
leader = me
end
elseif not flag('b') then
redis.pcall('ZREM', IDLE, me)
if leader == me then
local successor = sleepers(1)
local till = successor[1] and leads_until(successor[2])
leader = till and successor[1] or nil
put('leader', till and leader .. ' ' .. string.format('%.0f', till) or '')
woken = leader or successor[1] and true
end
end
if takenBack > 0 or head and (not headBefore or head < headBefore) then mark_changed() end
do
local needsHelp = claimed > 0 and head and head <= now - 50
local toSelf = (free or flag('b')) and leader == me and not needsHelp
if not paused and (takenBack > 0 and nQuarantined > 0 or not toSelf and must_wake(headBefore, head, tonumber(wokenAt))) then
put('wokenAt', now)
woken = woken or true
end
end
local quiet = ''
local SOON_MS = 10000
if sweeps and not answer and claimLimit > 0 and claimed == 0 and firstLease < 0 and nQuarantined == 0
and (not head and call('ZCARD', DUE) == 0 or head and head > now + SOON_MS) then
local held = is_long(redis.pcall('ZSCORE', IDLE, me)) and changed_at()
local till = head or 9e15
local function is_kept(index, most, age)
local oldest = call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
if oldest then till = math.min(till, call('ZCARD', index) > most and 0 or oldest + age) end
end
is_kept(DEAD, deadKept, deadAge)
if keeps then is_kept(COMPLETED, tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])) end
if windows > 0 and call('ZCOUNT', UNIQUE, '-inf', now) > 0 then till = 0 end
if call('ZCOUNT', RING, exact(OVER), exact(OVER + now)) > 0 then till = 0 end
if held then quiet = held .. string.format(' %.0f', math.max(0, till)) end
end
if completed > 0 then put('completed', (whole(completedBefore) or 0) + completed) end
if retried > 0 then put('retried', (whole(retriedBefore) or 0) + retried) end
if buried > 0 then put('dead', (whole(deadBefore) or 0) + buried) end
if expired > 0 then put('expired', (whole(expiredBefore) or 0) + expired) end
if failed > 0 then put('failed', (whole(failedBefore) or 0) + failed) end
do
local till = whole(longestUntil) or 0
if given >= (whole(longestBefore) or 0) then
if longest ~= whole(longestBefore) then put('longestLease', longest) end
if till < now + longest / 2 or till > now + longest then put('longestLeaseUntil', now + longest) end
elseif sweeps and not answer and proved == now and (now > till or till > now + longest) then
local last = call('ZRANGE', LEASES, 0, 0, 'REV', 'WITHSCORES')
local needed = math.max(given, last[1] and math.ceil(tonumber(last[2])) - now or 0)
put('longestLease', needed)
put('longestLeaseUntil', now + needed)
end
end
if #write > 0 then call('HSET', META, unpack(write)) end
if woken == true then wake(leader, me) elseif woken then tell(woken) end
local roles = (leader == me and 'w' or '') .. (isolator == me and 'v' or '') .. (paused and 'p' or '')
.. ((not since or IN_DOUBT) and 'n' or '') .. (byteLimit == 0 and 'c' or '')
roles = roles .. (limits.counts and 'l' or '') .. (limits.count and call('ZCARD', RUNNING) >= limits.count and 'f' or '')
head = head and math.max(0, math.min(head, 9e15)) or -1
local jobs = joins and joins <= 1024 * filled / 3 and table.concat(batch, '\\30') or batch
local oldest = nQuarantined > 0 and tonumber(call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')[2]) or -1
oldest = math.max(-1, math.min(oldest, 9e15))
return { now * 1000 + TIME[2] % 1000, claim, head, firstLease, roles, idle, nQuarantined, lost, aborted, left, jobs, superseded, oldest, quiet }`),
  takeLimits: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, PARTS.beginMoving, `local enqueued
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.beginGroups, LIMITED.checkGroups, PARTS.markChanged, `local refused, needs = begin_moving(ARGV[1], 'needs')
if refused then return refused end
check_groups()
if begin_groups(needs) then mark_changed() end
call('HSET', META, 'limits', ARGV[2], 'limitsBy', ARGV[3], 'limitsOfSettings', ARGV[4], 'limitsRevision', ARGV[5])
return 'OK'`),
  tick: joined(LIMITED.part7, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, PARTS.versionOf, `local enqueued`, PARTS.stampOf, LIMITED.placed, LIMITED.stampAt, PARTS.sealed, `local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.beginGroups, LIMITED.checkGroups, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, LIMITED.withdraw2, PARTS.countAhead, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, read, follows, before, nGone = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[7]), tonumber(ARGV[8])
local place = string.match(ARGV[14 + nGone] or '', ' @(.*)$') or ''
adopts = place ~= '' and SHARD == ''
local replied, leader, paused, wokenAt, enqueued, since, publishingPaused, skipped = begin(seq, false, 'leader', 'paused', 'wokenAt',
'enqueued', 'since', 'publishingPaused', 'skipped')
if replied then return replied end
check_groups()
local isFirst = adopts and publishingPaused ~= '1' and (call('HGET', SCHEDULES, '{' .. id .. '}') or '') == read
local begun = isFirst and begin_groups(call('HGET', META, 'needs'))
local field, head = '{' .. id .. '}', not begun and moment() or nil
local stored = call('HGET', SCHEDULES, field) or ''
local missedBefore = whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0
call('ZCARD', TICKS); call('ZCARD', PENDING); call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE)
call('ZCARD', UNIQUE); call('ZCARD', IDLE)
local nDue, first = tonumber(ARGV[9]), 12 + nGone
local pausedAt, aheadBy = string.match(ARGV[10], '^(%S*) ?(%S*)$')
if aheadBy ~= '' then pausedAt = math.max(tonumber(pausedAt), now - 1 + tonumber(aheadBy)) end
local isLate = before and now >= before
local answer = (stored ~= read or isLate) and 'c' or publishingPaused == '1' and #ARGV >= first and 'b' or 'w'
if answer == 'w' then
local over, any = {}, false
for i = 12 + nDue, first - 1 do
local waits = is_unbegun(ARGV[i])
over[#over + 1] = waits and '0' or '1'
any = any or not waits
end
if any then answer = 'o' .. table.concat(over) end
end
if answer == 'w' then
local anew, named, created = {}, {}, 0
for i = first, #ARGV, 4 do anew[ARGV[i]] = true end
for i = 12, first - 1 do named[#named + 1] = ARGV[i] end
local _, gone = withdraw(named, anew)
local missed = tonumber(ARGV[6])
for i = 1, nDue do
answer = answer .. (gone[named[i]] and '1' or '0')
if gone[named[i]] then missed = missed + 1 end
end
for i = first, #ARGV, 4 do
local occurrence, due, expiry = ARGV[i], tonumber(ARGV[i + 1]), tonumber(string.match(ARGV[i + 2], '^i(%d+)'))
if gone[occurrence] or call('HEXISTS', JOBS, occurrence) == 0 then
local envelope = sealed(ARGV[i + 3], stamp_at(due, expiry and due + expiry, place))
call('HSET', JOBS, occurrence, envelope)
set_due(due, occurrence, envelope)
created = created + 1
end
end
call('HSET', SCHEDULES, field, follows)
call('ZADD', TICKS, ARGV[5], id)
call('ZREM', PENDING, id)
count_ahead(field, tonumber(ARGV[11]))
if pausedAt ~= '' then call('HSET', SCHEDULES, (read == '' and 'since' or 'paused') .. field, pausedAt) end
if missed > 0 then call('HSET', SCHEDULES, 'missed' .. field, missedBefore + missed) end
local fields = { 'enqueued', (whole(enqueued) or 0) + created, 'skipped', (whole(skipped) or 0) + missed }
if not since then fields[5], fields[6], fields[7], fields[8] = 'layout', LAYOUT, 'since', now end
call('HSET', META, unpack(fields))
end
remember(seq, answer)
local isWritten = string.sub(answer, 1, 1) == 'w'
if isWritten then mark_changed() end
if isWritten and (#ARGV >= first or nGone > 0) then wake_for_new_head(head, leader, paused, wokenAt) end
return answer`),
  ticks: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.changedAt, `local refused, paused, publishingPaused, since = read_meta(false, 'paused', 'publishingPaused', 'since')
if refused then return refused end
local most, untold = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = {}
if paused ~= '1' and publishingPaused ~= '1' then
found = call('ZRANGE', TICKS, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
end
call('ZCARD', PENDING); call('HLEN', SCHEDULES)
local head = call('ZRANGE', TICKS, 0, 0, 'WITHSCORES')
local out = { now, head[2] or '', since or '', '' }
if #found > 0 then
local ids, fields, later, was = {}, {}, {}, {}
for i = 1, #found, 2 do
local id = found[i]
ids[#ids + 1] = id
fields[#fields + 1] = '{' .. id .. '}'
later[i], later[i + 1] = now + untold, id
was[i], was[i + 1] = found[i + 1], id
end
local records = call('HMGET', SCHEDULES, unpack(fields))
call('ZADD', PENDING, 'NX', unpack(was))
call('ZADD', TICKS, 'XX', unpack(later))
for i, id in ipairs(ids) do
if records[i] then
out[#out + 1] = id
out[#out + 1] = records[i]
else
call('ZREM', TICKS, id)
call('ZREM', PENDING, id)
end
end
end
out[4] = changed_at() or ''
return out`),
  timeline: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, `local refused = read_meta(false)
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
return reply`),
  unreserve: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.placeIn, LIMITED.enter, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.setDue, LIMITED.free, LIMITED.checkGroups, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function claim_name(number)
return string.format('%.0f', number)
end`, PARTS.endLeaseIfEmpty, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, LIMITED.follow2, `local seq, claim, leaving = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, leader, paused, wokenAt = begin(seq, true, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
check_groups()
call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', QUARANTINE); call('ZCARD', LEASES)
call('ZCARD', IDLE); call('ZCARD', UNIQUE)
local ids = { unpack(ARGV, 4) }
local running, after = call('ZMSCORE', RUNNING, unpack(ids)), call('HMGET', FOLLOWUPS, unpack(ids))
local envelopes = call('HMGET', JOBS, unpack(ids))
local words = {}
for n, id in ipairs(ids) do
local held = not after[n] or string.sub(after[n], 1, 1) == '='
if tonumber(running[n]) ~= claim then
words[n] = 'l'
elseif held and n <= leaving then
words[n] = 'g'
call('ZREM', RUNNING, id)
call('HDEL', FOLLOWUPS, id)
call('HDEL', DEBOUNCE, id)
erase(id)
else
words[n] = held and 'b' or is_cancelled(after[n]) and 'c' or 'f'
follow(id, after[n] or '=' .. string.format('%.0f', due_of(envelopes[n] or '') or now))
end
end
end_lease_if_empty(claim_name(claim))
local answer = table.concat(words, ' ')
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  unschedule: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.countAhead, `local seq, id, read, stopped, never = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local missed, pausedAt = tonumber(ARGV[6]), ARGV[7]
local replied, skipped = begin(seq, false, 'skipped')
if replied then return replied end
local field = '{' .. id .. '}'
local answer = call('HGET', SCHEDULES, field) == read and 'w' or 'c'
call('ZCARD', TICKS); call('ZCARD', PENDING)
if answer == 'w' then
call('ZREM', PENDING, id)
if stopped ~= '' then
call('HSET', SCHEDULES, field, stopped)
if pausedAt ~= '' then call('HSET', SCHEDULES, 'paused' .. field, pausedAt) end
if missed > 0 then
call('HSET', SCHEDULES, 'missed' .. field, (whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0) + missed)
call('HSET', META, 'skipped', (whole(skipped) or 0) + missed)
end
call('ZADD', TICKS, never, id)
else
call('ZREM', TICKS, id)
count_ahead(field, 0)
local had = call('HMGET', SCHEDULES, 'missed' .. field, 'overlapped' .. field, 'floor' .. field)
answer = string.format('w %d %d ', whole(had[1]) or 0, whole(had[2]) or 0) .. (had[3] or '')
call('HDEL', SCHEDULES, field, 'floor' .. field, 'missed' .. field, 'overlapped' .. field, 'paused' .. field, 'since' .. field)
end
end
remember(seq, answer)
return answer`),
  unzone: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local most, score, after = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local refused = read_meta(false)
if refused then return refused end
call('HLEN', JOBS); call('ZCARD', DEAD); call('ZCARD', ZONED)
local function is_gone(id)
return call('HEXISTS', JOBS, id) == 0 or call('ZSCORE', DEAD, id)
end
local over = {}
for i = 4, #ARGV, 2 do
local noted = tonumber(call('ZSCORE', ZONED, ARGV[i]) or nil)
if noted == tonumber(ARGV[i + 1]) and is_gone(ARGV[i]) then over[#over + 1] = ARGV[i] end
end
if #over > 0 then call('ZREM', ZONED, unpack(over)) end
local from = score == '-inf' and 0 or place_behind(ZONED, score, after)
local found = call('ZRANGE', ZONED, from, from + most - 1, 'WITHSCORES')
local goes_on = #found == 2 * most
local out = { goes_on and found[#found] or '', goes_on and found[#found - 1] or '' }
for i = 1, #found, 2 do
if is_gone(found[i]) then
out[#out + 1] = found[i]
out[#out + 1] = found[i + 1]
end
end
return out`),
  update: joined(LIMITED.part6, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.timeAt, PARTS.versionOf, LIMITED.restOf, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }
local LONGEST_HEAD = 65536
local function header_of(head)
return string.sub(head, 1, 1) .. string.sub(head, rest_of(head))
end`, PARTS.withPayload, `local seq, id, known, content = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local replied = begin(seq, false)
if replied then return replied end
call('HLEN', ATTEMPTS)
local envelope = call('HGET', JOBS, id)
local place, due = place_of(id)
local answer = (NOT_WAITING[place] or NOT_WAITING.n) .. ' 0'
if place == 'w' and envelope then
local text, head = with_payload(envelope, known, content)
if not text then
answer = 'h ' .. head
else
call('HSET', JOBS, id, text)
disown(id)
due = due or due_of(envelope) or now
answer = 'u ' .. (due <= now and 'd' or 'l') .. string.format(' %.0f', due)
end
end
remember(seq, answer)
return answer`),
  waitingOccurrences: joined(`local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local GROUPED, RING, HELD, RATES = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, `local refused = read_meta(false)
if refused then return refused end
call('HLEN', ATTEMPTS); call('HLEN', JOBS)
local out = {}
for i, id in ipairs(ARGV) do
local due = call('ZSCORE', DUE, id)
out[i] = due and not has_begun(id, tonumber(due)) and due or ''
end
return out`),
  withdrawOccurrences: joined(LIMITED.part7, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.digits, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end
local AT_LIMIT, LINE, OVER = -9e15, -4.5e15, 8.65e15
local function exact(n)
return string.format('%.0f', n)
end
local function base_of(place)
return exact(place - place % 16 + 9)
end
local limits`, LIMITED.readLimits, LIMITED.window, LIMITED.moment, LIMITED.endGroupIfEmpty, LIMITED.depart, LIMITED.free, LIMITED.checkGroups, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, `local function head_of_due()
return moment()
end`, PARTS.mustWake, PARTS.wakeForNewHead, LIMITED.wakeForRoom, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, LIMITED.withdraw2, PARTS.isBefore, PARTS.placeBehind, `local seq, most, schedules = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])
local replied, skipped = begin(seq, false, 'skipped')
if replied then return replied end
check_groups()
local head = moment()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('HLEN', SCHEDULES)
local wanted, named, latest_due = {}, 6 + 4 * schedules, -math.huge
for i = 6, named - 1, 4 do
local due_by = tonumber(ARGV[i + 2])
wanted[ARGV[i]] = { latest = ARGV[i + 1], due_by = due_by, was_due = ARGV[i + 3], count = 0, missed = 0, first = '', last = '' }
latest_due = math.max(latest_due, due_by)
end
local function parsed(id)
return string.match(id, '^{([^}]*)}(.*)$')
end
local function is_later(one, other)
if #one ~= #other then return #one > #other end
return one > other
end
local ids, read = {}, {}
for i = named, #ARGV do
local into = tonumber(ARGV[i]) and read or ids
into[#into + 1] = ARGV[i]
end
for i, at in ipairs(read) do wanted[ARGV[2 + 4 * i]].read = tonumber(at) end
local function is_newer(id)
local of, due = wanted[parsed(id)], tonumber(call('ZSCORE', DUE, id) or nil)
if not of or not of.read or not due or due < of.read then return false end
local made = time_at(call('HGET', JOBS, id) or '', 3)
return made and made > of.read and made <= now
end
local page, goes_on = {}, false
if most > 0 then
local from = place_behind(DUE, ARGV[3], ARGV[4])
page = call('ZRANGE', DUE, from, from + most - 1, 'WITHSCORES')
goes_on = #page == 2 * most
end
for i = 1, #page, 2 do
local due = tonumber(page[i + 1])
if due > latest_due then
goes_on = false
break
end
local schedule, at = parsed(page[i])
local of = schedule and wanted[schedule]
if of and due <= of.due_by and not is_later(at, of.latest) then ids[#ids + 1] = page[i] end
end
local older = {}
for _, id in ipairs(ids) do
if not is_newer(id) then older[#older + 1] = id end
end
local _, found = withdraw(older)
for id in pairs(found) do
local schedule, at = parsed(id)
local of = wanted[schedule]
if of then
of.count = of.count + 1
if not is_later(at, of.was_due) then
of.missed = of.missed + 1
if of.first == '' or is_later(of.first, at) then of.first = at end
if is_later(at, of.last) then of.last = at end
end
end
end
local counts, all = {}, 0
for i = 6, named - 1, 4 do
local of, field = wanted[ARGV[i]], '{' .. ARGV[i] .. '}'
counts[#counts + 1] = string.format('%d:%d:', of.count, of.missed) .. of.first .. ':' .. of.last
all = all + of.missed
if of.missed > 0 and call('HEXISTS', SCHEDULES, field) == 1 then
call('HSET', SCHEDULES, 'missed' .. field, (whole(call('HGET', SCHEDULES, 'missed' .. field)) or 0) + of.missed)
end
end
if all > 0 then call('HSET', META, 'skipped', (whole(skipped) or 0) + all) end
local answer = table.concat(counts, ',')
if goes_on then answer = answer .. ' ' .. page[#page] .. ' ' .. page[#page - 1] end
remember(seq, answer)
wake_for_room(head)
return answer`),
  zone: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local seq, version = sequence(ARGV[1]), ARGV[2]
local replied, known, walk = begin(seq, false, 'zoneData', 'zoneWalk')
if replied then return replied end
local entries = {}
for i = 3, #ARGV, 2 do
local due, noted = tonumber(ARGV[i + 1]), tonumber(call('ZSCORE', ZONED, ARGV[i]) or nil)
if noted and noted >= due and (walk or noted < due + 1000) then due = noted + 1 end
entries[#entries + 1] = string.format('%.0f', due)
entries[#entries + 1] = ARGV[i]
end
local over = call('ZRANGE', ZONED, '-inf', now - 86400000, 'BYSCORE', 'LIMIT', 0, #entries)
if #over > 0 then call('ZREM', ZONED, unpack(over)) end
call('ZADD', ZONED, unpack(entries))
if known and version < known then call('HSET', META, 'zoneData', version) end
if walk and version < string.match(walk, '^%S*') then call('HDEL', META, 'zoneWalk') end
remember(seq, 'OK')
return 'OK'`),
  zoned: joined(LIMITED.part8, PARTS.whole, PARTS.part2, LIMITED.shardState2, `local adopts = false`, LIMITED.isLimited, PARTS.unknown, LIMITED.refusal2, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local version, score, after, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local refused, known, walk = read_meta(false, 'zoneData', 'zoneWalk')
if refused then return refused end
known, walk = known or '', walk or ''
local notes, walker = call('ZCARD', ZONED), string.match(walk, '^%S*')
if most == 0 then
if known < version and notes > 0 and walk == ARGV[5] then
call('HSET', META, 'zoneData', version)
call('HDEL', META, 'zoneWalk')
end
return { now, known, walk }
end
if score == '-inf' and known < version and walker < version and notes > 0 then
walk = string.format('%s %.0f', version, now)
call('HSET', META, 'zoneWalk', walk)
end
local out = { now, walker > version and walker or known, walk }
local from = score == '-inf' and 0 or place_behind(ZONED, score, after)
local found = call('ZRANGE', ZONED, from, from + most - 1, 'WITHSCORES')
for i = 1, #found, 2 do
local id = found[i]
out[#out + 1] = id
out[#out + 1] = found[i + 1]
out[#out + 1] = call('ZSCORE', DUE, id) or ''
out[#out + 1] = call('HGET', JOBS, id) or ''
end
return out`),
};
/** How the scripts read and write envelopes, for the test kit, which moves the times in them. */
export const ENVELOPE = `local function digits(ms)
ms = math.min(math.max(0, math.floor(ms)), 79 ^ 7 - 1)
local g = ms % 79
ms = (ms - g) / 79
local f = ms % 79
ms = (ms - f) / 79
local e = ms % 79
ms = (ms - e) / 79
local d = ms % 79
ms = (ms - d) / 79
local c = ms % 79
ms = (ms - c) / 79
local b = ms % 79
return string.char((ms - b) / 79 + 44, b + 44, c + 44, d + 44, e + 44, f + 44, g + 44)
end
local function time_at(text, at)
local a, b, c, d, e, f, g = string.byte(text, at, at + 6)
if not g or math.min(a, b, c, d, e, f, g) < 44 or math.max(a, b, c, d, e, f, g) > 122 then return nil end
return ((((((a - 44) * 79 + b - 44) * 79 + c - 44) * 79 + d - 44) * 79 + e - 44) * 79 + f - 44) * 79 + g - 44
end
local function version_of(content)
if string.byte(content) == 50 then return '2', string.sub(content, 2) end
return '1', content
end
local function rest_of(envelope)
local flag = string.sub(envelope, 2, 2)
return flag == 'x' and 24 or flag == 'g' and 26 or flag == 'y' and 33 or 17
end
local enqueued
local function stamp_of(due, expiry)
enqueued = enqueued or digits(now)
if expiry then return 'x' .. enqueued .. digits(due) .. digits(expiry) end
return '-' .. enqueued .. digits(due)
end
local function placed(stamp)
return (string.byte(stamp) == 120 and 'y' or 'g') .. string.sub(stamp, 2)
end
local function stamp_at(due, expiry, place)
local stamp = stamp_of(due, expiry)
return place == '' and stamp or placed(stamp) .. string.sub(place, 1, 9)
end
local function at_place(envelope, place)
local from = rest_of(envelope)
if place == '' or from > 24 then return envelope end
return string.sub(envelope, 1, 1) .. placed(string.sub(envelope, 2, from - 1)) .. string.sub(place, 1, 9) .. string.sub(envelope, from)
end
local function sealed(content, stamp)
local version, tail = version_of(content)
return version .. stamp .. tail
end
local function has_expired(envelope, at)
local flag = string.byte(envelope, 2)
return (flag == 120 or flag == 121) and at > (time_at(envelope, 17) or at) or nil
end
local function due_of(envelope)
return time_at(envelope, 10)
end
local function moved(envelope, due)
local was = due_of(envelope)
if not was then return envelope end
local head = string.sub(envelope, 1, 9) .. digits(due)
local flag = string.sub(envelope, 2, 2)
if flag ~= 'x' and flag ~= 'y' then return head .. string.sub(envelope, 17) end
return head .. digits((time_at(envelope, 17) or due) + due - was) .. string.sub(envelope, 24)
end`;
