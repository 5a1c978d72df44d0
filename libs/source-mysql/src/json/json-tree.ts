/**
 * MySQL's binary JSON as a tree that can be changed and written again. Only what lies on the way to a change is taken apart: offsets count
 * from their container's start, so a whole container can be copied as bytes.
 * Format: MySQL, sql-common/json_binary.h.
 */
import { KIND } from './binary-json.ts';

const MOST_SMALL_BYTES = 0xffff;
const NULL_LITERAL = Buffer.from([0]);

/** A value whose inside does not matter. */
interface Raw {
  readonly kind: 'raw';
  readonly type: number;
  readonly bytes: Buffer;
}

export interface JsonArray {
  readonly kind: 'array';
  readonly items: JsonNode[];
}

export interface JsonObject {
  readonly kind: 'object';
  /** In the order of the format: shorter keys first, then by bytes. */
  readonly keys: Buffer[];
  readonly items: JsonNode[];
}

export type JsonNode = Raw | JsonArray | JsonObject;

/** A document; no bytes at all are the literal null. Throws a RangeError when it is damaged. */
export function readJsonNode(document: Buffer): JsonNode {
  const type = document[0];
  if (type === undefined) return { kind: 'raw', type: KIND.LITERAL, bytes: NULL_LITERAL };
  return rawAt(document, type, 1);
}

/** Takes a container apart; every other value stays what it is. */
export function openNode(node: JsonNode): JsonNode {
  if (node.kind !== 'raw' || node.type > KIND.LARGE_ARRAY) return node;
  const { bytes } = node;
  const width = node.type === KIND.SMALL_OBJECT || node.type === KIND.SMALL_ARRAY ? 2 : 4;
  const isObject = node.type <= KIND.LARGE_OBJECT;
  const count = uintAt(bytes, 0, width);
  const keyEntry = isObject ? width + 2 : 0;
  const keysAt = 2 * width;
  const valuesAt = keysAt + count * keyEntry;
  if (valuesAt + count * (1 + width) > bytes.length) throw outside();
  const keys: Buffer[] = [];
  const items: JsonNode[] = [];
  for (let i = 0; i < count; i += 1) {
    if (isObject) {
      const from = uintAt(bytes, keysAt + i * keyEntry, width);
      keys.push(piece(bytes, from, uintAt(bytes, keysAt + i * keyEntry + width, 2)));
    }
    const entry = valuesAt + i * (1 + width);
    const type = bytes[entry] as number;
    const inline = inlineBytes(type, width);
    items.push(
      inline > 0
        ? { kind: 'raw', type, bytes: piece(bytes, entry + 1, inline) }
        : rawAt(bytes, type, uintAt(bytes, entry + 1, width)),
    );
  }
  return isObject ? { kind: 'object', keys, items } : { kind: 'array', items };
}

/** The place of a key among the keys; a negative one, `-1 - place`, when it is not there. */
export function findKey(keys: readonly Buffer[], key: Buffer): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const order = compareKeys(keys[middle] as Buffer, key);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return -1 - low;
}

export function writeJsonNode(node: JsonNode): Buffer {
  const { type, bytes } = written(node);
  return Buffer.concat([Buffer.from([type]), bytes]);
}

function written(node: JsonNode): Raw {
  if (node.kind === 'raw') return node;
  const items = node.items.map(written);
  const keys = node.kind === 'object' ? node.keys : [];
  return (
    container(node.kind === 'object', keys, items, 2) ?? (container(node.kind === 'object', keys, items, 4) as Raw)
  );
}

/** undefined when it is too large for offsets of this width. */
function container(isObject: boolean, keys: readonly Buffer[], items: readonly Raw[], width: 2 | 4): Raw | undefined {
  const keyEntry = isObject ? width + 2 : 0;
  const valuesAt = 2 * width + items.length * keyEntry;
  const dataAt = valuesAt + items.length * (1 + width);
  const keyBytes = keys.reduce((sum, key) => sum + key.length, 0);
  const data = items.reduce((sum, item) => sum + (inlineBytes(item.type, width) > 0 ? 0 : item.bytes.length), keyBytes);
  const size = dataAt + data;
  if (width === 2 && (size > MOST_SMALL_BYTES || items.length > MOST_SMALL_BYTES)) return undefined;
  const bytes = Buffer.alloc(size);
  bytes.writeUIntLE(items.length, 0, width);
  bytes.writeUIntLE(size, width, width);
  let at = dataAt;
  for (const [i, key] of keys.entries()) {
    bytes.writeUIntLE(at, 2 * width + i * keyEntry, width);
    bytes.writeUInt16LE(key.length, 2 * width + i * keyEntry + width);
    at += key.copy(bytes, at);
  }
  for (const [i, item] of items.entries()) {
    const entry = valuesAt + i * (1 + width);
    bytes[entry] = item.type;
    if (inlineBytes(item.type, width) > 0) item.bytes.copy(bytes, entry + 1);
    else {
      bytes.writeUIntLE(at, entry + 1, width);
      at += item.bytes.copy(bytes, at);
    }
  }
  const small = isObject ? KIND.SMALL_OBJECT : KIND.SMALL_ARRAY;
  return { kind: 'raw', type: width === 2 ? small : small + 1, bytes };
}

function rawAt(bytes: Buffer, type: number, at: number): Raw {
  return { kind: 'raw', type, bytes: piece(bytes, at, sizeAt(bytes, type, at)) };
}

function sizeAt(bytes: Buffer, type: number, at: number): number {
  switch (type) {
    case KIND.SMALL_OBJECT:
    case KIND.SMALL_ARRAY:
      return uintAt(bytes, at + 2, 2);
    case KIND.LARGE_OBJECT:
    case KIND.LARGE_ARRAY:
      return uintAt(bytes, at + 4, 4);
    case KIND.LITERAL:
      return 1;
    case KIND.INT16:
    case KIND.UINT16:
      return 2;
    case KIND.INT32:
    case KIND.UINT32:
      return 4;
    case KIND.INT64:
    case KIND.UINT64:
    case KIND.DOUBLE:
      return 8;
    case KIND.STRING:
      return lengthAt(bytes, at);
    case KIND.OPAQUE:
      return 1 + lengthAt(bytes, at + 1);
    default:
      throw new RangeError(`${type} is no kind of JSON value`);
  }
}

/** Of a length in groups of seven bits and what follows: the bytes of both. */
function lengthAt(bytes: Buffer, at: number): number {
  let length = 0;
  for (let i = 0; i < 5; i += 1) {
    const byte = uintAt(bytes, at + i, 1);
    length += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return i + 1 + length;
  }
  throw new RangeError('a JSON length has more than five bytes');
}

/** Bytes of a value that stands in its entry; 0 for those that stand behind. */
function inlineBytes(type: number, width: 2 | 4): number {
  if (type === KIND.LITERAL) return 1;
  if (type === KIND.INT16 || type === KIND.UINT16) return 2;
  return width === 4 && (type === KIND.INT32 || type === KIND.UINT32) ? 4 : 0;
}

function compareKeys(a: Buffer, b: Buffer): number {
  return a.length === b.length ? Buffer.compare(a, b) : a.length - b.length;
}

function uintAt(bytes: Buffer, at: number, width: 1 | 2 | 4): number {
  if (at < 0 || at + width > bytes.length) throw outside();
  return bytes.readUIntLE(at, width);
}

function piece(bytes: Buffer, at: number, length: number): Buffer {
  if (at < 0 || at + length > bytes.length) throw outside();
  return bytes.subarray(at, at + length);
}

function outside(): RangeError {
  return new RangeError('a JSON value lies outside its document');
}
