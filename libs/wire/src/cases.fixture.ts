/** Random changes of rows, and their records. */
import assert from 'node:assert/strict';
import type { ColumnValue } from '@mysync/core';
import fc from 'fast-check';
import { rowOf, type Table, table, transaction } from './arbitraries.fixture.ts';
import { setLastInTransaction } from './delivery.ts';
import {
  compileTable,
  type EncodedRow,
  encodeTransaction,
  RowEncoder,
  type RowOperation,
  stampDelivery,
  type TransactionOptions,
} from './index.ts';

export interface Case {
  readonly table: Table;
  readonly operation: RowOperation;
  readonly before: ColumnValue[] | null;
  readonly after: ColumnValue[] | null;
  readonly transaction: TransactionOptions;
  readonly ordinal: number;
  readonly eventFile: string;
  readonly eventOffset: number;
  readonly last: boolean;
  readonly partitionBy: readonly string[];
}

/** An update keeps its key and partition here: changes of them have tests of their own. */
export const changes: fc.Arbitrary<Case> = table.chain((made) =>
  fc
    .record({
      operation: fc.constantFrom<RowOperation>('insert', 'update', 'delete', 'read'),
      one: rowOf(made),
      other: rowOf(made),
      transaction,
      ordinal: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 2 ** 33 })),
      eventFile: fc.constantFrom('', 'binlog.000001', 'binlog.000002'),
      eventOffset: fc.oneof(fc.nat(), fc.maxSafeNat()),
      last: fc.boolean(),
      by: fc.array(fc.nat(), { maxLength: 2 }),
    })
    .map(({ one, other, by, ...rest }) => {
      const { columns } = made.schema;
      const places = by.map((place) => place % columns.length).filter((at) => one[at] !== undefined);
      const named = [...made.keyed, ...places];
      const kept = made.keyed.length === 0 ? one : other.map((value, at) => (named.includes(at) ? one[at] : value));
      return {
        ...rest,
        partitionBy: [...new Set(places.map((at) => columns[at]?.name ?? ''))],
        table: made,
        before: rest.operation === 'update' || rest.operation === 'delete' ? one : null,
        after: rest.operation === 'delete' ? null : kept,
      };
    }),
);

const encoder = new RowEncoder();

export function encodeCase(made: Case): EncodedRow {
  const out: EncodedRow[] = [];
  const plan = compileTable({ schema: made.table.schema, partitionBy: made.partitionBy });
  const { operation, before, after, ordinal, eventFile, eventOffset } = made;
  const block = encodeTransaction(made.transaction);
  const used = encoder.rowChange(plan, block, { operation, before, after, ordinal, eventFile, eventOffset }, out);
  assert.equal(used, 1);
  const [record] = out;
  assert.ok(record);
  setLastInTransaction(record.payload, made.last);
  stampDelivery(record.payload, {
    epoch: 2 ** 32 - 1,
    generation: 7,
    base: Number.MAX_SAFE_INTEGER,
    sequence: 5,
    transactionCounter: 3,
    ordinal: 9,
  });
  return record;
}
