import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTableRef, isMysyncError, type MysyncError, silentLogger } from '@mysync/core';
import type { Batch } from '@mysync/flow';
import { createMetrics } from '@mysync/telemetry';
import { transportErrors } from '@mysync/transport';
import {
  compileTable,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  type RowValues,
} from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';
import { type LargeRowPolicy, LargeRows } from './large-rows.ts';

const column = (name: string, kind: 'int' | 'text', keyPosition: number) =>
  ({ name, type: kind, kind, keyPosition, nullable: keyPosition === 0, charset: '', members: [] }) as const;
const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  columns: [column('id', 'int', 1), column('note', 'text', 0)],
  keyRule: 'primary',
});
const id = { file: 'binlog.000007', offset: 4711, gtid: '0-1-9', ordinal: 0 };
const encoder = new RowEncoder();

function entry(
  operation: 'insert' | 'update' | 'delete',
  before: RowValues | null,
  after: RowValues | null,
): WindowEntry {
  const block = encodeTransaction({ source: 's', serverUuid: 'u', id, commitTimeMicros: 1 });
  const change = { operation, eventFile: '', eventOffset: 0, ordinal: 3, before, after };
  const message = encoder.encode(compileTable({ schema }), block, change);
  return { message, transaction: { id, commitTimeMicros: 1, counter: 9 }, ordinal: 3, versionOrdinal: 3 };
}

const batchOf = (...items: WindowEntry[]): Batch<WindowEntry> =>
  ({ id: 1, generation: 0, base: 1, firstSequence: 1, items, bytes: 0 }) as Batch<WindowEntry>;

function refusal(record: number): MysyncError {
  return transportErrors.TRANSPORT_RECORD_TOO_LARGE({ message: 'it is', where: { record } }) as MysyncError;
}

function largeRows(policy: LargeRowPolicy) {
  const metrics = createMetrics();
  const asked: string[] = [];
  const onLargeRow = (table: Parameters<typeof formatTableRef>[0]): LargeRowPolicy => {
    asked.push(formatTableRef(table));
    return policy;
  };
  return { rows: new LargeRows({ source: 's', onLargeRow, logger: silentLogger, metrics }), metrics, asked };
}

const read = ({ message }: WindowEntry) => {
  const decoded = new MessageDecoder().decode(message.payload);
  assert.ok('schema' in decoded);
  return decoded;
};

test('withhold: an update loses its image before first, then the row is withheld, then there is no way left', async () => {
  const { rows, metrics, asked } = largeRows('withhold');
  const beside = entry('insert', null, [1, 'a']);
  const large = entry('update', [2, 'before'], [2, 'after']);
  const { key } = large.message;
  const batch = batchOf(beside, large);
  assert.equal(rows.meet(refusal(1), batch), null);
  assert.deepEqual(
    [read(large).operation, read(large).before, read(large).after],
    ['update', [2, undefined], [2, 'after']],
  );
  assert.equal(rows.meet(refusal(1), batch), null);
  assert.deepEqual([read(large).operation, read(large).before, read(large).after], ['withheld', null, null]);
  assert.deepEqual(Buffer.from(large.message.key), Buffer.from(key));
  assert.equal(read(large).source.change.ordinal, 3);
  const failure = rows.meet(refusal(1), batch);
  assert.ok(isMysyncError(failure, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.equal(read(beside).operation, 'insert', 'its neighbour is untouched');
  assert.deepEqual(new Set(asked), new Set(['shop.orders']));
  const [counted, ...more] = (await metrics.reader.withheldRows.get()).values;
  assert.deepEqual([counted?.value, counted?.labels['table'], more.length], [1, 'shop.orders', 0]);
});

test('withhold: a deletion keeps what its key says, and is never withheld', () => {
  const { rows } = largeRows('withhold');
  const large = entry('delete', [2, 'before'], null);
  assert.equal(rows.meet(refusal(0), batchOf(large)), null);
  assert.deepEqual([read(large).operation, read(large).before], ['delete', [2, undefined]]);
  assert.ok(isMysyncError(rows.meet(refusal(0), batchOf(large)), 'TRANSPORT_RECORD_TOO_LARGE'));
});

test('halt: the error names row, table, place and the limit that would do; the message stays as it is', () => {
  const { rows } = largeRows('halt');
  const large = entry('insert', null, [2, 'a']);
  const { bytes } = large.message;
  const failure = rows.meet(refusal(0), batchOf(large));
  assert.ok(isMysyncError(failure, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.deepEqual(failure.where, {
    record: 0,
    table: 'shop.orders',
    row: '{"id":2}',
    position: 'binlog.000007:4711',
    gtid: '0-1-9',
  });
  assert.match(failure.remedy, /to 1048576 or more/);
  assert.equal(large.message.bytes, bytes);
});
