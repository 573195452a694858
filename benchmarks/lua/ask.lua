-- Asks, each with an idempotency key of its own. Arguments: experiments, prefix of the paths, seed, items of a batch or 0, API key.
local n = 0
function init(args)
  experiments = tonumber(args[1]); prefix = args[2]; seed = args[3]; batch = tonumber(args[4] or "0")
  authorization = args[5] and "Bearer " .. args[5]
end
function request()
  n = n + 1
  local path = prefix .. (experiments > 1 and tostring(n % experiments) or "0") .. "/assignments" .. (batch > 0 and "/batch" or "")
  local body = batch > 0 and '{"count":' .. batch .. '}' or '{"unit":"user-' .. (n % 5000) .. '"}'
  return wrk.format("POST", path, {["Content-Type"] = "application/json", ["Idempotency-Key"] = seed .. "-" .. n, ["Authorization"] = authorization}, body)
end
