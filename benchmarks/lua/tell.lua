-- Tells, one per path of a file; it must hold more than can be told in the time.
local n = 0
local paths = {}
function init(args) for line in io.lines(args[1]) do paths[#paths + 1] = line end end
function request()
  n = n + 1
  if n > #paths then wrk.thread:stop() n = 1 end
  return wrk.format("POST", paths[n], {["Content-Type"] = "application/json"}, '{"reward":' .. (n % 2) .. '}')
end
