-- The epoch of a namespace, drawn now where it has none. KEYS: state. ARGV: what to draw.
redis.call('HSETNX', KEYS[1], 'epoch', ARGV[1])
local found = redis.call('HMGET', KEYS[1], 'epoch', 'revision')
return {found[1], found[2] or '0'}
