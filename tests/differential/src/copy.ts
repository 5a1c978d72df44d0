/** The state that the source's items lead to: plain maps, as the simplest sink that follows the port's contract would keep them. */
import { type ColumnValue, type TableRef, type TableSchema, tableRefKey } from '@mysync/core';
import type { SourceItem, SourceRow } from '@mysync/source-mysql';
import { decodeKey, MessageDecoder, type RowMessage } from '@mysync/wire';

export interface CopiedRow {
  readonly schema: TableSchema;
  readonly values: readonly ColumnValue[];
  readonly partitionHash: number;
}

export class Copy {
  readonly #decoder = new MessageDecoder();
  /** By table, then by the bytes of the record's key. */
  readonly tables = new Map<string, Map<string, CopiedRow>>();
  rows = 0;

  /** Of a transaction that is whole, or of a snapshot. Throws on what breaks the port's contract. */
  apply(item: SourceItem): void {
    if (item.kind === 'row') this.#row(item);
    else if (item.kind === 'truncate') this.tables.delete(tableRefKey(item.table));
  }

  /** The tables that it holds, or held, rows of. */
  get refs(): TableRef[] {
    return [...this.tables.keys()].map((key) => {
      const [database = '', table = ''] = key.split('\0');
      return { database, table };
    });
  }

  of(ref: TableRef): ReadonlyMap<string, CopiedRow> {
    return this.tables.get(tableRefKey(ref)) ?? new Map();
  }

  #row(item: SourceRow): void {
    this.rows += 1;
    const message = this.#decoder.decode(item.payload) as RowMessage;
    const { schema, operation } = message;
    const values = operation === 'delete' ? message.before : message.after;
    if (values === null) throw new Error(`a message of ${schema.table} without its image`);
    if (item.deletes !== (operation === 'delete'))
      throw new Error(`a ${operation} whose record says deletes=${item.deletes}`);
    checkKey(item, schema, values);
    const id = Buffer.from(item.key).toString('latin1');
    const name = tableRefKey(schema);
    const table = this.tables.get(name) ?? new Map<string, CopiedRow>();
    this.tables.set(name, table);
    const former = table.get(id);
    if (former !== undefined && former.partitionHash !== item.partitionHash) {
      throw new Error(`a row of ${schema.table} changed its partition`);
    }
    if (item.deletes) table.delete(id);
    else table.set(id, { schema, values, partitionHash: item.partitionHash });
  }
}

/** A record's key says what its row says. */
function checkKey(item: SourceRow, schema: TableSchema, values: readonly ColumnValue[]): void {
  if (schema.keyRule === 'row-hash') return;
  const decoded = decodeKey(item.key);
  if (decoded.kind !== 'row') throw new Error(`the key of a row of ${schema.table} is a ${decoded.kind}'s`);
  const key = decoded.row;
  const named = schema.columns
    .map((column, i) => ({ column, value: values[i] }))
    .filter(({ column }) => column.keyPosition > 0)
    .sort((a, b) => a.column.keyPosition - b.column.keyPosition);
  const same =
    key.columns.length === named.length &&
    named.every(({ column, value }, i) => key.columns[i] === column.name && sameValue(key.values[i], value));
  if (!same) throw new Error(`the key of a row of ${schema.table} is not that of its values`);
}

export function sameValue(a: ColumnValue, b: ColumnValue): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  // a key holds -0 for 0
  return a === b || String(a) === String(b);
}
