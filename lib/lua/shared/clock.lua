-- The server's clock is the only clock. Read once per script: it moves while a script runs.
local TIME = call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
