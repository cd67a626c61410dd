-- What stands for a session that is over while a copy of one of its calls may still come: a number above all of its calls.
local SESSION_OVER = '9007199254740991 '
local SESSION_PX = 600000
