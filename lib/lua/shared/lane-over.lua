-- What stands for a lane that is over while a copy of one of its calls may still come: a number above all of its calls.
local LANE_OVER = '9007199254740991 '
local LANE_PX = 600000
