-- Stores jobs: payload, index and wake-up in one step. The only script that a full Redis refuses.
-- KEYS  the shard's fixed list
-- ARGV  1 session sequence number
--       then per run of jobs with one spec: `spec`, or `n*spec` for n of them, and of each job: id, rest; where ` @` ends the
--       spec also its place in a queue with groups: nine digits of it, and all of it as a number
--       spec  = mode (n new id of the library; where a copy that comes late finds a job under it, that job is kept; k keep, o keep what
--               is dead as well, p replace, u replace at the due time it has, r reschedule, x reject, m moved here from another queue), d|a, delay or instant in ms,
--               and only where needed " expiry maxWait uniqueFor" with expiry = i<ms after due> or a<instant>, and - for none,
--               and after these " limit": most jobs that may wait and run, of queues that have one;
--       rest  = header and payload as lib/job/envelope.ts wrote them; of a moved job its envelope, which stays as it is
-- Reply text: now, with a + before it when nothing of this shard was stored; then per job `outcome state due` (o: c created, k kept, p replaced, r rescheduled, x rejected,
--       f full: then instead of due how many jobs count for the limit; b publishing is paused, which is said of all of them;
--       state: l delayed, d due, r running, x dead, c completed within uniqueFor, - none), or =n for n more of which it is said
-- Cost  O(jobs x log n); at most 200 jobs
--#include keys
--#include clock
--#include layout
--#include envelope
--#limits --#include groups
--#include record
--#include session
--#include begin
--#include erase
--#include changed
--#include wake
--#include followups

--#include enqueue/arguments
--#include enqueue/begin
--#include enqueue/read
--#include enqueue/pending

if checked or limited then
--#include enqueue/state
--#include enqueue/decide
--#include enqueue/each
else
--#include enqueue/plain
end

--#include enqueue/reply
