/**
 * Hash slots of Redis Cluster: CRC16 (XMODEM) of the key, or of what stands between its first `{` and the next `}` when
 * that is not empty, modulo 16384 (Redis cluster specification, "Hash tags").
 */
export const SLOTS = 16_384;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

export function keySlot(key: string): number {
  const open = key.indexOf('{');
  if (open >= 0) {
    const close = key.indexOf('}', open + 1);
    if (close > open + 1) return crc16(key, open + 1, close) % SLOTS;
  }
  return crc16(key, 0, key.length) % SLOTS;
}

function crc16(text: string, from: number, to: number): number {
  let crc = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return crc16Bytes(Buffer.from(text.slice(from, to)));
    crc = step(crc, code);
  }
  return crc;
}

function crc16Bytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = step(crc, byte);
  return crc;
}

function step(crc: number, byte: number): number {
  return ((crc << 8) ^ (TABLE[(crc >> 8) ^ byte] ?? 0)) & 0xffff;
}

let tags: readonly string[] | undefined;

/** A short text without braces that hashes to the slot; the same in every process. */
export function slotTag(slot: number): string {
  tags ??= makeTags();
  return tags[slot] ?? '';
}

function makeTags(): readonly string[] {
  const found = new Array<string>(SLOTS).fill('');
  for (let number = 0, missing = SLOTS; missing > 0; number++) {
    const text = number.toString(36);
    const slot = keySlot(text);
    if (found[slot] !== '') continue;
    found[slot] = text;
    missing--;
  }
  return found;
}
