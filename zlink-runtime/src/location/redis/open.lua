-- The epoch of a namespace, drawn now where it has none. ARGV: what to draw.
local state = KEYS[1]
redis.call('HSETNX', state, 'epoch', ARGV[1])
local found = redis.call('HMGET', state, 'epoch', 'revision')
return {found[1], found[2] or '0'}
