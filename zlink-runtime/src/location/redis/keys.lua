-- Before every script on records that writes. A namespace is five keys of one slot, each of its type:
--   state    hash: `epoch`, drawn when the namespace was made; `revision`, of the last batch
--   records  hash: key to `revision:expiry:value`, both numbers in decimals, the expiry empty where there is none
--   order    sorted set of the keys, all of one score, so in the order of their bytes
--   expiry   sorted set of the keys that expire, by milliseconds
--   batches  sorted set of the revisions of the last batches
-- Redis takes nothing of a script back: a key that is something else must be found before anything is written.
for at, wanted in ipairs({'hash', 'hash', 'zset', 'zset', 'zset'}) do
  local found = redis.call('TYPE', KEYS[at]).ok
  if found ~= 'none' and found ~= wanted then
    return redis.error_reply('WRONGTYPE ' .. KEYS[at] .. ' is a ' .. found)
  end
end
