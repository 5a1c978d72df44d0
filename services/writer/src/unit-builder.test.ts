import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangeId, Column } from '@mysync/core';
import { initialGuardState, SequenceGuard } from '@mysync/flow';
import type { IncomingRecord, RecordBatch } from '@mysync/transport';
import {
  compileTable,
  encodeControl,
  encodeTableMessage,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  type RowOperation,
  type RowValues,
  stampDelivery,
  toRecord,
} from '@mysync/wire';
import { type ApplyUnit, UnitBuilder } from './unit-builder.ts';

const column = (name: string, kind: Column['kind'], keyPosition = 0): Column => ({
  name,
  type: kind === 'bytes' ? 'blob' : kind === 'int' ? 'int' : 'varchar(20)',
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: '',
  members: [],
});

const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  columns: [column('id', 'int', 1), column('state', 'text'), column('raw', 'bytes')],
  keyRule: 'primary',
});
const other = makeTableSchema({ ...schema, table: 'secret' });
const NO_CHANGE: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };

/** A log of one partition: gives each message the next sequence and offset. */
class Log {
  readonly records: IncomingRecord[] = [];
  readonly #encoder = new RowEncoder();
  #sequence = 0;
  #transaction = 0;

  #block() {
    this.#transaction += 1;
    const id = { file: 'bin.000001', offset: this.#transaction * 100, gtid: '', ordinal: 0 };
    return encodeTransaction({ source: 's', serverUuid: 'u', id, commitTimeMicros: this.#transaction * 1_000 });
  }

  #append(key: Uint8Array, payload: Uint8Array, deletes: boolean, sequence = ++this.#sequence): this {
    stampDelivery(payload, {
      epoch: 1,
      generation: 0,
      base: 1,
      sequence,
      transactionCounter: this.#transaction,
      ordinal: 1,
    });
    this.records.push({ offset: this.records.length, ...toRecord(key, payload, deletes) });
    return this;
  }

  row(operation: RowOperation, before: RowValues | null, after: RowValues | null, table = schema): this {
    const change = { operation, eventFile: '', eventOffset: 0, ordinal: 1, before, after };
    const { key, payload, deletes } = this.#encoder.encode(compileTable({ schema: table }), this.#block(), change);
    return this.#append(key, payload, deletes);
  }

  truncate(table = schema): this {
    const options = {
      operation: 'truncate',
      transaction: this.#block(),
      ordinal: 1,
      statement: 'TRUNCATE x',
      table,
    } as const;
    const { key, payload } = encodeTableMessage(options);
    return this.#append(key, payload, false);
  }

  control(operation: 'heartbeat' | 'fence'): this {
    const { key, payload } = encodeControl({ operation, transaction: this.#block(), ordinal: 0 });
    return operation === 'fence' ? this.#append(key, payload, false, 0) : this.#append(key, payload, false);
  }

  /** The newest record once more, at the next offset. */
  again(): this {
    const last = this.records[this.records.length - 1];
    if (last !== undefined) this.records.push({ ...last, offset: this.records.length });
    return this;
  }

  lose(): this {
    this.#sequence += 1;
    return this;
  }

  batch(): RecordBatch {
    const { records } = this;
    return { partition: 0, records, nextOffset: records.length, endOffset: records.length };
  }
}

function build(log: Log, maxChanges = 100): { units: ApplyUnit[]; verdicts: string[] } {
  const verdicts: string[] = [];
  const builder = new UnitBuilder({
    guard: new SequenceGuard(initialGuardState(0)),
    decoder: new MessageDecoder(),
    maxChanges,
    accepts: (table) => table.table !== 'secret',
    onVerdict: (verdict) => verdicts.push(verdict),
    version: 0n,
    change: NO_CHANGE,
  });
  return { units: [...builder.units(log.batch())], verdicts };
}

test('insert, update, delete and insert of one key collapse to the last, with its version', () => {
  const log = new Log()
    .row('insert', null, [1, 'a', null])
    .row('update', [1, 'a', null], [1, 'b', null])
    .row('delete', [1, 'b', null], null)
    .row('insert', null, [1, 'c', null]);
  const { units } = build(log);
  assert.equal(units.length, 1);
  const [change] = units[0]?.changes ?? [];
  assert.equal(units[0]?.changes.length, 1);
  assert.ok(change?.kind === 'put');
  assert.deepEqual([...change.row], [1, 'c', null]);
  assert.equal(change.version, (4n << 20n) + 1n);
  assert.equal(units[0]?.messages, 4);
  assert.equal(units[0]?.progress?.nextOffset, 4);
});

test('a delete comes with the before image and its key', () => {
  const { units } = build(new Log().row('delete', [7, 'x', null], null));
  const [change] = units[0]?.changes ?? [];
  assert.ok(change?.kind === 'delete');
  assert.deepEqual(change.key, { database: 'shop', table: 'orders', columns: ['id'], values: [7] });
});

test('a truncate is a unit of its own between what came before and after it', () => {
  const log = new Log().row('insert', null, [1, 'a', null]).truncate().row('insert', null, [2, 'b', null]);
  const { units } = build(log);
  assert.deepEqual(
    units.map((unit) => unit.changes.map((change) => change.kind)),
    [['put'], ['clear'], ['put']],
  );
  assert.equal(
    units[0]?.progress,
    null,
    'the guard has seen the truncate, so the marker must not move before it is applied',
  );
  assert.equal(units[1]?.progress?.nextOffset, 2);
  assert.equal(units[1]?.progress?.guard.sequence, 2);
  assert.equal(units[2]?.progress?.nextOffset, 3);
});

test('a partial row is merged over a whole one of the same key', () => {
  const log = new Log()
    .row('insert', null, [1, 'keep', Buffer.from('k')])
    .row('update', [1, 'keep', undefined], [1, undefined, null]);
  const [change] = build(log).units[0]?.changes ?? [];
  assert.ok(change?.kind === 'put');
  assert.deepEqual([...change.row], [1, 'keep', null]);
});

test('a partial row over a delete of the same key waits for the delete to be applied', () => {
  const log = new Log().row('delete', [1, 'a', null], null).row('update', [1, undefined, null], [1, undefined, null]);
  const { units } = build(log);
  assert.deepEqual(
    units.map((unit) => unit.changes.map((change) => change.kind)),
    [['delete'], ['put']],
  );
  assert.equal(units[0]?.progress, null);
});

test('fences, duplicates and early records are not applied, but the marker covers them', () => {
  const log = new Log()
    .control('fence')
    .row('insert', null, [1, 'a', null])
    .again()
    .lose()
    .row('insert', null, [2, 'b', null]);
  const { units, verdicts } = build(log);
  assert.deepEqual(verdicts, ['accept', 'duplicate', 'early']);
  assert.equal(units[0]?.changes.length, 1);
  assert.equal(units[0]?.progress?.nextOffset, 4);
  assert.equal(units[0]?.progress?.guard.sequence, 1);
});

test('tables without a rule and heartbeats give no change; their schemas are not prepared', () => {
  const log = new Log().row('insert', null, [1, 'a', null], other).control('heartbeat').truncate(other);
  const { units } = build(log);
  assert.deepEqual(
    units.map((unit) => unit.changes.length),
    [0],
  );
  assert.deepEqual(units[0]?.newSchemas, []);
  assert.equal(units[0]?.messages, 3);
});

test('a unit holds at most maxChanges, and its progress ends behind its last record', () => {
  const log = new Log();
  for (let id = 0; id < 5; id += 1) log.row('insert', null, [id, 'a', null]);
  const { units } = build(log, 2);
  assert.deepEqual(
    units.map((unit) => [unit.changes.length, unit.progress?.nextOffset]),
    [
      [2, 2],
      [2, 4],
      [1, 5],
    ],
  );
  assert.deepEqual(
    units.map((unit) => unit.newSchemas.length),
    [1, 0, 0],
  );
});

test('bytes of a change stay right when the batch is overwritten afterwards', () => {
  const log = new Log().row('insert', null, [1, 'a', Buffer.from('precious')]);
  const { units } = build(log);
  log.records[0]?.value?.fill(0);
  const [change] = units[0]?.changes ?? [];
  assert.ok(change?.kind === 'put');
  assert.deepEqual(Buffer.from(change.row[2] as Uint8Array).toString(), 'precious');
});
