/** Values of key columns, as the log holds them, as literals that the server compares with the column exactly. */
import type { ColumnValue } from '@mysync/core';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { ColumnShape } from '../schema/column-shape.ts';

/**
 * The reader of a key column whose text stays the bytes of its charset: text that was decoded need not become the same bytes again
 * (several byte sequences of a charset may stand for one character), and a row that is not found must surely be gone.
 */
export function rawReader(reader: ColumnReader): ColumnReader {
  return { ...reader, decode: undefined };
}

/** A text's bytes are in the charset of the shape. The session's results and literals do not depend on its sql_mode. */
export function keyLiteral(shape: ColumnShape, value: ColumnValue): string {
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Uint8Array) {
    const introducer = shape.charset === '' || shape.charset === 'binary' ? '' : `_${shape.charset} `;
    return `${introducer}X'${Buffer.from(value.buffer, value.byteOffset, value.length).toString('hex')}'`;
  }
  if (typeof value !== 'string') return numberLiteral(shape, value);
  switch (shape.base) {
    case 'decimal':
      return value;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'uuid':
    case 'inet4':
    case 'inet6':
      // digits, letters and marks of the server's own form
      return `'${value}'`;
    default:
      return `_utf8mb4 X'${Buffer.from(value, 'utf8').toString('hex')}'`;
  }
}

/** With an exponent it is a DOUBLE; a FLOAT is compared as the DOUBLE of the same value. */
function numberLiteral(shape: ColumnShape, value: number | bigint): string {
  const text = String(value);
  if (shape.base !== 'float' && shape.base !== 'double') return text;
  return text.includes('e') ? text : `${text}e0`;
}
