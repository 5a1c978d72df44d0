/**
 * The scripts. A script is atomic, so a reader never sees a row half written or missing; it is not rolled back, so everything
 * that can fail is looked at before a row's first write.
 *
 * Companion of a row, beside its key: 16 hex digits of version, `+` (there) or `-` (deleted), 8 hex digits of the
 * shape it was written in, 12 hex digits of stream and table; then, if the rule has indexes, the memberships as MessagePack.
 *
 * Marker: a hash of `m`, the text, and `p`, the last chunk of a batch that was applied whole: a chunk is applied only
 * behind the one before it, so chunks can be sent without waiting, and a refusal keeps those behind it from moving the marker.
 */
import { createHash } from 'node:crypto';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/**
 * ARGV 1–5: `c` when KEYS[1] is the marker, else empty (`r`: a repair, which writes over a record of its own version, too, and takes away a time to live that its rule does not give); the marker expected (`+text`, or `-` for none); the chunk
 * that must be applied before, or empty; the name of this chunk; the next marker (`+text`), or `-` when it does not move.
 */
const PRELUDE = `
local call, pcall, sub = redis.call, redis.pcall, string.sub
local K, A = KEYS, ARGV
if A[1] == 'c' then
  local stored = pcall('HMGET', K[1], 'm', 'p')
  if stored.err then return {'no-marker', stored.err} end
  if (stored[1] and '+' .. stored[1] or '-') ~= A[2] then return {'moved', stored[1] or '', stored[1] and 1 or 0} end
  if A[3] ~= '' and stored[2] ~= A[3] then return {'behind'} end
end
local function finish()
  if A[1] ~= 'c' then return end
  if A[5] ~= '-' then call('HSET', K[1], 'm', sub(A[5], 2), 'p', '') elseif A[4] ~= '' then call('HSET', K[1], 'p', A[4]) end
end
local function typeof(key) return call('TYPE', key).ok end
-- Whether what stands at a companion's key is one. Somebody else's value there says nothing of the row.
local function isversion(value)
  local mark = type(value) == 'string' and #value > 36 and string.byte(value, 17)
  return mark == 43 or mark == 45
end
local function memberships(record) return #record > 37 and cmsgpack.unpack(sub(record, 38)) or {} end
local function leave(entry)
  if entry[2] == 's' then call('SREM', entry[3], entry[4]) else call('ZREM', entry[3], entry[4]) end
end
local function misfit(entries)
  for _, entry in ipairs(entries) do
    local found = typeof(entry[3])
    if found ~= 'none' and found ~= (entry[2] == 's' and 'set' or 'zset') then return entry[3] .. ' holds a ' .. found end
  end
end
`;

/**
 * ARGV 6: how many rows; 7: seconds that deletions are kept; then the rows. KEYS from 2: key and companion of each. Rows:
 * - `f` n field …, before a row: the names of the fields of the `h` rows from here on
 * - `h` record value …: a whole row as hash without NULLs, time to live, or indexes: the common case, kept cheap
 * - `j` record text: the same as JSON
 * - `d` record: a delete
 * - `g` record kind partial ttl n (field value …) m (field that is NULL …) k (id kind key member score …): any put
 */
export const applyScript = script(`${PRELUDE}
local keep = A[7]
local refused, stale = {}, 0
local i, k = 8, 2
local function refuse(row, why) refused[#refused + 1] = row; refused[#refused + 1] = why end
local function hset(key, first, last)
  while first <= last do
    local to = last - first > 6000 and first + 5999 or last
    call('HSET', key, unpack(A, first, to))
    first = to + 1
  end
end
-- What stands in the way of a row of this kind at its key, or nil; and the type found there.
local function blocked(key, old, record, kind)
  local found = typeof(key)
  if found == 'none' or found == kind then return nil, found end
  local ours = old and sub(old, 17, 17) == '+' and sub(old, 18, 25) ~= sub(record, 18, 25)
  if ours and (found == 'hash' or found == 'string') then return nil, found end
  return 'the key holds a ' .. found, found
end
-- Makes room for a whole row that does not simply go over what is there. Returns what stands in the way, or nil.
local function room(key, old, record, kind)
  local entries = old and memberships(old) or {}
  local why, found = blocked(key, old, record, kind)
  why = why or misfit(entries)
  if why then return why end
  for _, entry in ipairs(entries) do leave(entry) end
  if found ~= 'none' then call('DEL', key) end
end
local function delete(row, key, companion, old, record)
  local found = typeof(key)
  if found ~= 'none' and found ~= 'hash' and found ~= 'string' then return refuse(row, 'the key holds a ' .. found) end
  local entries = old and memberships(old) or {}
  local why = misfit(entries)
  if why then return refuse(row, why) end
  if found ~= 'none' then call('DEL', key) end
  for _, entry in ipairs(entries) do leave(entry) end
  call('SET', companion, record, 'EX', keep)
end
local function put(row, key, companion, old, record)
  local kind, partial, ttl = A[i + 2], A[i + 3] == '1', A[i + 4]
  local fields = i + 6
  local nulls = fields + A[i + 5] + 1
  local entries = nulls + A[nulls - 1] + 1
  local count = tonumber(A[entries - 1])
  i = entries + count * 5
  local there = old and sub(old, 17, 17) == '+'
  local before, next, had, joins = old and memberships(old) or {}, {}, {}, {}
  for _, entry in ipairs(before) do had[entry[1]] = entry end
  for e = entries, i - 1, 5 do
    local was = had[A[e]]
    if A[e + 1] == 'k' then
      if was then next[#next + 1] = was; had[A[e]] = nil end
    else
      local entry = {A[e], A[e + 1], A[e + 2], A[e + 3], A[e + 4]}
      next[#next + 1] = entry
      if was and was[2] == entry[2] and was[3] == entry[3] and was[4] == entry[4] then
        had[A[e]] = nil
        if was[5] ~= entry[5] then joins[#joins + 1] = entry end
      else joins[#joins + 1] = entry end
    end
  end
  local why = misfit(before) or misfit(joins)
  if why then return refuse(row, why) end
  if kind == 'j' then
    why = blocked(key, old, record, 'string')
    if why then return refuse(row, why) end
    call('SET', key, A[fields])
  else
    local same = there and sub(old, 18, 25) == sub(record, 18, 25)
    if partial or same then
      local found = typeof(key)
      if found ~= 'none' and found ~= 'hash' then return refuse(row, 'the key holds a ' .. found) end
      for n = nulls, entries - 2 do call('HDEL', key, A[n]) end
      if not same then record = sub(record, 1, 17) .. (there and sub(old, 18, 25) or '--------') .. sub(record, 26) end
    else
      local found
      why, found = blocked(key, old, record, 'hash')
      if why then return refuse(row, why) end
      if found ~= 'none' then call('DEL', key) end
    end
    hset(key, fields, nulls - 2)
  end
  for _, entry in pairs(had) do leave(entry) end
  for _, entry in ipairs(joins) do
    if entry[2] == 's' then call('SADD', entry[3], entry[4]) else call('ZADD', entry[3], entry[5], entry[4]) end
  end
  if #next > 0 then record = record .. cmsgpack.pack(next) end
  if ttl == '' then
    if A[1] == 'r' then call('PERSIST', key) end
    call('SET', companion, record)
  else
    call('EXPIRE', key, ttl)
    call('SET', companion, record, 'EX', ttl + keep)
  end
end
local fields, width = {}, 0
for row = 1, tonumber(A[6]) do
  if A[i] == 'f' then
    width = tonumber(A[i + 1])
    for n = 1, width do fields[2 * n - 1] = A[i + 1 + n] end
    i = i + 2 + width
  end
  local op, record, key, companion = A[i], A[i + 1], K[k], K[k + 1]
  k = k + 2
  local old = pcall('GET', companion)
  local newer = not old
  if isversion(old) then
    newer = sub(old, 1, 16) < sub(record, 1, 16)
    if not newer then
      if sub(old, 1, 16) == sub(record, 1, 16) then newer = A[1] == 'r' else stale = stale + 1 end
    end
  elseif old then
    local found = typeof(companion)
    refuse(row, 'its version key ' .. companion .. ' holds ' .. (found == 'string' and 'something else than a version' or 'a ' .. found))
  end
  if op == 'h' then
    if newer then
      local why
      if not old or sub(old, 17, 25) ~= sub(record, 17, 25) or #old > 37 then why = room(key, old, record, 'hash') end
      if not why then
        for n = 1, width do fields[2 * n] = A[i + 1 + n] end
        local done = pcall('HSET', key, unpack(fields, 1, 2 * width))
        if type(done) == 'table' then
          if not string.find(done.err, 'WRONGTYPE', 1, true) then return done end
          why = 'the key holds no hash'
        end
      end
      if why then refuse(row, why) else
        if A[1] == 'r' then call('PERSIST', key) end
        call('SET', companion, record)
      end
    end
    i = i + 2 + width
  elseif op == 'j' then
    if newer then
      local why
      if old and (#old > 37 or sub(old, 17, 25) ~= sub(record, 17, 25)) then why = room(key, old, record, 'string') end
      if not why then
        local done = pcall('SET', key, A[i + 2], 'GET')
        if type(done) == 'table' and done.err then
          if not string.find(done.err, 'WRONGTYPE', 1, true) then return done end
          why = 'the key holds no string'
        end
      end
      if why then refuse(row, why) else call('SET', companion, record) end
    end
    i = i + 3
  elseif op == 'd' then
    if newer then delete(row, key, companion, old, record) end
    i = i + 2
  elseif newer then
    put(row, key, companion, old, record)
  else
    local nulls = i + 7 + A[i + 5]
    local entries = nulls + A[nulls - 1] + 1
    i = entries + A[entries - 1] * 5
  end
end
if #refused > 0 then return {'refused', stale, unpack(refused)} end
finish()
return {'ok', stale}
`);

/**
 * ARGV 6: how many rows; 7: seconds that deletions are kept; 8: stream and table; 9: version, 16 hex digits. KEYS from 2:
 * key and companion of each row that may have to go. What others have put in the place of a row, of its companion or of an index stays: the row is
 * not there any more.
 */
export const clearScript = script(`${PRELUDE}
local id, version = A[8], A[9]
for row = 1, tonumber(A[6]) do
  local key, companion = K[row * 2], K[row * 2 + 1]
  local old = pcall('GET', companion)
  if isversion(old) and sub(old, 26, 37) == id and sub(old, 17, 17) == '+' and sub(old, 1, 16) < version then
    local found = typeof(key)
    if found == 'hash' or found == 'string' then call('DEL', key) end
    for _, entry in ipairs(memberships(old)) do
      if not misfit({entry}) then leave(entry) end
    end
    call('SET', companion, version .. '-' .. sub(old, 18, 37), 'EX', A[7])
  end
end
finish()
return {'ok', 0}
`);

/**
 * One copy of a cluster's marker. ARGV: the text expected (`+text`, or `-` for none); the next (`-`: remove the copy); counter;
 * slots; losses. 1: it is the next now.
 */
export const markerScript = script(`
local stored = redis.call('HGET', KEYS[1], 'm')
stored = stored and '+' .. stored or '-'
if stored ~= ARGV[1] and stored ~= ARGV[2] then return 0 end
if ARGV[2] == '-' then redis.call('DEL', KEYS[1])
else redis.call('HSET', KEYS[1], 'm', string.sub(ARGV[2], 2), 'c', ARGV[3], 's', ARGV[4], 'l', ARGV[5]) end
return 1
`);
