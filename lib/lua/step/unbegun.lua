-- Gives back what a claim counted for a job that did not begin.
-- Needs the limits. Gives give_back().

-- What was counted for a start at `at` in a window. Where it was joined with later ones, or the clock was behind the claim's number, nobody
-- knows which start was this one's: then it counts on, as to take another one's might let more begin than may.
local function unbook(field, max, per, at)
  local rate, texts, from = window(call('HGET', RATES, field), max, per), {}, nil
  for i, entry in ipairs(rate.kept) do
    if entry[1] == at then from = i end
  end
  if not from then return end
  rate.kept[from][2] = rate.kept[from][2] - 1
  for _, entry in ipairs(rate.kept) do
    if entry[2] > 0 then texts[#texts + 1] = exact(entry[1]) .. ':' .. exact(entry[2]) end
  end
  if #texts > 0 then call('HSET', RATES, field, table.concat(texts, ' ')) else call('HDEL', RATES, field) end
end

-- A job that was claimed and did not begin counts for no rate. Its group may start another one at once. What was not counted is not given
-- back: a start of an expired job. Nothing may be left of the group then: one that goes back to `due` enters it anew.
local function give_back(id, claim)
  local envelope, at = call('HGET', JOBS, id), math.floor(claim / 1024)
  if has_expired(envelope or '', at) then return end
  read_limits()
  if limits.max then unbook('', limits.max, limits.per, at) end
  local base = base_of(place_in(envelope))
  if not limits.groupMax or base == '9' then return end
  unbook(base, limits.groupMax, limits.groupPer, at)
  local score = tonumber(call('ZSCORE', RING, base) or nil)
  if score and score < LINE then call('ZADD', RING, exact(AT_LIMIT + now), base) end
  if score and score >= 0 then end_group_if_empty(base) end
end
