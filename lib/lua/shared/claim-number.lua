-- Claim numbers are tokens: they rise, and no two are the same, not even where a failover lost the last ones and the new
-- master's clock is behind. So they begin with the highest time that the server or the caller knows of, in microseconds.
local function next_claim(last)
  return math.max((last or 0) + 1, math.max(now, ASKED) * 1024 + TIME[2] % 1000)
end

-- As it is stored: the name of the claim in `leases`, and its score in `running`.
local function claim_name(number)
  return string.format('%.0f', number)
end
