/** Changes that can never succeed: named one by one, and never in the way of their neighbours. */
import assert from 'node:assert/strict';
import { isMysyncError } from '@mysync/core';
import { del, itemRow, items, put, type Trial, TrialWriter } from './conformance-kit.ts';
import type { ApplyOutcome, ClearChange } from './port.ts';

type Tests = Record<string, (trial: Trial) => Promise<void>>;

function refusedPlaces(outcome: ApplyOutcome): readonly number[] {
  assert.equal(outcome.status, 'refused');
  return outcome.status === 'refused' ? outcome.refusals.map((refusal) => refusal.index) : [];
}

export const poisonTests: Tests = {
  'a change that can never succeed is named, the marker stays, the rest can go on without it': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1));
    await trial.bench.spoil(schema, 2);
    const changes = [put(schema, itemRow(1, 'x'), 2), put(schema, itemRow(2), 3), put(schema, itemRow(3), 4)];
    for (let times = 0; times < 2; times++) {
      const outcome = await writer.apply(...changes);
      assert.equal(outcome.status, 'refused');
      const refusals = outcome.status === 'refused' ? outcome.refusals : [];
      assert.deepEqual(
        refusals.map((refusal) => refusal.index),
        [1],
      );
      for (const { error } of refusals) assert.ok(isMysyncError(error) && !error.retriable, String(error));
      assert.equal(await sink.readMarker(trial.stream), writer.marker);
    }
    await writer.applied(0, ...changes.filter((_, index) => index !== 1));
    const documents = await trial.bench.readAll(schema);
    const names = documents.map((document) => document['name']);
    assert.ok(names.includes('x') && names.includes('name 3'), JSON.stringify(names));
  },

  'a refusal in a batch of thousands keeps the marker': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await trial.bench.spoil(schema, 7);
    const changes = Array.from({ length: 2_000 }, (_, id) => put(schema, itemRow(id), id + 1));
    const outcome = await writer.apply(...changes);
    assert.equal(outcome.status, 'refused');
    assert.deepEqual(outcome.status === 'refused' && outcome.refusals.map((refusal) => refusal.index), [7]);
    assert.equal(await sink.readMarker(trial.stream), null);
  },

  'several refused changes of one batch: without them the rest goes through, in a few rounds': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const bad = [3, 4, 250, 700];
    for (const id of bad) await trial.bench.spoil(schema, id);
    let changes = Array.from({ length: 800 }, (_, id) => put(schema, itemRow(id), id + 1));
    let outcome = await writer.apply(...changes);
    for (let rounds = 0; outcome.status !== 'applied'; rounds++) {
      const places = refusedPlaces(outcome);
      assert.ok(places.length > 0 && rounds < bad.length);
      for (const place of places) assert.ok(bad.includes(Number(changes[place]?.key.values[0])), `place ${place}`);
      changes = changes.filter((_, place) => !places.includes(place));
      outcome = await writer.apply(...changes);
    }
    for (const id of bad) await trial.bench.mend(schema, id);
    const names = new Set((await trial.bench.readAll(schema)).map((document) => document['name']));
    for (let id = 0; id < 800; id++) assert.equal(names.has(`name ${id}`), !bad.includes(id), `row ${id}`);
  },

  'once the reason is gone the newest state is taken, and the change that was refused first is stale': async (
    trial,
  ) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1));
    await trial.bench.spoil(schema, 2);
    const refused = put(schema, itemRow(2, 'refused'), 2);
    assert.deepEqual(refusedPlaces(await writer.apply(refused)), [0]);
    await writer.applied(0, put(schema, itemRow(3), 4));
    await trial.bench.mend(schema, 2);
    await writer.applied(0, put(schema, itemRow(2, 'newest'), 3));
    await writer.applied(1, refused);
    await trial.assertRows(schema, [itemRow(1), itemRow(2, 'newest'), itemRow(3)]);
    await writer.applied(0, del(schema, itemRow(2), 5));
    await writer.applied(1, refused);
    await trial.assertRows(schema, [itemRow(1), itemRow(3)]);
  },

  'a clear goes through over a row that is refused': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1), put(schema, itemRow(3), 1));
    await trial.bench.spoil(schema, 2);
    assert.deepEqual(refusedPlaces(await writer.apply(put(schema, itemRow(2), 2))), [0]);
    const table = { database: trial.database, table: 'items' };
    const clear: ClearChange = { kind: 'clear', table, version: 3n, offset: 3 };
    await writer.applied(0, clear);
    await trial.bench.mend(schema, 2);
    await trial.assertRows(schema, []);
    await writer.applied(0, put(schema, itemRow(2, 'after'), 4));
    await trial.assertRows(schema, [itemRow(2, 'after')]);
  },

  'of two writers the one that was replaced cannot bring a row back that was set aside and released': async (trial) => {
    const schema = items(trial.database);
    const [first, second] = [await trial.sink(schema), await trial.sink(schema)];
    const frozen = await TrialWriter.start(first, trial.stream);
    await frozen.applied(0, put(schema, itemRow(1), 1));
    await trial.bench.spoil(schema, 2);
    const old = put(schema, itemRow(2, 'old'), 2);
    assert.deepEqual(refusedPlaces(await frozen.apply(old)), [0]);
    const active = await TrialWriter.start(second, trial.stream);
    await active.applied(0);
    await trial.bench.mend(schema, 2);
    await active.applied(0, put(schema, itemRow(2, 'newest'), 5));
    assert.deepEqual(await frozen.apply(old), { status: 'marker-moved' });
    await trial.assertRows(schema, [itemRow(1), itemRow(2, 'newest')]);
  },

  'a long marker arrives as it is': async (trial) => {
    const sink = await trial.sink(items(trial.database));
    const next = JSON.stringify({ parked: 'x\u0000日本"'.repeat(40_000) });
    const batch = { stream: trial.stream, changes: [], marker: { expected: null, next } };
    assert.equal((await sink.apply(batch, new AbortController().signal)).status, 'applied');
    assert.equal(await sink.readMarker(trial.stream), next);
  },
};
