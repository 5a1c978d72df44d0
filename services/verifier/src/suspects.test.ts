import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RowVerdict } from '@mysync/sink';
import { makeTableSchema } from '@mysync/wire';
import type { SourceRecord } from './source-rows.ts';
import { type Sighting, Suspects } from './suspects.ts';

const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  columns: [
    { name: 'id', type: 'int', kind: 'int', keyPosition: 1, nullable: false, charset: '', members: [] },
    { name: 'v', type: 'varchar(9)', kind: 'text', keyPosition: 0, nullable: true, charset: 'utf8mb4', members: [] },
  ],
  keyRule: 'primary',
});
const key = { database: 'shop', table: 'orders', columns: ['id'], values: [1] };

function row(v: string): SourceRecord {
  return { schema, key, row: [1, v], target: 'orders:1', keyBytes: new Uint8Array(), partitionHash: 0 };
}

function verdict(state: RowVerdict['state'], version: bigint | null): RowVerdict {
  return { state, version, fields: [] };
}

/** What becomes of one suspect that is seen so, in these rounds. */
function seen(...sightings: readonly Sighting[]): Suspects {
  const suspects = new Suspects([{ target: 'orders:1', key }]);
  for (const sighting of sightings) suspects.see('orders:1', sighting);
  return suspects;
}

test('the same difference three times is a difference', () => {
  const wrong: Sighting = { row: row('a'), verdict: verdict('different', 5n) };
  assert.equal(seen(wrong, wrong).open.length, 1);
  const suspects = seen(wrong, wrong, wrong);
  assert.equal(suspects.open.length, 0);
  assert.deepEqual(
    suspects.found.map(({ kind }) => kind),
    ['different'],
  );
});

test('a row that changed meanwhile begins anew', () => {
  const first: Sighting = { row: row('a'), verdict: verdict('different', 5n) };
  const second: Sighting = { row: row('b'), verdict: verdict('different', 5n) };
  assert.equal(seen(first, first, second, second, first, first).open.length, 1);
});

test('a row that is right once was a change under way', () => {
  const wrong: Sighting = { row: row('a'), verdict: verdict('missing', null) };
  const suspects = seen(wrong, wrong, { row: row('a'), verdict: verdict('equal', 6n) });
  assert.equal(suspects.open.length, 0);
  assert.equal(suspects.right.size, 1);
  assert.deepEqual(suspects.found, []);
});

test('a row that both sides lost is right; one that only the source lost is extra', () => {
  assert.equal(seen({ row: null, verdict: verdict('missing', null) }).right.size, 1);
  const extra: Sighting = { row: null, verdict: verdict('different', 5n) };
  assert.deepEqual(
    seen(extra, extra, extra).found.map(({ kind }) => kind),
    ['extra'],
  );
});

test('a hot row is changing, not wrong; one whose record does not follow is unsettled', () => {
  const hot = seen(
    ...[1n, 2n, 3n, 4n].map((version) => ({ row: row(`v${version}`), verdict: verdict('different', version) })),
  );
  assert.equal(hot.open.length, 0);
  assert.equal(hot.hot.size, 1);
  const stuck = seen(...['a', 'b', 'c', 'd'].map((v) => ({ row: row(v), verdict: verdict('different', 1n) })));
  stuck.giveUp();
  assert.deepEqual(
    stuck.found.map(({ kind }) => kind),
    ['unsettled'],
  );
});
