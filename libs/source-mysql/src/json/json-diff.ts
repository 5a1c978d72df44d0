/**
 * What a partial update says of a JSON column, applied to the document before it.
 * Format: operation (0 replace, 1 insert, 2 remove), length and text of the path, and but for removals length and bytes of the value;
 * packed integers (MySQL, sql-common/json_diff.cc, Json_diff_vector::read_binary; sql/json_diff.h says what each does).
 */
import { ByteReader } from '../binlog/byte-reader.ts';
import { findKey, type JsonNode, openNode, readJsonNode, writeJsonNode } from './json-tree.ts';

const OPERATION = { REPLACE: 0, INSERT: 1, REMOVE: 2 } as const;
/** The server refuses deeper documents. */
const MAX_DEPTH = 100;

type Leg =
  | { readonly kind: 'member'; readonly key: Buffer }
  /** `fromEnd`: counted back from the last element, which is 0. */
  | { readonly kind: 'cell'; readonly index: number; readonly fromEnd: boolean };

interface Diff {
  readonly operation: number;
  readonly path: readonly Leg[];
  readonly value: JsonNode | undefined;
}

/** The document after the update. Throws a RangeError when the diff is damaged or does not fit. */
export function applyJsonDiffs(document: Buffer, diffs: Buffer): Buffer {
  const reader = new ByteReader(diffs, 0, diffs.length);
  let root = readJsonNode(document);
  while (reader.left > 0) {
    const operation = reader.uint(1);
    if (operation > OPERATION.REMOVE) throw new RangeError(`${operation} is no operation on JSON`);
    const path = readPath(reader.text(reader.packed()));
    const value = operation === OPERATION.REMOVE ? undefined : readJsonNode(reader.bytes(reader.packed()));
    root = changed(root, { operation, path, value }, 0);
  }
  return writeJsonNode(root);
}

function changed(node: JsonNode, diff: Diff, depth: number): JsonNode {
  const leg = diff.path[depth];
  if (leg === undefined) {
    if (diff.operation !== OPERATION.REPLACE || diff.value === undefined) throw misfit();
    return diff.value;
  }
  const open = openNode(node);
  const last = depth === diff.path.length - 1;
  if (leg.kind === 'member') {
    if (open.kind !== 'object') throw misfit();
    const found = findKey(open.keys, leg.key);
    if (found >= 0) {
      if (last && diff.operation === OPERATION.REMOVE) {
        open.keys.splice(found, 1);
        open.items.splice(found, 1);
      } else if (last && diff.operation === OPERATION.INSERT) throw misfit();
      else open.items[found] = changed(open.items[found] as JsonNode, diff, depth + 1);
    } else {
      if (!last || diff.operation !== OPERATION.INSERT || diff.value === undefined) throw misfit();
      open.keys.splice(-1 - found, 0, leg.key);
      open.items.splice(-1 - found, 0, diff.value);
    }
    return open;
  }
  if (open.kind !== 'array') throw misfit();
  const { length } = open.items;
  const index = leg.fromEnd ? length - 1 - leg.index : leg.index;
  if (last && diff.operation === OPERATION.INSERT && diff.value !== undefined) {
    // beyond an end is at that end (MySQL, Json_array_index::position)
    open.items.splice(Math.max(0, Math.min(index, length)), 0, diff.value);
    return open;
  }
  if (index < 0 || index >= length) throw misfit();
  if (last && diff.operation === OPERATION.REMOVE) open.items.splice(index, 1);
  else open.items[index] = changed(open.items[index] as JsonNode, diff, depth + 1);
  return open;
}

/** `$.name."quoted name"[3][last][last-2]`: names that are no identifiers are JSON strings. */
function readPath(text: string): Leg[] {
  const legs: Leg[] = [];
  const pattern = /\.(?:"((?:[^"\\]|\\.)*)"|([^.["]+))|\[(?:(\d+)|last(?:-(\d+))?)\]/suy;
  if (!text.startsWith('$')) throw new RangeError('a path into JSON that does not begin at its root');
  pattern.lastIndex = 1;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null || legs.length >= MAX_DEPTH) throw new RangeError('a path into JSON that cannot be read');
    const [, quoted, name, index, back = '0'] = match;
    if (match[0].startsWith('[')) {
      legs.push({ kind: 'cell', index: Number(index ?? back), fromEnd: index === undefined });
    } else
      legs.push({ kind: 'member', key: Buffer.from(quoted === undefined ? (name ?? '') : unquote(quoted), 'utf8') });
  }
  return legs;
}

function unquote(quoted: string): string {
  try {
    return String(JSON.parse(`"${quoted}"`));
  } catch (error) {
    throw new RangeError('a path into JSON that cannot be read', { cause: error });
  }
}

function misfit(): RangeError {
  return new RangeError('a change of JSON does not fit the document before it');
}
