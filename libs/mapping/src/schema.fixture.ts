/** Makes schemas for tests. */
import type { Column, ColumnKind, TableSchema } from '@mysync/core';

export function column(name: string, type: string, kind: ColumnKind, keyPosition = 0): Column {
  const charset = kind === 'text' ? 'utf8mb4' : kind === 'bytes' ? 'binary' : '';
  return { name, type, kind, keyPosition, nullable: keyPosition === 0, charset, members: [] };
}

export function schema(columns: readonly Column[], more: Partial<TableSchema> = {}): TableSchema {
  return { database: 'shop', table: 'orders', columns, keyRule: 'primary', fingerprint: '0123456789abcdef', ...more };
}
