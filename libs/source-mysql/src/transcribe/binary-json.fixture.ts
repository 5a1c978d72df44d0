/** For tests: writes MySQL's binary JSON, from the format's description (MySQL, sql-common/json_binary.h), in small and in large containers. */

export type JsonPart =
  | { readonly kind: 'literal'; readonly code: number }
  | { readonly kind: 'int16' | 'uint16' | 'int32' | 'uint32'; readonly value: number }
  | { readonly kind: 'int64' | 'uint64'; readonly value: bigint }
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'string'; readonly bytes: Uint8Array }
  | { readonly kind: 'opaque'; readonly type: number; readonly bytes: Uint8Array }
  | { readonly kind: 'array'; readonly large: boolean; readonly items: readonly JsonPart[] }
  | {
      readonly kind: 'object';
      readonly large: boolean;
      readonly members: readonly (readonly [Uint8Array, JsonPart])[];
    };

const CODES = {
  literal: 4,
  int16: 5,
  uint16: 6,
  int32: 7,
  uint32: 8,
  int64: 9,
  uint64: 10,
  double: 11,
  string: 12,
  opaque: 15,
} as const;

export function binaryJson(part: JsonPart): Buffer {
  return Buffer.concat([Buffer.of(codeOf(part)), body(part)]);
}

function codeOf(part: JsonPart): number {
  if (part.kind === 'object') return part.large ? 1 : 0;
  if (part.kind === 'array') return part.large ? 3 : 2;
  return CODES[part.kind];
}

function number(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  if (value < 0) buffer.writeIntLE(value, 0, bytes);
  else buffer.writeUIntLE(value, 0, bytes);
  return buffer;
}

function withLength(bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>= 7) {
    if (rest < 0x80) {
      length.push(rest);
      return Buffer.concat([Buffer.from(length), bytes]);
    }
    length.push((rest & 0x7f) | 0x80);
  }
}

function body(part: JsonPart): Buffer {
  switch (part.kind) {
    case 'literal':
      return Buffer.of(part.code);
    case 'int16':
    case 'uint16':
      return number(part.value, 2);
    case 'int32':
    case 'uint32':
      return number(part.value, 4);
    case 'int64':
    case 'uint64': {
      const buffer = Buffer.alloc(8);
      buffer.writeBigUInt64LE(BigInt.asUintN(64, part.value));
      return buffer;
    }
    case 'double': {
      const buffer = Buffer.alloc(8);
      buffer.writeDoubleLE(part.value);
      return buffer;
    }
    case 'string':
      return withLength(part.bytes);
    case 'opaque':
      return Buffer.concat([Buffer.of(part.type), withLength(part.bytes)]);
    case 'array':
      return container(part.large, undefined, part.items);
    case 'object':
      return container(
        part.large,
        part.members.map(([key]) => key),
        part.members.map(([, value]) => value),
      );
  }
}

function isInline(part: JsonPart, large: boolean): boolean {
  if (part.kind === 'literal' || part.kind === 'int16' || part.kind === 'uint16') return true;
  return large && (part.kind === 'int32' || part.kind === 'uint32');
}

function container(large: boolean, keys: readonly Uint8Array[] | undefined, values: readonly JsonPart[]): Buffer {
  const width = large ? 4 : 2;
  const heads = 2 * width + (keys?.length ?? 0) * (width + 2) + values.length * (1 + width);
  const keyHeads: Buffer[] = [];
  const valueHeads: Buffer[] = [];
  const data: Uint8Array[] = [];
  let at = heads;
  for (const key of keys ?? []) {
    keyHeads.push(number(at, width), number(key.length, 2));
    data.push(key);
    at += key.length;
  }
  for (const value of values) {
    const bytes = body(value);
    if (isInline(value, large)) {
      valueHeads.push(Buffer.of(codeOf(value)), Buffer.concat([bytes, Buffer.alloc(width)]).subarray(0, width));
      continue;
    }
    valueHeads.push(Buffer.of(codeOf(value)), number(at, width));
    data.push(bytes);
    at += bytes.length;
  }
  return Buffer.concat([number(values.length, width), number(at, width), ...keyHeads, ...valueHeads, ...data]);
}
