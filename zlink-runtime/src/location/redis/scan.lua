-- ARGV goes on with the range of keys, and the most records and bytes of a page. The rest of the answer: where the next
-- page begins, or an empty text; then keys and values in turn.
local low, high, limit, room = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
-- Keys that one call looks at, of which any number may have expired.
local looks = 4096
local page, reached, more = {''}, '', false
while not more do
  local keys = redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 256)
  for _, key in ipairs(keys) do
    local stored = redis.call('HGET', records, key)
    if version(stored) then
      room = room - #key - #stored
      -- The first always fits: it is a quarter of a page at most.
      if #page > 1 and (#page > 2 * limit or room < 0) then
        more = true
        break
      end
      page[#page + 1] = key
      page[#page + 1] = stored
    end
    looks = looks - 1
    reached = key
    if looks == 0 then
      more = true
      break
    end
  end
  if #keys < 256 then
    break
  end
  low = '(' .. reached
end
if more then
  page[1] = reached
end
return {'ok', text(now), text(last), page}
