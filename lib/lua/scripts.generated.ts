// Written by generate.mjs from the .lua files beside it. Change those, then run `npm run generate`.
export const KEY_COUNT = 17;
/** More keys that the scripts of recurring jobs get, behind those. */
export const SCHEDULE_KEY_COUNT = 4;
/** What several scripts have. */
export const PARTS = {
  part: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`,
  whole: `local function whole(text)
local n = tonumber(text)
if n and n >= 0 and n <= 8.64e15 and n % 1 == 0 then return n end
end`,
  part2: `local SESSION_NAME = #META - #'meta' + #'session:' + 1
local SHARD = string.byte(SESSION, SESSION_NAME) == 126 and string.match(SESSION, '^~(%d+/%d+)~', SESSION_NAME) or ''`,
  shardState: `local function shard_state(needs)
local state, others = '', {}
for word in string.gmatch(needs or '', '%S+') do
if string.sub(word, 1, 7) == 'shards:' then state = string.sub(word, 8) else others[#others + 1] = word end
end
return state, table.concat(others, ' ')
end`,
  unknown: `local function unknown(layout, others)
if layout and not whole(layout) then return redis.error_reply('DQDAMAGED layout ' .. META) end
if layout and tonumber(layout) > LAYOUT then
return redis.error_reply('DQLAYOUT layout ' .. layout .. ' is newer than ' .. LAYOUT .. ' at ' .. META)
end
if others ~= '' then
return redis.error_reply('DQLAYOUT unknown features "' .. string.sub(others, 1, 100) .. '" are needed at ' .. META)
end
end`,
  beginMoving: `local function begin_moving(wanted, ...)
local meta = call('HMGET', META, 'layout', 'needs', ...)
local state, others = shard_state(meta[2])
local refused = unknown(meta[1], others)
if refused or state == wanted then return refused, unpack(meta, 3) end
return redis.error_reply('DQMOVED ' .. (state == '' and '?' or state) .. ' ' .. META)
end`,
  part3: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]`,
  madeBy: `local function made_by(id)
local field, at = string.match(id, '^({[^}]*})(%w+)$')
if not field then return nil end
local time = 0
for digit in string.gmatch(at, '%w') do time = time * 36 + tonumber(digit, 36) end
return field, time
end`,
  refusal: `local function refusal(layout, needs, settling)
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
  readMeta: `local function read_meta(settling, ...)
local meta = call('HMGET', META, 'layout', 'needs', ...)
return refusal(meta[1], meta[2], settling) or nil, unpack(meta, 3)
end`,
  readRecord: `local function read_record(text)
local charged, losses, snoozes, claim, limit = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) ?(%d*)$')
return tonumber(charged) or 0, tonumber(losses) or 0, tonumber(snoozes) or 0, tonumber(claim) or 0, tonumber(limit)
end`,
  part4: `local SESSION_PX = 600000
local SESSION_OVER = '9007199254740991 '
local ASKED, ARRIVES_BY, IN_DOUBT = 0, math.huge, false`,
  sequence: `local function sequence(text)
local seq, sent, arrival, doubt = string.match(text, '^(%d+) ?(%d*) ?(%d*)(d?)$')
if sent ~= '' then
ASKED = math.min(tonumber(sent), now + 86400000)
ARRIVES_BY = tonumber(sent) + (tonumber(arrival) or 0)
end
IN_DOUBT = doubt == 'd'
return tonumber(seq)
end`,
  remembered: `local function remembered(seq, inTime)
local text = call('GET', SESSION)
local at = text and string.find(text, ' ', 1, true)
local last = at and tonumber(string.sub(text, 1, at - 1))
if last == seq and not (inTime and now > ARRIVES_BY) then return string.sub(text, at + 1) end
if last and last > seq then return false, redis.error_reply('DQSTALE an older call of this session arrived late') end
if now > ARRIVES_BY then
if call('HEXISTS', META, 'seenAt') == 1 then redis.pcall('HSET', META, 'lateAt', now) end
return false, redis.error_reply('DQLATE ' .. string.format('%.0f', now) .. ' is later than this call could arrive')
end
end`,
  remember: `local function remember(seq, answer, px)
call('SET', SESSION, string.format('%.0f ', seq) .. answer, 'PX', px or SESSION_PX)
end`,
  begin: `local function begin(seq, settling, ...)
local meta = call('HMGET', META, 'layout', 'needs', ...)
local refused = refusal(meta[1], meta[2], settling)
if refused then return refused end
local answer, stale = remembered(seq)
if answer ~= nil then return answer or stale end
return nil, unpack(meta, 3)
end`,
  eraseUnfinished: `local function erase_unfinished(...)
call('HDEL', DEBOUNCE, ...)
call('ZREM', UNIQUE, ...)
erase(...)
end`,
  placeOf: `local function place_of(id)
local due, quarantined = tonumber(call('ZSCORE', DUE, id)), call('ZSCORE', QUARANTINE, id)
if call('ZSCORE', RUNNING, id) then return 'r' end
if due or quarantined then return 'w', due end
return call('ZSCORE', DEAD, id) and 'x' or 'n'
end`,
  cancelOne: `local function cancel_one(id, evenRunning, expected)
local place, due = place_of(id)
if place == 'r' and evenRunning then
call('HSET', FOLLOWUPS, id, '!')
call('HDEL', DEBOUNCE, id)
call('ZREM', UNIQUE, id)
end
if place ~= 'w' then return NOT_WAITING[place] end
local state = (due and due > now) and 'l' or 'd'
if expected and due ~= expected then return 'm ' .. state end
call('ZREM', DUE, id)
call('ZREM', QUARANTINE, id)
erase_unfinished(id)
return 'c ' .. state
end`,
  timeAt: `local function time_at(text, at)
local a, b, c, d, e, f, g = string.byte(text, at, at + 6)
if not g or math.min(a, b, c, d, e, f, g) < 44 or math.max(a, b, c, d, e, f, g) > 122 then return nil end
return ((((((a - 44) * 79 + b - 44) * 79 + c - 44) * 79 + d - 44) * 79 + e - 44) * 79 + f - 44) * 79 + g - 44
end`,
  hasBegun: `local function has_begun(id, due)
local text = call('HGET', ATTEMPTS, id)
if not text then return false end
local charged, losses, snoozes = read_record(text)
local by = due - (due_of(call('HGET', JOBS, id) or '') or due)
return charged + losses + snoozes > 0 or (by > 0 and by <= INTERRUPTED_MS)
end`,
  isUnbegun: `local function is_unbegun(id)
local due = tonumber(call('ZSCORE', DUE, id) or nil)
if not due or has_begun(id, due) then return false end
return call('HEXISTS', ATTEMPTS, id) == 0 or call('HGET', SCHEDULES, 'floor' .. (made_by(id) or '')) ~= id
end`,
  isBefore: `local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end`,
  placeBehind: `local function place_behind(index, score, id)
local at = call('ZSCORE', index, id)
if at and tonumber(at) == tonumber(score) then return call('ZRANK', index, id) + 1 end
local low, high = call('ZCOUNT', index, '-inf', '(' .. score), call('ZCOUNT', index, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local member = call('ZRANGE', index, middle, middle)[1]
if is_before(member, id) then low = middle + 1 else high = middle end
end
return low
end`,
  part5: `local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
local SCHEDULES, TICKS, ZONED, PENDING = KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`,
  holder: `local function holder(text)
local name, till = string.match(text or '', '^(.+) (%d+)$')
till = tonumber(till)
if name and till > now and till <= now + ROLE_MS then return name, till end
end`,
  tell: `local function tell(name)
return redis.pcall('PUBLISH', string.match(name, '^(.*)#%d+$') or name, DUE)
end`,
  sleepers: `local function sleepers(most)
local entries = redis.pcall('ZRANGE', IDLE, now + 600000, '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
return entries.err and {} or entries
end`,
  leadsUntil: `local function leads_until(score)
local till = is_long(score) and score - 416000 or tonumber(score) % 1 == 0 and score - 1000
return till and math.min(till, now + ROLE_MS) or nil
end`,
  wake: `local function wake(leader, except)
if leader and leader ~= except then tell(leader) end
local others, old = 0, 0
local entries = sleepers(14)
for i = 1, #entries, 2 do
local name = entries[i]
if others < 2 and old < 10 and name ~= leader and name ~= except then
local heard = tell(name)
if leads_until(entries[i + 1]) then
others = others + 1
else
old = old + 1
if heard == 0 then redis.pcall('ZADD', IDLE, 'XX', now + 1000, name) end
end
end
end
end`,
  digits: `local function digits(ms)
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
end`,
  versionOf: `local function version_of(content)
if string.byte(content) == 50 then return '2', string.sub(content, 2) end
return '1', content
end`,
  stampOf: `local function stamp_of(due, expiry)
enqueued = enqueued or digits(now)
if expiry then return 'x' .. enqueued .. digits(due) .. digits(expiry) end
return '-' .. enqueued .. digits(due)
end`,
  sealed: `local function sealed(content, stamp)
local version, tail = version_of(content)
return version .. stamp .. tail
end`,
  moved: `local function moved(envelope, due)
local was = due_of(envelope)
if not was then return envelope end
local head = string.sub(envelope, 1, 9) .. digits(due)
local from = rest_of(envelope)
if from == 17 then return head .. string.sub(envelope, 17) end
return head .. digits((time_at(envelope, 17) or due) + due - was) .. string.sub(envelope, 24)
end`,
  record: `local function record(charged, losses, snoozes, claim, limit)
local text = string.format('%.0f %.0f %.0f %.0f', charged, losses, snoozes, claim)
return limit and text .. string.format(' %.0f', limit) or text
end`,
  disown: `local function disown(id)
local text = call('HGET', ATTEMPTS, id)
if not text then return end
local charged, losses, snoozes, _, limit = read_record(text)
call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit))
end`,
  markChanged: `local function mark_changed()
local moment = TIME[1] * 1000000 + TIME[2]
local last = redis.pcall('SET', CHANGED, string.format('%.0f', moment), 'XX', 'GET')
last = type(last) == 'string' and tonumber(last)
if last and last >= moment and last < moment + 1000000 then redis.pcall('SET', CHANGED, string.format('%.0f', last + 1)) end
end`,
  headOfDue: `local function head_of_due()
local head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
return head[1] and tonumber(head[2])
end`,
  mustWake: `local function must_wake(before, after, woke)
if not after then return false end
if not before or after < before then return true end
return after <= now - 50 and not (woke and woke > now - 50 and woke <= now)
end`,
  follower: `local function follower(after)
if is_cancelled(after) then after = string.sub(after, 2) end
if after and after ~= '' and string.byte(after) ~= 61 then return after end
end`,
  nextClaim: `local function next_claim(last)
local fresh, chance = math.max(now, ASKED) * 1024 + TIME[2] % 1000, TIME[2] % 1000
if not last or last < fresh then return fresh end
return last + 1 + (last > fresh + 51200 and last < 2 ^ 52 and chance or 0)
end`,
  endLeaseIfEmpty: `local function end_lease_if_empty(claim)
if call('ZCOUNT', RUNNING, claim, claim) == 0 then call('ZREM', LEASES, claim) end
end`,
  nextPlace: `local function next_place(last, set)
local place = math.max(TIME[1] * 1000000 + TIME[2], (whole(last) or 0) + 1, (whole(set) or 0) + 1)
local text = string.format('%.0f', place)
call('HSET', META, 'lastPlace', text)
return text
end`,
  isOvertaken: `local function is_overtaken(place, set)
place, set = whole(place), whole(set)
return place ~= nil and set ~= nil and place < set
end`,
  wakeForNewHead: `local function wake_for_new_head(before, leader, paused, wokenAt)
local after = head_of_due()
if after and (not before or after < before) then mark_changed() end
if paused == '1' or not must_wake(before, after, tonumber(wokenAt)) then return end
call('HSET', META, 'wokenAt', now)
wake(holder(leader))
end`,
  rescheduleOne: `local function reschedule_one(id, target_of, onlySooner, expected)
local place, due = place_of(id)
if place ~= 'w' then return NOT_WAITING[place] .. ' 0' end
local state = (due and due > now) and 'l' or 'd'
if expected and due ~= expected then return 'm ' .. state .. ' 0' end
local target = target_of(due)
if onlySooner and (not due or due <= target) then target = due or now
else
local envelope = call('HGET', JOBS, id)
call('ZADD', DUE, target, id)
if envelope then call('HSET', JOBS, id, moved(envelope, target)) end
disown(id)
call('ZREM', QUARANTINE, id)
end
return 's ' .. state .. string.format(' %.0f', target)
end`,
  countAhead: `local function count_ahead(field, n)
local was = whole(call('HGET', SCHEDULES, 'ahead' .. field)) or 0
if n == was then return end
if n > 0 then call('HSET', SCHEDULES, 'ahead' .. field, n) else call('HDEL', SCHEDULES, 'ahead' .. field) end
call('HSET', META, 'ahead', math.max(0, (whole(call('HGET', META, 'ahead')) or 0) + n - was))
end`,
  withPayload: `local function with_payload(envelope, known, content)
local head = string.sub(envelope, 1, math.min((string.find(envelope, '\\n', 1, true) or LONGEST_HEAD + 1) - 1, LONGEST_HEAD))
if header_of(head) ~= (known == '' and '1' or header_of(known)) then return nil, head end
local version, tail = version_of(content)
return version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail
end`,
  changedAt: `local function changed_at()
local held = redis.pcall('GET', CHANGED)
if not held then
held = string.format('%.0f', TIME[1] * 1000000 + TIME[2])
redis.pcall('SET', CHANGED, held)
end
return type(held) == 'string' and held or nil
end`,
  follow: `local function follow(id, after)
local envelope = follower(after)
if string.byte(after) == 61 then
call('ZADD', DUE, string.sub(after, 2), id)
elseif envelope then
call('ZADD', DUE, due_of(envelope) or now, id)
call('HSET', JOBS, id, envelope)
forget_attempts(id)
else
erase(id)
end
call('ZREM', RUNNING, id)
call('ZREM', QUARANTINE, id)
call('HDEL', FOLLOWUPS, id)
end`,
  withdraw: `local function withdraw(ids, stay)
local found, erased, count = {}, {}, 0
for _, id in ipairs(ids) do
if not found[id] and is_unbegun(id) then
found[id] = true
count = count + 1
if not (stay and stay[id]) then erased[#erased + 1] = id end
end
end
if #erased > 0 then
call('ZREM', DUE, unpack(erased))
erase_unfinished(unpack(erased))
end
return count, found
end`,
};
export function joined(...parts: readonly string[]): string {
  return parts.join('\n');
}
export const SOURCES = {
  adoptShard: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local refused, sinceBefore, took = begin_moving(ARGV[1], 'since', 'took:' .. ARGV[3])
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
  beginOccurrence: joined(PARTS.part3, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.readRecord, `local function is_cancelled(after)
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
  cancelMany: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.cancelOne, `local seq, evenRunning = sequence(ARGV[1]), ARGV[2] == '1'
local replied = begin(seq, false)
if replied then return replied end
call('ZCARD', DUE); call('ZCARD', RUNNING); call('ZCARD', QUARANTINE); call('ZCARD', DEAD)
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answers = {}
for i = 3, #ARGV, 2 do
answers[#answers + 1] = cancel_one(ARGV[i], evenRunning, tonumber(ARGV[i + 1]))
end
local answer = table.concat(answers, ' ')
remember(seq, answer)
return answer`),
  cancelOccurrences: joined(PARTS.part3, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.cancelOne, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.isBefore, PARTS.placeBehind, `local seq, schedule, most, waiting = sequence(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[6] == '1'
local replied = begin(seq, false)
if replied then return replied end
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
return answer`),
  cancel: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.cancelOne, `local seq, id, evenRunning = sequence(ARGV[1]), ARGV[2], ARGV[3] == '1'
local replied = begin(seq, false)
if replied then return replied end
call('HLEN', JOBS); call('HLEN', FOLLOWUPS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
local answer = cancel_one(id, evenRunning, nil)
remember(seq, answer)
return answer`),
  counts: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local refused, paused, publishingPaused, graceUntil, longestLease, enqueued, completed, failed, retried, buried, expired, since, seenAt,
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
local function total(count) return whole(count) or 0 end
return {
now, call('ZCOUNT', DUE, '(' .. now, '+inf'), call('ZCOUNT', DUE, '-inf', now) + nQuarantined, running,
call('ZCARD', DEAD), nQuarantined, paused == '1' and 1 or 0, oldest and math.max(0, oldest) or -1,
later[1] and math.min(tonumber(later[2]), 9e15) or -1, call('ZCOUNT', IDLE, now, '+inf'),
total(enqueued), total(completed), total(failed), total(retried), total(buried), total(expired), total(since), total(seenAt),
publishingPaused == '1' and 1 or 0, call('ZCARD', COMPLETED), math.max(0, math.min(over, 9e15)),
total(skipped), call('ZCARD', TICKS), math.max(0, math.min(now - need, 9e15)),
}`),
  endShard: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
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
SCHEDULES, TICKS, ZONED, PENDING, META, CHANGED)
if ARGV[2] ~= '' then call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. ARGV[2]) end
return 'OK'`),
  enqueue: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, PARTS.versionOf, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued`, PARTS.stampOf, PARTS.sealed, `local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end`, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, `local specs, counts, starts, checked, limited = {}, {}, {}, false, false
do
local at, n = 2, 0
while at <= #ARGV do
local spec, count = ARGV[at], 1
local star = string.find(spec, '*', 1, true)
if star then count, spec = tonumber(string.sub(spec, 1, star - 1)), string.sub(spec, star + 1) end
n = n + 1
specs[n], counts[n], starts[n] = spec, count, at
local rules = string.find(spec, ' ', 1, true)
if rules and string.find(spec, ' %S+ %S+ %S+ %d+$', rules) then limited = true end
if string.byte(spec) ~= 110 or rules and not string.find(spec, '^ %S+ %- %- ?%d*$', rules) then checked = true end
at = at + 1 + 2 * count
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
local head = head_of_due()
local size = 0
if limited then
local ahead = whole(call('HGET', META, 'ahead')) or 0
size = call('ZCARD', DUE) + call('ZCARD', RUNNING) + call('ZCARD', QUARANTINE) - ahead
end
local due, running, dead, quarantined, windowEnds, burstStarts, known, history
local ids = {}
for r, start in ipairs(starts) do
for k = 1, counts[r] do ids[#ids + 1] = ARGV[start + 2 * k - 1] end
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
local function put(id, dueAt, envelope)
zadd[pending + 1], zadd[pending + 2] = dueAt, id
hset[pending + 1], hset[pending + 2] = id, envelope
pending = pending + 2
created = created + 1
end
local function flush()
if pending == 0 then return end
call('HSET', JOBS, unpack(hset))
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
call('ZADD', DUE, dueAt, id)
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
for at = starts[r] + 1, starts[r] + 2 * counts[r], 2 do
n = n + 1
out[n + 1] = decide(n, spec, ARGV[at], ARGV[at + 1])
end
end
else
for r, spec in ipairs(specs) do
local dueAt, expiry = options_of(spec)
local score, stamp = string.format('%.0f', dueAt), stamp_of(dueAt, expiry_of(expiry, dueAt))
after = math.min(after, dueAt)
out[#out + 1] = 'c - ' .. score
if counts[r] > 1 then out[#out + 1] = '=' .. counts[r] - 1 end
for at = starts[r] + 1, starts[r] + 2 * counts[r], 2 do put(ARGV[at], score, sealed(ARGV[at + 1], stamp)) end
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
if not after then after = head_of_due() elseif after == math.huge then after = nil end
if after and (not head or after < head) then mark_changed() end
local woken = paused ~= '1' and must_wake(head, after, tonumber(wokenAt))
if woken then
fields[#fields + 1] = 'wokenAt'
fields[#fields + 1] = now
end
call('HSET', META, unpack(fields))
if woken then wake(holder(leader)) end
return answer`),
  extend: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.nextClaim, `local function claim_name(number)
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
  get: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local id = ARGV[1]
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
  leave: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local SESSION_PX = 600000
local SESSION_OVER = '9007199254740991 '
local ASKED, ARRIVES_BY, IN_DOUBT = 0, math.huge, false
local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, `local me = ARGV[1]
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
  list: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local state, cursor, after, limit, most = ARGV[1], ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
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
  markShard: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.markChanged, `local to, conditions = ARGV[1], ARGV[2]
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
call('HSET', META, 'layout', LAYOUT, 'needs', 'shards:' .. to)
elseif meta[2] then
call('HDEL', META, 'needs')
end
mark_changed()
return { 'y', state, running }`),
  moveIn: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local refused = begin_moving(ARGV[1])
if refused then return refused end
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('HLEN', ERRORS); call('HLEN', DEBOUNCE); call('ZCARD', UNIQUE)
call('ZCARD', DUE); call('ZCARD', QUARANTINE); call('ZCARD', DEAD); call('ZCARD', RUNNING)
call('ZCARD', COMPLETED); call('HLEN', HISTORY); call('ZCARD', ZONED)
local indexes, fresh = { d = DUE, s = QUARANTINE, x = DEAD }, 0
for i = 2, #ARGV, 11 do
local id, index = ARGV[i], indexes[ARGV[i + 1]]
if index and not (call('ZSCORE', DUE, id) or call('ZSCORE', QUARANTINE, id) or call('ZSCORE', DEAD, id) or
call('ZSCORE', RUNNING, id)) then
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
  moveOff: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local function forget_attempts(...)
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
call('ZREM', DUE, unpack(ids))
call('ZREM', QUARANTINE, unpack(ids))
call('ZREM', DEAD, unpack(ids))
call('ZREM', COMPLETED, unpack(ids))
call('HDEL', HISTORY, unpack(ids))
call('ZREM', ZONED, unpack(ids))
erase_unfinished(unpack(ids))
return 'OK'`),
  moveOut: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local refused = begin_moving(ARGV[1])
if refused then return refused end
local most, bytes, out = tonumber(ARGV[2]), 0, {}
for i = 3, #ARGV do
local id = ARGV[i]
local index, score = 'd', call('ZSCORE', DUE, id)
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
  pausePublishing: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local function micros()
return string.format('%.0f', TIME[1] * 1000000 + TIME[2])
end`, PARTS.nextPlace, PARTS.isOvertaken, PARTS.markChanged, `local refused, paused, pauseAsked, lastPlace = read_meta(false, 'publishingPaused', 'publishingPauseAsked', 'lastPlace')
if refused then return refused end
if ARGV[1] == '?' then return next_place(lastPlace, pauseAsked) end
if is_overtaken(ARGV[2], pauseAsked) then return '0' end
call('HSET', META, 'publishingPaused', ARGV[1], 'publishingPauseAsked', ARGV[2] or micros())
if (paused or '0') ~= ARGV[1] then mark_changed() end
return (paused or '0') == ARGV[1] and '0' or '1'`),
  pause: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, `local function micros()
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
  purgeWaiting: joined(PARTS.part3, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.isBefore, PARTS.placeBehind, `local seq, most, room, score, after, moved = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local replied = begin(seq, false)
if replied then return replied end
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
call('ZREM', DUE, unpack(gone))
end
if not goes_on and #gone < room then
local ids = call('ZRANGE', QUARANTINE, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, room - #gone)
if #ids > 0 then
call('ZREM', QUARANTINE, unpack(ids))
for _, id in ipairs(ids) do gone[#gone + 1] = id end
end
end
if #gone > 0 then erase_unfinished(unpack(gone)) end
local answer = string.format('%d,%d', #gone, call('ZCARD', DUE) + call('ZCARD', QUARANTINE))
if goes_on or (#gone == room and call('ZCARD', QUARANTINE) > 0) then answer = answer .. ' ' .. score .. ' ' .. after end
remember(seq, answer)
return answer`),
  remove: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local seq, dead, most, before = sequence(ARGV[1]), ARGV[2] == 'x', tonumber(ARGV[3]), tonumber(ARGV[4])
local replied = begin(seq, false)
if replied then return replied end
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
return answer`),
  requeueDead: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, PARTS.isBefore, PARTS.placeBehind, `local seq, delay, forget, spread = sequence(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
local before, reason = tonumber(ARGV[5]), ARGV[6]
local position, total, most = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
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
call('ZADD', DUE, due, id)
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
  rescheduleMany: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.rescheduleOne, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, onlySooner = sequence(ARGV[1]), ARGV[2] == '1'
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
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
  reschedule: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.rescheduleOne, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, onlySooner = sequence(ARGV[1]), ARGV[2], ARGV[5] == '1'
local target = tonumber(ARGV[4])
if ARGV[3] == 'd' then target = now + target end
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
call('HLEN', JOBS); call('HLEN', ATTEMPTS); call('ZCARD', IDLE)
local answer = reschedule_one(id, function() return target end, onlySooner, nil)
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  reserve: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.markChanged, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.nextClaim, `local function claim_name(number)
return string.format('%.0f', number)
end`, PARTS.endLeaseIfEmpty, `local seq, lease, byteLimit = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, lastClaim, longestLease = begin(seq, false, 'claim', 'longestLease')
if replied then return replied end
local ids = { unpack(ARGV, 4) }
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
return answer`),
  rezone: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, PARTS.versionOf, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, read, was, due, content = sequence(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local zone_data = ARGV[7]
local replied, leader, paused, wokenAt, known, walk = begin(seq, false, 'leader', 'paused', 'wokenAt', 'zoneData', 'zoneWalk')
if replied then return replied end
local is_old = zone_data ~= '' and ((known or '') > zone_data or string.match(walk or '', '^%S*') > zone_data)
local head = head_of_due()
call('HLEN', ATTEMPTS); call('ZCARD', IDLE); call('ZCARD', ZONED)
local place, waits = place_of(id)
local answer = 'c'
if place ~= 'w' then
answer = NOT_WAITING[place] .. ' 0'
elseif not is_old and (not was or waits == was) and call('HGET', JOBS, id) == read then
local version, tail = version_of(content)
call('ZADD', DUE, due, id)
call('HSET', JOBS, id, moved(version .. string.sub(read, 2, rest_of(read) - 1) .. tail, due))
call('ZADD', ZONED, due, id)
disown(id)
call('ZREM', QUARANTINE, id)
answer = 's ' .. ((waits and waits > now) and 'l' or 'd') .. string.format(' %.0f', due)
end
remember(seq, answer)
wake_for_new_head(head, leader, paused, wokenAt)
return answer`),
  schedulesIn: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, PARTS.countAhead, `local refused = begin_moving(ARGV[1])
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
  schedulesOff: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, PARTS.countAhead, `local refused = begin_moving(ARGV[1])
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
  schedulesOut: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.beginMoving, `local refused = begin_moving(ARGV[1])
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
  schedules: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local only, most, score, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
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
  select: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }`, PARTS.isBefore, PARTS.placeBehind, `local mode, from, to, cursor, after, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
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
  signal: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, PARTS.versionOf, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.moved, PARTS.readRecord, PARTS.record, PARTS.disown, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.placeOf, `local NOT_WAITING = { r = 'r r', x = 'x x', n = 'n -' }
local LONGEST_HEAD = 65536
local function header_of(head)
return string.sub(head, 1, 1) .. string.sub(head, rest_of(head))
end`, PARTS.withPayload, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, known, content = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local replied, leader, paused, wokenAt = begin(seq, false, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
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
call('ZADD', DUE, now, id)
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
  step: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, PARTS.versionOf, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, PARTS.record, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.nextClaim, `local function claim_name(number)
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
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, PARTS.follow, `local MOST = 200
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
local firstTwo = call('ZRANGE', DUE, 0, 1, 'WITHSCORES')
local headBefore = firstTwo[1] and tonumber(firstTwo[2])
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
local plain = nOutcomes == 0 and nRenewals == 0 and not sweeps and not keeps
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
local NO_DELAY_MS = 60000
local function delayed_by(text)
return now + (whole(text) or NO_DELAY_MS)
end
local function drop(id)
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
follow(id, after)
superseded[#superseded + 1] = id
if verb == 'r' or verb == 'd' and c == 1 then failed = failed + 1 end
if verb == 'x' then expired = expired + 1 end
else
local charged, losses, snoozes, lostClaim, limit = read_record(call('HGET', ATTEMPTS, id))
if verb == 'r' then
call('ZADD', DUE, delayed_by(a), id)
call('HSET', ATTEMPTS, id, record(charged + 1, 0, snoozes, 0, limit))
note(id, 'retry', b)
retried, failed = retried + 1, failed + 1
elseif verb == 's' then
call('ZADD', DUE, delayed_by(a), id)
call('HSET', ATTEMPTS, id, record(charged, 0, snoozes + 1, 0, limit))
local envelope = call('HGET', JOBS, id)
if b ~= '' and envelope then
local version, tail = version_of(b)
call('HSET', JOBS, id, version .. string.sub(envelope, 2, rest_of(envelope) - 1) .. tail)
end
elseif verb == 'l' then
local due, envelope = tonumber(a), call('HGET', JOBS, id)
due = math.max(due == due and due or now, now + (whole(b) or -math.huge))
call('ZADD', DUE, due, id)
if lostClaim > 0 or due ~= due_of(envelope or '') then call('HSET', ATTEMPTS, id, record(charged, losses, snoozes, 0, limit)) end
elseif verb == 'd' then
bury(id, a, b)
if c == 1 then failed = failed + 1 end
if charged + c + snoozes > 0 or limit then
call('HSET', ATTEMPTS, id, record(charged + c, 0, snoozes, 0, limit))
else
call('HDEL', ATTEMPTS, id)
end
call('ZREM', DUE, id)
elseif verb == 'x' then
expired = expired + 1
drop(id)
end
call('ZREM', QUARANTINE, id)
call('ZREM', RUNNING, id)
end
end
if #emptied > 0 then call('ZREM', LEASES, unpack(emptied)) end
for _, claim in ipairs(touched) do
end_lease_if_empty(claim_name(claim))
end
if moves then followups, records, nQuarantined = call('HLEN', FOLLOWUPS), call('HLEN', ATTEMPTS), call('ZCARD', QUARANTINE) end
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
local number, bytes, started, running, others = claim_name(claim), 0, {}, {}, {}
local losses, damaged = 0, false
for i = 1, #ids do
local id, envelope, text = ids[i], envelopes[i], texts[i]
if not envelope then
if onlyClaims then call('ZCARD', LEASES) end
bury(id, 'undecodable', '{"name":"StoredDataError","message":"The index names a job that has no record."}')
damaged = true
others[#others + 1] = id
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
end
if not answer and not paused then
if nQuarantined > 0 and (flag('v') or quarantineLimit > 0) then
if not waited and (not isolator or isolator == me) then
if not isolator or isolatorTill < now + ROLE_MS / 2 then
put('isolator', me .. ' ' .. string.format('%.0f', now + ROLE_MS))
end
isolator = me
end
if quarantineLimit > 0 then
local ids = waited and call('ZRANGE', QUARANTINE, '-inf', now - waited, 'BYSCORE', 'LIMIT', 0, quarantineLimit)
or call('ZRANGE', QUARANTINE, 0, quarantineLimit - 1)
local few = {}
for i, text in ipairs(#ids > 0 and call('HMGET', ATTEMPTS, unpack(ids)) or {}) do
local losses = select(2, read_record(text or ''))
if losses > 1 then
if i == 1 then few[1] = ids[1] end
break
end
few[i] = ids[i]
end
if #few > 0 then take(QUARANTINE, few); moves = true end
nQuarantined = call('ZCARD', QUARANTINE)
end
elseif isolator == me and nQuarantined == 0 then
put('isolator', '')
isolator = nil
end
if claims and quarantineLimit == 0 then
local second = tonumber(firstTwo[4])
if not moves and not (second and second <= now) then
take(DUE, { firstTwo[1] }, { firstTwo[2] })
headLeft = second
else
local found = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, claimLimit, 'WITHSCORES')
if #found > 0 then
local ids, scores = {}, {}
for i = 1, #found / 2 do ids[i], scores[i] = found[2 * i - 1], found[2 * i] end
take(DUE, ids, scores)
moves = true
end
end
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
if moves then head = head_of_due() end
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
and (not head or head > now + SOON_MS) then
local held = is_long(redis.pcall('ZSCORE', IDLE, me)) and changed_at()
local till = head or 9e15
local function is_kept(index, most, age)
local oldest = call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
if oldest then till = math.min(till, call('ZCARD', index) > most and 0 or oldest + age) end
end
is_kept(DEAD, deadKept, deadAge)
if keeps then is_kept(COMPLETED, tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])) end
if windows > 0 and call('ZCOUNT', UNIQUE, '-inf', now) > 0 then till = 0 end
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
head = head and math.max(0, math.min(head, 9e15)) or -1
local jobs = joins and joins <= 1024 * filled / 3 and table.concat(batch, '\\30') or batch
local oldest = nQuarantined > 0 and tonumber(call('ZRANGE', QUARANTINE, 0, 0, 'WITHSCORES')[2]) or -1
oldest = math.max(-1, math.min(oldest, 9e15))
return { now * 1000 + TIME[2] % 1000, claim, head, firstLease, roles, idle, nQuarantined, lost, aborted, left, jobs, superseded, oldest, quiet }`),
  tick: joined(PARTS.part3, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.digits, PARTS.timeAt, PARTS.versionOf, `local enqueued`, PARTS.stampOf, PARTS.sealed, `local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.withdraw, PARTS.countAhead, PARTS.markChanged, `local ROLE_MS = 6000`, PARTS.holder, PARTS.tell, PARTS.sleepers, `local function is_long(score)
return (tonumber(score) or 0) >= now + 415000
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local seq, id, read, follows, before, nGone = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[7]), tonumber(ARGV[8])
local replied, leader, paused, wokenAt, enqueued, since, publishingPaused, skipped = begin(seq, false, 'leader', 'paused', 'wokenAt',
'enqueued', 'since', 'publishingPaused', 'skipped')
if replied then return replied end
local field, head = '{' .. id .. '}', head_of_due()
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
local occurrence, due, expiry = ARGV[i], tonumber(ARGV[i + 1]), tonumber(string.match(ARGV[i + 2], '^i(%d+)$'))
if gone[occurrence] or call('HEXISTS', JOBS, occurrence) == 0 then
call('HSET', JOBS, occurrence, sealed(ARGV[i + 3], stamp_of(due, expiry and due + expiry)))
call('ZADD', DUE, due, occurrence)
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
if isWritten and #ARGV >= first then wake_for_new_head(head, leader, paused, wokenAt) end
return answer`),
  ticks: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.changedAt, `local refused, paused, publishingPaused, since = read_meta(false, 'paused', 'publishingPaused', 'since')
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
  timeline: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, `local refused = read_meta(false)
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
  unreserve: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function claim_name(number)
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
end`, PARTS.leadsUntil, PARTS.wake, PARTS.headOfDue, PARTS.mustWake, PARTS.wakeForNewHead, `local function is_cancelled(after)
return after and string.byte(after) == 33
end`, PARTS.follower, PARTS.follow, `local seq, claim, leaving = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local replied, leader, paused, wokenAt = begin(seq, true, 'leader', 'paused', 'wokenAt')
if replied then return replied end
local head = head_of_due()
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
  unschedule: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, PARTS.countAhead, `local seq, id, read, stopped, never = sequence(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
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
  unzone: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local most, score, after = tonumber(ARGV[1]), ARGV[2], ARGV[3]
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
  update: joined(PARTS.part, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, PARTS.versionOf, `local function rest_of(envelope)
return string.sub(envelope, 2, 2) == 'x' and 24 or 17
end
local enqueued
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
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.timeAt, `local enqueued
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
  withdrawOccurrences: joined(PARTS.part3, PARTS.madeBy, `local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local LAYOUT = 2`, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.timeAt, `local enqueued
local function due_of(envelope)
return time_at(envelope, 10)
end`, PARTS.readRecord, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local function forget_attempts(...)
call('HDEL', ATTEMPTS, ...)
call('HDEL', ERRORS, ...)
end
local function erase(...)
forget_attempts(...)
call('HDEL', JOBS, ...)
end`, PARTS.eraseUnfinished, `local INTERRUPTED_MS = 20`, PARTS.hasBegun, PARTS.isUnbegun, PARTS.withdraw, PARTS.isBefore, PARTS.placeBehind, `local seq, most, schedules = sequence(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])
local replied, skipped = begin(seq, false, 'skipped')
if replied then return replied end
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
return answer`),
  zone: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.part4, PARTS.sequence, PARTS.remembered, PARTS.remember, PARTS.begin, `local seq, version = sequence(ARGV[1]), ARGV[2]
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
  zoned: joined(PARTS.part5, PARTS.whole, PARTS.part2, PARTS.shardState, PARTS.unknown, PARTS.refusal, PARTS.readMeta, PARTS.isBefore, PARTS.placeBehind, `local version, score, after, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
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
