/** Versions, deletions, clearing: nothing older ever replaces something newer. */
import assert from 'node:assert/strict';
import type { ColumnValue } from '@mysync/core';
import { del, itemRow, items, put, type Trial, TrialWriter } from './conformance-kit.ts';
import type { ClearChange, SinkChange, StreamRef } from './port.ts';

type Tests = Record<string, (trial: Trial) => Promise<void>>;

export const orderTests: Tests = {
  'a put is there, a newer put replaces it, a delete removes it': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1), put(schema, itemRow(2), 2));
    await trial.assertRows(schema, [itemRow(1), itemRow(2)]);
    await writer.applied(0, put(schema, itemRow(1, 'new'), 3), del(schema, itemRow(2), 4));
    await trial.assertRows(schema, [itemRow(1, 'new')]);
    await writer.applied(0, del(schema, itemRow(7), 5));
    await trial.assertRows(schema, [itemRow(1, 'new')]);
  },

  'an equal version counts as done, an older one is refused and counted as stale': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1, 'ten'), 10));
    await writer.applied(0, put(schema, itemRow(1, 'ten again'), 10));
    await writer.applied(1, put(schema, itemRow(1, 'nine'), 9), put(schema, itemRow(2), 9));
    await writer.applied(1, del(schema, itemRow(1), 8));
    await trial.assertRows(schema, [itemRow(1, 'ten'), itemRow(2)]);
  },

  'versions are compared as 63-bit numbers': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const high = 2n ** 63n - 1n;
    await writer.applied(0, put(schema, itemRow(1, 'low'), 9), put(schema, itemRow(2, 'high'), high - 1n));
    await writer.applied(0, put(schema, itemRow(1, 'high'), 10), put(schema, itemRow(2, 'highest'), high));
    await writer.applied(2, put(schema, itemRow(1, 'low'), 9), put(schema, itemRow(2, 'high'), high - 1n));
    await trial.assertRows(schema, [itemRow(1, 'high'), itemRow(2, 'highest')]);
  },

  'a deleted row is not revived by an older put, but by a newer one': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 5));
    await writer.applied(0, del(schema, itemRow(1), 7), del(schema, itemRow(2), 7));
    await writer.applied(2, put(schema, itemRow(1), 6), put(schema, itemRow(2), 6));
    await trial.assertRows(schema, []);
    await writer.applied(0, put(schema, itemRow(1, 'again'), 8));
    await trial.assertRows(schema, [itemRow(1, 'again')]);
  },

  'clear removes the older rows of its table and its partition, and nothing else': async (trial) => {
    const schema = items(trial.database);
    const other = items(trial.database, 'others');
    const sink = await trial.sink(schema, other);
    const second: StreamRef = { ...trial.stream, partition: 1 };
    const writer = await TrialWriter.start(sink, trial.stream);
    const neighbour = await TrialWriter.start(sink, second);
    await neighbour.applied(0, put(schema, itemRow(100), 1));
    await writer.applied(0, ...[1, 2, 3].map((id) => put(schema, itemRow(id), id)), put(other, itemRow(1), 1));
    await writer.applied(0, put(schema, itemRow(4), 10), put(schema, itemRow(5), 11));
    await writer.applied(0, clear(trial, 10n));
    await trial.assertRows(schema, [itemRow(4), itemRow(5), itemRow(100)]);
    await trial.assertRows(other, [itemRow(1)]);
    await writer.applied(1, put(schema, itemRow(2, 'from before'), 9));
    await writer.applied(0, put(schema, itemRow(3, 'after'), 12));
    await writer.applied(0, clear(trial, 10n));
    await trial.assertRows(schema, [itemRow(3, 'after'), itemRow(4), itemRow(5), itemRow(100)]);
    await neighbour.applied(0, clear(trial, 10n));
    await trial.assertRows(schema, [itemRow(3, 'after'), itemRow(4), itemRow(5)]);
  },

  'clear keeps the records that it names': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, ...[1, 2, 3, 4].map((id) => put(schema, itemRow(id), id)));
    const keep = new Set([2, 4].map((id) => sink.inspector.targetOf(put(schema, itemRow(id), 9))));
    await writer.applied(0, { ...clear(trial, 10n), keep });
    await trial.assertRows(schema, [itemRow(2), itemRow(4)]);
    await writer.applied(0, put(schema, itemRow(2, 'newer'), 11), del(schema, itemRow(4), 12));
    await trial.assertRows(schema, [itemRow(2, 'newer')]);
  },

  'clear of many rows': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const ids = Array.from({ length: 2_500 }, (_, id) => id + 1);
    await writer.applied(0, ...ids.map((id) => put(schema, itemRow(id), id)));
    await writer.applied(0, clear(trial, 2_490n));
    await trial.assertRows(
      schema,
      ids.slice(2_489).map((id) => itemRow(id)),
    );
  },

  'a batch of several thousand rows is applied whole': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const rows = Array.from({ length: 3_000 }, (_, id) => itemRow(id + 1));
    await writer.applied(0, ...rows.map((row, at) => put(schema, row, at + 1)));
    await trial.assertRows(schema, rows);
    assert.equal(await writer.sink.readMarker(trial.stream), writer.marker);
  },

  'random batches end where the newest versions say': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const model = new Map<number, { version: number; row: ColumnValue[] | null }>();
    const random = generator(Math.floor(Math.random() * 2 ** 31));
    for (let round = 0; round < 60; round++) {
      const ids = new Set(Array.from({ length: 1 + random(8) }, () => random(12)));
      const changes: SinkChange[] = [];
      let stale = 0;
      for (const id of ids) {
        const version = Math.max(1, round * 3 + random(12) - 9);
        const row = itemRow(id, `${round}`);
        const deleted = random(3) === 0;
        changes.push(deleted ? del(schema, row, version) : put(schema, row, version));
        const stored = model.get(id);
        if (stored !== undefined && stored.version > version) stale++;
        if (stored === undefined || stored.version < version) model.set(id, { version, row: deleted ? null : row });
      }
      assert.deepEqual(
        await writer.apply(...changes),
        { status: 'applied', stale },
        `seed ${random.seed}, round ${round}`,
      );
    }
    const rows = [...model.values()].flatMap(({ row }) => (row === null ? [] : [row]));
    await trial.assertRows(schema, rows);
  },
};

function clear(trial: Trial, version: bigint): ClearChange {
  return { kind: 'clear', table: { database: trial.database, table: 'items' }, version, offset: Number(version) };
}

/** Numbers that a seed repeats (a linear congruential generator; Numerical Recipes' constants). */
function generator(seed: number): ((below: number) => number) & { readonly seed: number } {
  let state = seed;
  const next = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  return Object.assign(next, { seed });
}
