import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangeId } from '@mysync/core';
import type { SourceRow } from '@mysync/source-mysql';
import { EncodedRow } from '@mysync/wire';
import { ChangeRouter, type Frontier } from './change-router.ts';

const at = (offset: number, ordinal = 0, file = 'bin.000009'): ChangeId => ({ file, offset, gtid: '', ordinal });

function router(frontiers: readonly (Frontier | null)[], transactionCounter = 100): ChangeRouter {
  return new ChangeRouter({
    source: 's',
    serverUuid: 'u',
    partitions: frontiers.length,
    transactionCounter,
    frontiers,
  });
}

const row = (partitionHash: number, ordinal: number): SourceRow =>
  new EncodedRow(Buffer.alloc(65), 0, 64, 65, false, partitionHash, ordinal);

/** The ordinals of a transaction with `count` rows that are published, all in partition 0. */
function published(target: ChangeRouter, begin: ChangeId, count: number): number[] {
  target.begin({ kind: 'begin', id: begin, commitTimeMicros: 1 });
  const ordinals = Array.from({ length: count }, (_, index) => index + 1).filter((n) => target.route(row(0, n)) >= 0);
  target.commit({ ordinals: count });
  return ordinals;
}

test('what lies at or before the frontier is skipped, everything after it is not', () => {
  const target = router([{ change: at(200, 2), whole: false }]);
  assert.deepEqual(published(target, at(100), 3), []);
  assert.deepEqual(published(target, at(200), 3), [3]);
  assert.deepEqual(published(target, at(300), 2), [1, 2]);
});

test('the frontiers of partitions are apart: one lags, the other does not', () => {
  const target = router([{ change: at(200, 1), whole: false }, null]);
  target.begin({ kind: 'begin', id: at(100), commitTimeMicros: 1 });
  assert.equal(target.route(row(0, 1)), -1);
  assert.equal(target.route(row(1, 2)), 1);
});

test('rows of a view lie between two transactions, and recovery does not drop them', () => {
  const target = router([{ change: at(300), whole: false }]);
  assert.deepEqual(target.ahead, at(300));
  target.begin({ kind: 'begin', id: at(200), commitTimeMicros: 1 });
  assert.equal(target.commit({ ordinals: 2 ** 20 }), 102);
  // a former life's view stood at the same place
  target.beginView(at(300), 7);
  assert.equal(target.route(row(0, 0)), 0);
  const { transaction, ordinal, versionOrdinal } = target.rowEntry(row(0, 0));
  assert.deepEqual([transaction.id, transaction.counter, ordinal, versionOrdinal], [at(300), 103, 0, 0]);
  const sweep = { kind: 'sweep', table: { database: 'd', table: 't' }, statement: '', ordinal: 0 } as const;
  assert.equal(target.tableEntries(sweep)[0]?.transaction.counter, 103);
  target.endView();
  target.begin({ kind: 'begin', id: at(300), commitTimeMicros: 1 });
  assert.equal(target.transactionCounter, 103);
  assert.equal(target.route(row(0, 1)), 0);
  target.commit({ ordinals: 1 });
  target.begin({ kind: 'begin', id: at(400), commitTimeMicros: 1 });
  assert.equal(target.ahead, null);
});

test('a frontier from before a jump of the versions has its transaction published whole', () => {
  const target = router([{ change: at(200, 2), whole: true }]);
  assert.deepEqual(published(target, at(100), 2), []);
  assert.deepEqual(published(target, at(200), 3), [1, 2, 3]);
});

test('a frontier in an older file is passed by the first transaction of a newer one, past file 999999 too', () => {
  const target = router([{ change: at(9_000, 5, 'bin.999999'), whole: false }]);
  assert.deepEqual(published(target, at(4, 0, 'bin.1000000'), 2), [1, 2]);
});

test('versions: one counter per transaction, more for one of over 2^20 rows, the same when read again', () => {
  const target = router([null]);
  target.begin({ kind: 'begin', id: at(1), commitTimeMicros: 1 });
  assert.equal(target.rowEntry(row(0, 1)).transaction.counter, 101);
  assert.equal(target.commit({ ordinals: 3 }), 101);
  target.begin({ kind: 'begin', id: at(2), commitTimeMicros: 1 });
  assert.equal(target.commit({ ordinals: 2 ** 21 }), 104);
  target.begin({ kind: 'begin', id: at(3), commitTimeMicros: 1 });
  assert.equal(target.rowEntry(row(0, 1)).transaction.counter, 105);
});

test('a truncate reaches every partition that has not got it', () => {
  const target = router([{ change: at(200, 1), whole: false }, null]);
  target.begin({ kind: 'begin', id: at(200), commitTimeMicros: 1 });
  const table = { database: 'd', table: 't' };
  const entries = target.tableEntries({ kind: 'truncate', table, statement: 'TRUNCATE t', ordinal: 1 });
  assert.deepEqual(
    entries.map((entry) => entry !== null),
    [false, true],
  );
});

test('floors: from a known place on the counter is at least what it was there, the same when read again', () => {
  const floors = [
    { file: 'bin.000009', offset: 200, transactionCounter: 499 },
    { file: 'bin.000009', offset: 250, transactionCounter: 300 },
    { file: 'bin.000010', offset: 4, transactionCounter: 900 },
  ];
  for (let times = 0; times < 2; times += 1) {
    const target = new ChangeRouter({
      source: 's',
      serverUuid: 'u',
      partitions: 1,
      transactionCounter: 100,
      floors,
      frontiers: [null],
    });
    const counters = [at(100), at(200), at(300), at(4, 0, 'bin.000010'), at(50, 0, 'bin.000010')].map((id) => {
      target.begin({ kind: 'begin', id, commitTimeMicros: 1 });
      return target.commit({ ordinals: 1 });
    });
    assert.deepEqual(counters, [101, 500, 501, 901, 902]);
  }
});

test('floors between transactions: a view behind one, and a checkpoint that has passed it, have its counter', () => {
  const floors = [{ file: 'bin.000009', offset: 200, transactionCounter: 499 }];
  const make = (): ChangeRouter =>
    new ChangeRouter({
      source: 's',
      serverUuid: 'u',
      partitions: 1,
      transactionCounter: 100,
      floors,
      frontiers: [null],
    });
  const viewed = make();
  viewed.begin({ kind: 'begin', id: at(100), commitTimeMicros: 1 });
  assert.equal(viewed.commit({ ordinals: 1 }), 101);
  viewed.beginView({ file: 'bin.000009', offset: 180 }, 1);
  assert.equal(viewed.rowEntry(row(0, 0)).transaction.counter, 102);
  viewed.endView();
  viewed.beginView({ file: 'bin.000009', offset: 220 }, 1);
  assert.equal(viewed.rowEntry(row(0, 0)).transaction.counter, 500);
  viewed.endView();
  const passed = make();
  passed.passTo({ file: 'bin.000009', offset: 199 });
  assert.equal(passed.transactionCounter, 100);
  // the checkpoint drops the floor from here on
  passed.passTo({ file: 'bin.000009', offset: 230 });
  assert.equal(passed.transactionCounter, 499);
});
