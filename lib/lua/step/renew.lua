-- Renews the leases of the caller's claims. It runs before anything is recovered, so that a worker that was frozen
-- keeps the jobs that no other worker has claimed.
-- Needs the renewals in ARGV. Gives `aborted`, `left`, and the longest lease that was given (`given`) or may run
-- (`longest`).
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
  -- Fewer than the caller has: others took them over. More: a master that took over does not know that some have ended, and nobody would end
  -- them again for as long as this lease is renewed.
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
