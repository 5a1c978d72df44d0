/** Messages as proto/mysync/v1/message.proto and docs/spec/message.md define them, put together by hand. */

export interface MessageParts {
  readonly epoch: number;
  readonly generation?: number;
  readonly base?: number;
  readonly sequence: number;
  readonly operation: number;
  /** Where its transaction begins; '': it names no transaction. */
  readonly file: string;
  readonly offset: number;
}

export function changeMessage({ epoch, generation = 0, base = 0, sequence, operation, file, offset }: MessageParts) {
  const delivery = Buffer.alloc(39);
  delivery.write('0a250d', 0, 'hex');
  delivery.writeUInt32LE(epoch, 3);
  delivery[7] = 0x15;
  delivery.writeUInt32LE(generation, 8);
  delivery[12] = 0x19;
  delivery.writeBigUInt64LE(BigInt(base), 13);
  delivery[21] = 0x21;
  delivery.writeBigUInt64LE(BigInt(sequence), 22);
  delivery[30] = 0x29;
  const transaction = [
    ...block(1, Buffer.from('shop')),
    ...block(3, Buffer.from('0-1-77')),
    ...block(4, Buffer.from(file)),
    ...number(5, offset),
    ...number(6, 1_796_000_000_000_000),
  ];
  const source = [...(file === '' ? [] : block(1, Buffer.from(transaction))), ...number(2, 999), ...number(4, 3)];
  // then a row of one value, and the end
  const rest = [...block(6, Buffer.from([0x0a, 2, 0x10, 2])), 0x78, 1];
  return Buffer.from([...delivery, ...number(2, operation), ...block(3, Buffer.from(source)), ...rest]);
}

function block(field: number, bytes: Uint8Array): number[] {
  return [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
}

function number(field: number, value: number): number[] {
  return [...varint(field * 8), ...varint(value)];
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return [...bytes, left];
}
