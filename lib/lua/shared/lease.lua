-- The lease of a job that is the only one of its process ends on .5. Only such a loss is charged as an attempt: where several
-- jobs ran, any of them may be the culprit.
local function sole_deadline(deadline)
  return deadline + 0.5
end

-- Also of a lease's length, as the arguments of a step give it.
local function is_sole(deadline)
  return deadline % 1 ~= 0
end

-- The fraction of a deadline. One at infinity, which only damage writes, has none.
local function mark_of(deadline)
  local mark = deadline % 1
  return mark == mark and mark or 0
end

-- A claim that holds no job any more needs no lease.
local function end_lease_if_empty(claim)
  if call('ZCOUNT', RUNNING, claim, claim) == 0 then call('ZREM', LEASES, claim) end
end
