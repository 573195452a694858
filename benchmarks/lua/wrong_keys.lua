-- Asks with a pause between them, each with a key of its own that is of the right form and nobody's; or all with the one given.
-- Arguments: path, milliseconds of the longest pause, key or "wrong".
local n = 0
function setup(thread) thread:set("seed", os.time()) end
function init(args) path = args[1]; longest = tonumber(args[2]); given = args[3]; math.randomseed(seed) end
function delay() return math.random(0, longest) end
function request()
  n = n + 1
  local key = given == "wrong" and string.format("ba_%012x_%043d", math.random(0, 2^31), n) or given
  return wrk.format("POST", path, {["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. key}, '{"unit":"u"}')
end
