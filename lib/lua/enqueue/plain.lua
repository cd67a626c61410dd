-- The common case: new ids, under which nothing stands, and nothing else to look up. Options that many jobs share are evaluated once.
-- Needs put(). Adds to `out`.

for r, spec in ipairs(specs) do
  --#limits placeOfJob = ''
  local dueAt, expiry = options_of(spec)
  local score, stamp = string.format('%.0f', dueAt), stamp_of(dueAt, expiry_of(expiry, dueAt))
  after = math.min(after, dueAt)
  out[#out + 1] = 'c - ' .. score
  if counts[r] > 1 then out[#out + 1] = '=' .. counts[r] - 1 end
--#if limits
  if widths[r] == 3 then stamp = placed(stamp) end
  for at = starts[r] + 1, starts[r] + widths[r] * counts[r], widths[r] do
    placeOfJob = widths[r] == 3 and ARGV[at + 2] or ''
    put(ARGV[at], score, sealed(ARGV[at + 1], stamp .. string.sub(placeOfJob, 1, 9)))
  end
--#else
  for at = starts[r] + 1, starts[r] + 2 * counts[r], 2 do put(ARGV[at], score, sealed(ARGV[at + 1], stamp)) end
--#end
end
