-- Claim numbers are tokens: they rise, and no two are the same, not even where a failover lost the last ones and the new
-- master's clock is behind. So they begin with the highest time that the server or the caller knows of, in microseconds.
-- While a clock is far behind they count on from the last one. There a step of chance is between two of them: a master that took over and
-- goes on from the same number would give the claims that it has lost out again. Far is 50 ms, in 1024ths of one. Beyond 2^52, which only junk
-- reaches, a step of chance might leave the numbers that are exact.
local function next_claim(last)
  local fresh, chance = math.max(now, ASKED) * 1024 + TIME[2] % 1000, TIME[2] % 1000
  if not last or last < fresh then return fresh end
  return last + 1 + (last > fresh + 51200 and last < 2 ^ 52 and chance or 0)
end

-- As it is stored: the name of the claim in `leases`, and its score in `running`.
local function claim_name(number)
  return string.format('%.0f', number)
end
