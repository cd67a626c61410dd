-- Decides and writes job by job: ids have to be looked up, or the queue may be full.
-- Needs decide(). Adds to `out`.

local n = 0
for r, spec in ipairs(specs) do
--#if limits
  for at = starts[r] + 1, starts[r] + widths[r] * counts[r], widths[r] do
    placeOfJob = widths[r] == 3 and ARGV[at + 2] or ''
    n = n + 1
    out[n + 1] = decide(n, spec, ARGV[at], ARGV[at + 1])
  end
--#else
  for at = starts[r] + 1, starts[r] + 2 * counts[r], 2 do
    n = n + 1
    out[n + 1] = decide(n, spec, ARGV[at], ARGV[at + 1])
  end
--#end
end
