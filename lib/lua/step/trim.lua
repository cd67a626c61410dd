-- Keeps the dead letters and the completed jobs within their number and age.
-- Needs `buried` and `kept`: at least twice as many leave as came.

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
  -- At least twice what was added, so that it always shrinks to what is allowed.
  local room, most, age = math.max(SWEEP, 2 * kept), tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
  local old = call('ZRANGE', COMPLETED, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, room)
  local over = math.min(room, call('ZCARD', COMPLETED) - most)
  if #old == 0 and over > 0 then old = call('ZRANGE', COMPLETED, 0, over - 1) end
  if #old > 0 then
    call('ZREM', COMPLETED, unpack(old))
    call('HDEL', HISTORY, unpack(old))
  end
end
