/**
 * Digests of stored rows, made where they are stored, so that rows which are right never travel.
 *
 * A value's text is its length, a colon and its bytes, or `-` where there is none; a row's text is `+` or `-` (its companion says that it is
 * there), then its values'. What stands in the way (a key of another type) has the text `!`. A hash that was written in another shape may have
 * fields of that shape left: its text ends with their number, so it never passes for one that is right without a second look. So does that of a
 * key that will expire though its rule has no time to live, with `e`.
 */
import { createHash } from 'node:crypto';
import type { Argument } from './connection.ts';
import type { StoredForm } from './mapper.ts';

/**
 * KEYS: key and companion of each row. ARGV 1: `all` (one digest over all rows), `rows` (per row: digest, how many fields its key has (a string: 1),
 * the companion's first 17 characters) or `fields` (of the first row: its key's type, its milliseconds to live, its string or the digests of the
 * fields, the names of all fields of a hash that was written in another shape); 2: `j` or `h`; 3: the shape; 4: `stays` where the key must not expire,
 * else empty; then the names of the fields.
 */
export const DIGEST_SCRIPT = `
local level, kind, shape, stays, names = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == 'stays', {}
for n = 5, #ARGV do names[n - 4] = ARGV[n] end
local function text(value) return value and #value .. ':' .. value or '-' end
local function read(key)
  if kind == 'j' then
    local value = redis.pcall('GET', key)
    if type(value) == 'table' and value.err then return nil end
    return {value}
  end
  local values = {}
  for from = 1, #names, 4000 do
    local part = redis.pcall('HMGET', key, unpack(names, from, math.min(from + 3999, #names)))
    if part.err then return nil end
    for _, value in ipairs(part) do values[#values + 1] = value end
  end
  return values
end
if level == 'fields' then
  local key, digests = KEYS[1], {}
  local found = redis.call('TYPE', key).ok
  local fits = found == (kind == 'j' and 'string' or 'hash')
  if fits then
    for n, value in ipairs(read(key)) do digests[n] = kind == 'j' and value or redis.sha1hex(text(value)) end
  end
  local companion = redis.pcall('GET', KEYS[2])
  local alike = type(companion) == 'string' and string.sub(companion, 18, 25) == shape
  return {found, redis.call('PTTL', key), digests, fits and kind == 'h' and not alike and redis.call('HKEYS', key) or {}}
end
local function size(key)
  local fields = redis.pcall('HLEN', key)
  return type(fields) == 'number' and fields or redis.call('EXISTS', key)
end
local found = {}
for at = 1, #KEYS, 2 do
  local companion = redis.pcall('GET', KEYS[at + 1])
  if type(companion) == 'table' then companion = '' end
  companion = companion or ''
  local alike = string.sub(companion, 18, 25) == shape
  companion = string.sub(companion, 1, 17)
  local values = read(KEYS[at])
  local parts = {string.sub(companion, 17) == '+' and '+' or '-'}
  if values then for _, value in ipairs(values) do parts[#parts + 1] = text(value) end else parts[2] = '!' end
  if kind == 'h' and not alike then parts[#parts + 1] = 'n' .. size(KEYS[at]) end
  if stays and redis.call('PTTL', KEYS[at]) >= 0 then parts[#parts + 1] = 'e' end
  local row = redis.sha1hex(table.concat(parts))
  found[#found + 1] = row
  if level == 'rows' then
    found[#found + 1] = size(KEYS[at])
    found[#found + 1] = companion
  end
end
if level == 'all' then return redis.sha1hex(table.concat(found)) end
return found
`;

/**
 * KEYS: a row's key and its companion. Gives the companion where something stands at the key, else nothing: both at one moment, so a row that comes
 * back is never taken for one that somebody put behind its tombstone.
 */
export const STANDING_SCRIPT = `
local record = redis.pcall('GET', KEYS[2])
if type(record) == 'string' and redis.call('EXISTS', KEYS[1]) == 1 then return record end
return false
`;

/** What the script says of a row that is there as it should be, and of each of its fields. */
export function rowDigest(form: StoredForm): string {
  const hash = createHash('sha1').update('+');
  for (const value of valuesOf(form)) addText(hash, value);
  return hash.digest('hex');
}

export function fieldDigests(form: StoredForm): readonly string[] {
  return valuesOf(form).map((value) => {
    const hash = createHash('sha1');
    addText(hash, value);
    return hash.digest('hex');
  });
}

/** Of the digests of rows, in order. */
export function digestOfAll(digests: readonly string[]): string {
  return createHash('sha1').update(digests.join('')).digest('hex');
}

function valuesOf(form: StoredForm): readonly (Argument | null)[] {
  return form.kind === 'string' ? [form.text] : form.fields.map(([, value]) => value);
}

function addText(hash: ReturnType<typeof createHash>, value: Argument | null): void {
  if (value === null) {
    hash.update('-');
    return;
  }
  hash.update(`${typeof value === 'string' ? Buffer.byteLength(value) : value.length}:`).update(value);
}
