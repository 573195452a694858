-- Bodies from a file, one per line, each posted once; it must hold more than can be posted in the time.
local n = 0
local bodies = {}
function init(args) for line in io.lines(args[1]) do bodies[#bodies + 1] = line end end
function request()
  n = n + 1
  if n > #bodies then wrk.thread:stop() n = 1 end
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[n])
end
