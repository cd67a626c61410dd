-- Gives back what a claim counted for a job that did not begin.
-- Needs the limits. Gives give_back().

-- What was counted for a start by this claim in a window, unless that has left it. Times do not tell which start it was: the clock may have
-- been set back since, and have been there again, and to take another one's would let more begin than may.
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

-- A job that was claimed and did not begin counts for no rate. Its group may start another one at once. What was not counted is not given
-- back: a start of an expired job, or one from before a rate was there. Nothing may be left of the group then: one that goes back to `due`
-- enters it anew.
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
