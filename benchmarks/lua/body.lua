-- Bodies from a file, one per line, posted in turn.
local n = 0
local bodies = {}
function init(args) for line in io.lines(args[1]) do bodies[#bodies + 1] = line end end
function request()
  n = n + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[1 + (n - 1) % #bodies])
end
