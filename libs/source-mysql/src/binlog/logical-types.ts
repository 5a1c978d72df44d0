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

/** The order of the log is that of the text, whatever the table's files hold (seen on 10.11 with versions 1, 4 and 7). */
function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

/** The longest run of zero groups (also a single one) becomes `::`, the first of equals; an IPv4 address at the end is in dots. */
function inet6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2));
  let best = -1;
  let bestLength = 0;
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
