-- Asks with a pause before each. Arguments: path, milliseconds of the longest pause, seed.
local n = 0
function init(args) path = args[1]; longest = tonumber(args[2]); seed = args[3]; math.randomseed(42) end
function delay() return math.random(0, longest) end
function request()
  n = n + 1
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, '{"unit":"' .. seed .. n .. '"}')
end
