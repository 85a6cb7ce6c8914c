-- One blob: a hash of its `bytes` and its `expiry` in milliseconds, which the server itself removes after that.
-- KEYS: the blob. ARGV: what to do, the time that the asker has seen, then milliseconds it stays, then its bytes.
-- An answer is {word, time, expiry, bytes or nothing}.
local blob, act = KEYS[1], ARGV[1]

local function text(number)
  return string.format('%.0f', number)
end

local clock = redis.call('TIME')
local now = math.max(math.floor((tonumber(clock[1]) * 1000000 + tonumber(clock[2])) / 1000), tonumber(ARGV[2]))
local kept = tonumber(redis.call('HGET', blob, 'expiry') or '0')
local there = kept > now

local function stay()
  local ends = now + tonumber(ARGV[3])
  if there then
    ends = math.max(ends, kept)
  end
  redis.call('HSET', blob, 'expiry', text(ends))
  redis.call('PEXPIREAT', blob, text(ends))
  return text(ends)
end

if act == 'get' then
  return {there and 'ok' or 'missing', text(now), text(kept), there and redis.call('HGET', blob, 'bytes') or ''}
elseif act == 'delete' then
  redis.call('UNLINK', blob)
  return {'ok', text(now), '0', ''}
elseif act == 'renew' then
  return {there and 'ok' or 'missing', text(now), there and stay() or '0', ''}
elseif not there then
  redis.call('HSET', blob, 'bytes', ARGV[4])
  return {'stored', text(now), stay(), ''}
elseif redis.call('HGET', blob, 'bytes') == ARGV[4] then
  return {'already', text(now), stay(), ''}
end
return {'conflict', text(now), text(kept), ''}
