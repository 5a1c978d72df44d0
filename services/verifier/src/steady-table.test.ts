import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@mysync/core';
import { sourceErrors, type TableReader } from '@mysync/source-mysql';
import { Again } from './again.ts';
import { idOf, keyOf, planOf, readerOf, rowOf } from './rows.fixture.ts';
import { SteadyTable } from './steady-table.ts';

const table = { database: 'shop', table: 'orders' };
const plan = planOf();
const rows = [1, 2, 3, 4, 5].map((id) => rowOf(plan, id, `state ${id}`));

function lost(): never {
  throw sourceErrors.SOURCE_CONNECTION_LOST({ message: 'the connection is gone' });
}

async function opened(...readers: readonly TableReader[]): Promise<{ steady: SteadyTable; closed: TableReader[] }> {
  const closed: TableReader[] = [];
  const left = [...readers];
  const { signal } = new AbortController();
  const clock = { ...systemClock, sleep: () => Promise.resolve() };
  const again = new Again({ clock, signal, patienceMs: 10_000, onRetry: () => undefined });
  const open = (): Promise<TableReader> => {
    const reader = left.shift();
    if (reader === undefined) throw new Error('no more readers');
    return Promise.resolve({ ...reader, close: () => Promise.resolve(void closed.push(reader)) });
  };
  return { steady: await SteadyTable.open({ table, open, again }), closed };
}

async function ids(steady: SteadyTable): Promise<readonly number[]> {
  const seen: number[] = [];
  for await (const chunk of steady.chunks()) seen.push(...chunk.map((row) => idOf(keyOf(row))));
  return seen;
}

test('a lost connection: chunks go on behind the last row, over another one; the lost one is closed', async () => {
  const breaking = readerOf(plan, rows, { onChunk: (id) => (id === 3 ? lost() : undefined) });
  const { steady, closed } = await opened(breaking, readerOf(plan, rows));
  assert.deepEqual(await ids(steady), [1, 2, 3, 4, 5]);
  assert.equal(steady.cameAgain, false);
  assert.equal(closed.length, 1);
  await steady.close();
  assert.equal(closed.length, 2);
});

test('a table that cannot be cut begins anew, and says that its rows came again', async () => {
  const breaking = readerOf(plan, rows, { isCut: false, onChunk: (id) => (id === 3 ? lost() : undefined) });
  const { steady } = await opened(breaking, readerOf(plan, rows, { isCut: false }));
  assert.deepEqual(await ids(steady), [1, 2, 1, 2, 3, 4, 5]);
  assert.equal(steady.cameAgain, true);
});

test('rows by key are asked for amid a table that is one long result: over another connection', async () => {
  const { steady, closed } = await opened(
    readerOf(plan, rows, { isCut: false }),
    readerOf(plan, rows, { isCut: false }),
  );
  for await (const chunk of steady.chunks()) {
    const again = await steady.rows(chunk.map(keyOf));
    assert.deepEqual(again, chunk);
  }
  await steady.close();
  assert.equal(closed.length, 2);
});

test('a table that was altered meanwhile is told as such, whether the connection held or not', async () => {
  const altered = (): never => {
    throw sourceErrors.SOURCE_SNAPSHOT_RESTART({ message: 'changed by DDL after the snapshot began' });
  };
  const one = await opened(readerOf(plan, rows, { onChunk: altered }));
  await assert.rejects(ids(one.steady), { code: 'VERIFY_TABLE_CHANGED', retriable: false });
  const other = planOf('added');
  const another = await opened(readerOf(plan, rows, { onChunk: lost }), readerOf(other, rows));
  await assert.rejects(ids(another.steady), { code: 'VERIFY_TABLE_CHANGED' });
});

test('rows by key are asked for again as well', async () => {
  const breaking = {
    ...readerOf(plan, rows),
    rows: () => Promise.reject(sourceErrors.SOURCE_UNREACHABLE({ message: 'away' })),
  };
  const { steady } = await opened(breaking, readerOf(plan, rows));
  const [, , third] = rows;
  assert.ok(third !== undefined);
  assert.deepEqual(
    (await steady.rows([keyOf(third)])).map((row) => idOf(keyOf(row))),
    [3],
  );
});
