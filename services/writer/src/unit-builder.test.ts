import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialGuardState, SequenceGuard } from '@mysync/flow';
import { MessageDecoder } from '@mysync/wire';
import { NO_CHANGE, other, TestLog } from './test-log.fixture.ts';
import { type ApplyUnit, UnitBuilder } from './unit-builder.ts';

function build(log: TestLog, maxChanges = 100): { units: ApplyUnit[]; guard: SequenceGuard; missing: number[] } {
  const guard = new SequenceGuard(initialGuardState(0));
  const missing: number[] = [];
  const builder = new UnitBuilder({
    guard,
    decoder: new MessageDecoder(),
    maxChanges,
    accepts: (table) => table.table !== 'secret',
    nextOffset: 0,
    onMissing: (offset) => {
      missing.push(offset);
      return false;
    },
    version: 0n,
    change: NO_CHANGE,
    where: {},
  });
  return { units: [...builder.units(log.batch())], guard, missing };
}

test('insert, update, delete and insert of one key collapse to the last, with its version', () => {
  const log = new TestLog()
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
  const { units } = build(new TestLog().row('delete', [7, 'x', null], null));
  const [change] = units[0]?.changes ?? [];
  assert.ok(change?.kind === 'delete');
  assert.deepEqual(change.key, { database: 'shop', table: 'orders', columns: ['id'], values: [7] });
});

test('version and change of the progress are those of one message: the last one, whatever came before', () => {
  const log = new TestLog().put(1, 'a').put(2, 'b').put(3, 'c').sweep(2);
  const { units } = build(log);
  const last = units.at(-1)?.progress;
  assert.equal(last?.version, (2n << 20n) + 1n);
  assert.equal(last?.change.offset, 400);
});

test('a truncate is a unit of its own between what came before and after it', () => {
  const log = new TestLog().row('insert', null, [1, 'a', null]).truncate().row('insert', null, [2, 'b', null]);
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
  const log = new TestLog()
    .row('insert', null, [1, 'keep', Buffer.from('k')])
    .row('update', [1, 'keep', undefined], [1, undefined, null]);
  const [change] = build(log).units[0]?.changes ?? [];
  assert.ok(change?.kind === 'put');
  assert.deepEqual([...change.row], [1, 'keep', null]);
});

test('a partial row over a delete of the same key waits for the delete to be applied', () => {
  const log = new TestLog()
    .row('delete', [1, 'a', null], null)
    .row('update', [1, undefined, null], [1, undefined, null]);
  const { units } = build(log);
  assert.deepEqual(
    units.map((unit) => unit.changes.map((change) => change.kind)),
    [['delete'], ['put']],
  );
  assert.equal(units[0]?.progress, null);
});

test('fences, duplicates and early records are not applied, but the marker covers them', () => {
  const log = new TestLog()
    .control('fence')
    .row('insert', null, [1, 'a', null])
    .again()
    .lose()
    .row('insert', null, [2, 'b', null]);
  const { units, guard } = build(log);
  const { accept, duplicate, early, skipped } = guard.counts;
  assert.deepEqual({ accept, duplicate, early, skipped }, { accept: 1, duplicate: 1, early: 1, skipped: 1 });
  assert.equal(units[0]?.changes.length, 1);
  assert.equal(units[0]?.progress?.nextOffset, 4);
  assert.equal(units[0]?.progress?.guard.sequence, 1);
});

test('tables without a rule and heartbeats give no change; their schemas are not prepared', () => {
  const log = new TestLog().row('insert', null, [1, 'a', null], other).control('heartbeat').truncate(other);
  const { units } = build(log);
  assert.deepEqual(
    units.map((unit) => unit.changes.length),
    [0],
  );
  assert.deepEqual(units[0]?.newSchemas, []);
  assert.equal(units[0]?.messages, 3);
});

test('a unit holds at most maxChanges, and its progress ends behind its last record', () => {
  const log = new TestLog();
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
  const log = new TestLog().row('insert', null, [1, 'a', Buffer.from('precious')]);
  const { units } = build(log);
  log.records[0]?.value?.fill(0);
  const [change] = units[0]?.changes ?? [];
  assert.ok(change?.kind === 'put');
  assert.deepEqual(Buffer.from(change.row[2] as Uint8Array).toString(), 'precious');
});

test('offsets that are gone are told, between records and at the end of a batch', () => {
  const log = new TestLog().put(1, 'a').compacted().compacted().put(2, 'b').compacted();
  const { units, missing } = build(log);
  assert.deepEqual(missing, [1, 4]);
  assert.equal(units[0]?.progress?.nextOffset, 5);
  assert.equal(units[0]?.changes.length, 2);
});
