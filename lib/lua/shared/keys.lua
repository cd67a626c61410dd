-- The fixed keys of one shard, in the order of lib/redis/keys.ts. Every script is given all of them: a script that
-- touched an undeclared key would stop half-way while its Cluster slot moves.
local DUE, RUNNING, LEASES, JOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FOLLOWUPS, ATTEMPTS, QUARANTINE, DEAD = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ERRORS, UNIQUE, DEBOUNCE, IDLE = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local META, COMPLETED, HISTORY, CHANGED, SESSION = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call
--#limits local GROUPED, RING, HELD, RATES = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
