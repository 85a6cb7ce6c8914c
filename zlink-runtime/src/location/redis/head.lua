-- Before every script on records, whose five keys `keys.lua` tells.
-- ARGV begins with the epoch, the revision and the time that the asker has seen.
-- An answer is {word, time, last revision, the rest}.
local state, records, order, expiry, batches = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- Numbers stay below 2^53, where they are exact.
local function text(number)
  return string.format('%.0f', number)
end

local clock = redis.call('TIME')
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local now = math.max(math.floor(micros / 1000), tonumber(ARGV[3]))

local found = redis.call('HMGET', state, 'epoch', 'revision')
local last = tonumber(found[2] or '0')
local seen = tonumber(ARGV[2])

-- Whether a batch that was seen is none of this server's: others may have written since it was lost. Of one before the
-- oldest that is remembered nobody knows.
local function forgot()
  if seen == 0 or seen >= last or redis.call('ZSCORE', batches, ARGV[2]) then
    return seen > last
  end
  local oldest = redis.call('ZRANGE', batches, 0, 0)[1]
  return oldest and tonumber(oldest) < seen
end

if found[1] ~= ARGV[1] or forgot() then
  return {'lost', text(now), text(last), {}}
end

-- The revision of a value that has not expired, else false.
local function version(stored)
  if not stored then
    return false
  end
  local revision, ends = string.match(stored, '^(%d+):(%d*):')
  return (ends == '' or tonumber(ends) > now) and revision
end
