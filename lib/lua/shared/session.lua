-- A session numbers its calls and sends the next one only after the last was answered, so one remembered answer per session is
-- enough to make a resend harmless. `remembered` is the answer when this very call already ran; nil when it is new.
-- The PX is no promise: it only lets the sessions of dead processes go away.
local SESSION_PX = 600000

-- Stands for a session that is over while a copy of one of its calls may still come: a number above all of its calls.
local SESSION_OVER = '9007199254740991 '

-- A copy of a call may arrive after its resend was answered, even after its session was forgotten: by a process that left, or by
-- a clock that jumped. So a call says `number`, and where the caller knows the server's clock ` sent arrival`: the server
-- time, ms, at which this copy left at the latest, and for how long it may be on its way. Later it changes nothing. `d` at the
-- end says that an earlier copy, or an earlier call of this session, got no answer: then this answer must be remembered whatever
-- it is, so that the copy finds it.
local ASKED, ARRIVES_BY, IN_DOUBT = 0, math.huge, false
local function sequence(text)
  local seq, sent, arrival, doubt = string.match(text, '^(%d+) ?(%d*) ?(%d*)(d?)$')
  if sent ~= '' then
    -- A caller's idea of the time beyond any error of clocks is junk.
    ASKED = math.min(tonumber(sent), now + 86400000)
    ARRIVES_BY = tonumber(sent) + (tonumber(arrival) or 0)
  end
  IN_DOUBT = doubt == 'd'
  return tonumber(seq)
end

-- @param inTime a copy that comes too late is refused also where the call ran
-- @returns false and an error reply for a call that comes too late
local function remembered(seq, inTime)
  local text = call('GET', SESSION)
  local at = text and string.find(text, ' ', 1, true)
  local last = at and tonumber(string.sub(text, 1, at - 1))
  if last == seq and not (inTime and now > ARRIVES_BY) then return string.sub(text, at + 1) end
  if last and last > seq then return false, redis.error_reply('DQSTALE an older call of this session arrived late') end
  if now > ARRIVES_BY then
    -- It was held up on its way, or no time has passed and the clock has jumped: what ran out meanwhile proves nothing, see
    -- lib/lua/step/grace.lua. Where memory is full the refusal counts all the same.
    if call('HEXISTS', META, 'seenAt') == 1 then redis.pcall('HSET', META, 'lateAt', now) end
    return false, redis.error_reply('DQLATE ' .. string.format('%.0f', now) .. ' is later than this call could arrive')
  end
end

-- `px`: for how long, ms, where what the answer gave is the caller's for longer.
local function remember(seq, answer, px)
  call('SET', SESSION, string.format('%.0f ', seq) .. answer, 'PX', px or SESSION_PX)
end
