-- Asks of the naive design, whose experiments are numbered from 1.
local n = 0
function init(args) experiments = tonumber(args[1]) end
function request()
  n = n + 1
  local path = "/experiments/" .. (1 + n % experiments) .. "/assignments"
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, '{"unit":"user-' .. (n % 5000) .. '"}')
end
