-- The mixed loop: every answered ask is told.
local n = 0
local waiting = {}
function init(args) prefix = args[1]; seed = args[2] end
function request()
  n = n + 1
  local id = table.remove(waiting)
  local json = {["Content-Type"] = "application/json"}
  if id then return wrk.format("POST", prefix .. "/assignments/" .. id .. "/reward", json, '{"reward":' .. (n % 2) .. '}') end
  json["Idempotency-Key"] = seed .. "-" .. n
  return wrk.format("POST", prefix .. "/assignments", json, '{}')
end
function response(status, headers, body)
  if status == 201 then waiting[#waiting + 1] = body:match('"id":"(asg_%x+)"') end
end
