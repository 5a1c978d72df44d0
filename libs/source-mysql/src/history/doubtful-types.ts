/** Types that a table map does not tell, however much metadata it has: MariaDB's UUID, INET4 and INET6 look there like BINARY(16) and BINARY(4). */
import { formatTableRef, type TableRef } from '@mysync/core';
import { TYPE } from '../binlog/column-types.ts';
import type { TableMapColumn } from '../binlog/table-map.ts';
import { BINARY_COLLATION } from '../schema/from-table-map.ts';
import type { TableDefinition } from './definition.ts';

/** Bytes of a value in the log. */
export const LOGICAL_BYTES = { uuid: 16, inet4: 4, inet6: 16 } as const;

export type LogicalType = keyof typeof LOGICAL_BYTES;

export type LogicalTypes = ReadonlyMap<string, LogicalType>;

const SIZES: ReadonlySet<number> = new Set(Object.values(LOGICAL_BYTES));

export function isLogical(base: string): base is LogicalType {
  return base in LOGICAL_BYTES;
}

/** A column of MariaDB that may be one of them, or BINARY. */
export function isDoubtful({ type, size, collationId }: TableMapColumn): boolean {
  return type === TYPE.STRING && SIZES.has(size) && (collationId === BINARY_COLLATION || collationId === 0);
}

/** What a definition says of such columns; a text that says why it does not. */
export function logicalTypesBy(
  definition: TableDefinition,
  columns: readonly TableMapColumn[],
  ref: TableRef,
): LogicalTypes | string {
  const types = new Map<string, LogicalType>();
  for (const { name, size } of columns) {
    const defined = definition.columns.find((column) => column.name.toLowerCase() === name.toLowerCase());
    if (defined === undefined) return `of column ${name} of ${formatTableRef(ref)} nothing is known`;
    const { base, length } = defined;
    if (isLogical(base) && LOGICAL_BYTES[base] === size) types.set(name, base);
    else if (base !== 'binary' || length !== size) {
      return `column ${name} of ${formatTableRef(ref)} has ${size} bytes in the table map, and is ${base} in the definition`;
    }
  }
  return types;
}
