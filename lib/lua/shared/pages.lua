-- Where the next page of a sorted set begins: behind an element that the page before told. If that has gone, or moved, those of its score
-- are told again.
local function rank_behind(index, score, after)
  local same = tonumber(call('ZSCORE', index, after) or nil) == tonumber(score)
  return same and call('ZRANK', index, after) + 1 or call('ZCOUNT', index, '-inf', '(' .. score)
end
