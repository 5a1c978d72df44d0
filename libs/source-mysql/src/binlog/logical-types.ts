/** MariaDB's types that are BINARY in the log, to the text that SELECT prints. */

export function logicalText(base: string, bytes: Buffer): string {
  switch (base) {
    case 'uuid':
      return uuidText(bytes);
    case 'inet4':
      return Array.from(bytes.subarray(0, 4)).join('.');
    case 'inet6':
      return inet6Text(bytes);
    default:
      throw new RangeError(`${base} is no type of 16 or 4 bytes`);
  }
}

/**
 * A UUID is stored with its groups in reverse, so that those of version 1 sort by time, unless its version is 6 or higher
 * (MariaDB, plugin/type_uuid/sql_type_uuid.h): which of both, the bytes of the stored form tell.
 */
function uuidText(stored: Buffer): string {
  const hex = stored.toString('hex');
  const groups = isStoredSwapped(stored)
    ? [hex.slice(24, 32), hex.slice(20, 24), hex.slice(16, 20), hex.slice(12, 16), hex.slice(0, 12)]
    : [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)];
  return groups.join('-');
}

function isStoredSwapped(stored: Buffer): boolean {
  // not swapped: version (high half of byte 6) 6 to 15 and the variant's first bit (byte 8) set
  return !((stored[6] as number) >= 0x60 && (stored[8] as number) >= 0x80);
}

/** As inet_ntop prints: the longest run of two or more zero groups becomes `::`, the first of equals; IPv4 at the end in dots. */
function inet6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2));
  let best = -1;
  let bestLength = 1;
  for (let i = 0; i < 8; i += 1) {
    let length = 0;
    while (i + length < 8 && groups[i + length] === 0) length += 1;
    if (length > bestLength) {
      best = i;
      bestLength = length;
    }
    i += length;
  }
  const mapped = best === 0 && (bestLength === 6 || (bestLength === 5 && groups[5] === 0xffff));
  let text = '';
  for (let i = 0; i < 8; i += 1) {
    if (i === best) {
      text += i === 0 ? '::' : ':';
      i += bestLength - 1;
      continue;
    }
    if (mapped && i === 6) return text + Array.from(bytes.subarray(12)).join('.');
    text += (groups[i] as number).toString(16);
    if (i < 7) text += ':';
  }
  return text;
}
