-- ARGV goes on with the number of conditions, each a key and the revision it must have or nothing; then mutations, each
-- `d` and a key, or `p`, a key, milliseconds it stays or nothing, and a value.
local function drop(key)
  redis.call('HDEL', records, key)
  redis.call('ZREM', order, key)
  redis.call('ZREM', expiry, key)
end

local at = 5
for _ = 1, tonumber(ARGV[4]) do
  if (version(redis.call('HGET', records, ARGV[at])) or '') ~= ARGV[at + 1] then
    return {'conflict', text(now), text(last), {}}
  end
  at = at + 2
end

-- A clock beside the counter: what a lost namespace had issued does not come again in the next.
local revision = math.max(last + 1, micros)
if revision > 9007199254740991 then
  return {'exhausted', text(now), text(last), {}}
end

-- A server that is out of memory refuses the first write of a script, and none after it: half a batch is never applied.
redis.call('HSET', state, 'revision', text(revision))
redis.call('ZADD', batches, text(revision), text(revision))
redis.call('ZREMRANGEBYRANK', batches, 0, -4097)
for _, key in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', text(now), 'LIMIT', 0, 64)) do
  drop(key)
end
while ARGV[at] do
  local key = ARGV[at + 1]
  if ARGV[at] == 'd' then
    drop(key)
    at = at + 2
  else
    local ends = ''
    if ARGV[at + 2] == '' then
      redis.call('ZREM', expiry, key)
    else
      ends = text(now + tonumber(ARGV[at + 2]))
      redis.call('ZADD', expiry, ends, key)
    end
    redis.call('HSET', records, key, text(revision) .. ':' .. ends .. ':' .. ARGV[at + 3])
    redis.call('ZADD', order, 0, key)
    at = at + 4
  end
end
return {'ok', text(now), text(revision), {}}
