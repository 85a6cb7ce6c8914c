-- ARGV goes on with keys.
local values = {}
if #ARGV > 3 then
  values = redis.call('HMGET', records, unpack(ARGV, 4))
end
return {'ok', text(now), text(last), values}
