/** The applied marker: moved with the batch, by compare-and-set; batches are harmless when repeated. */
import assert from 'node:assert/strict';
import { isMysyncError } from '@mysync/core';
import { del, itemRow, items, put, type Trial, TrialWriter } from './conformance-kit.ts';
import type { ApplyBatch, StreamRef } from './port.ts';

type Tests = Record<string, (trial: Trial) => Promise<void>>;

const never = new AbortController().signal;

export const markerTests: Tests = {
  'there is no marker at first; it moves with each batch, an empty one too; another sink reads it': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    assert.equal(await sink.readMarker(trial.stream), null);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0);
    await writer.applied(0, put(schema, itemRow(1), 1));
    assert.equal(await sink.readMarker(trial.stream), writer.marker);
    assert.equal(await (await trial.sink()).readMarker(trial.stream), writer.marker);
  },

  'streams have markers of their own': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const streams: StreamRef[] = [
      trial.stream,
      { ...trial.stream, partition: 1 },
      { ...trial.stream, partition: 11 },
      { topic: `${trial.stream.topic}1`, partition: 1 },
      { topic: `${trial.stream.topic}:1`, partition: 1 },
      { topic: `{${trial.stream.topic}}`, partition: 1 },
    ];
    const writers = [];
    for (const stream of streams) writers.push(await TrialWriter.start(sink, stream));
    for (const [at, writer] of writers.entries()) await writer.applied(0, put(schema, itemRow(at), 1));
    for (const writer of writers) assert.equal(await sink.readMarker(writer.stream), writer.marker);
    assert.equal(new Set(writers.map((writer) => writer.marker)).size, streams.length);
  },

  'a marker that is not the expected one is left alone': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const batch = (expected: string | null, next: string): ApplyBatch => ({
      stream: trial.stream,
      changes: [],
      marker: { expected, next },
    });
    assert.deepEqual(await sink.apply(batch('m0', 'm1'), never), { status: 'marker-moved' });
    assert.equal(await sink.readMarker(trial.stream), null);
    assert.deepEqual(await sink.apply(batch(null, 'm1'), never), { status: 'applied', stale: 0 });
    assert.deepEqual(await sink.apply(batch(null, 'm2'), never), { status: 'marker-moved' });
    assert.deepEqual(await sink.apply(batch('m0', 'm2'), never), { status: 'marker-moved' });
    assert.equal(await sink.readMarker(trial.stream), 'm1');
    assert.deepEqual(await sink.apply(batch('m1', 'm1'), never), { status: 'applied', stale: 0 });
  },

  'the same batch again is harmless, whether its answer was lost or not': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1), put(schema, itemRow(2), 2));
    const changes = [put(schema, itemRow(1, 'x'), 3), del(schema, itemRow(2), 4), put(schema, itemRow(3), 5)];
    const batch: ApplyBatch = { stream: trial.stream, changes, marker: { expected: writer.marker, next: 'next' } };
    for (let times = 0; times < 3; times++) {
      assert.equal((await sink.apply(batch, never)).status, 'applied');
      await trial.assertRows(schema, [itemRow(1, 'x'), itemRow(3)]);
      assert.equal(await sink.readMarker(trial.stream), 'next');
    }
  },

  'of two writers the one that comes late loses, and overwrites nothing': async (trial) => {
    const schema = items(trial.database);
    const [first, second] = [await trial.sink(schema), await trial.sink(schema)];
    const stale = await TrialWriter.start(first, trial.stream);
    await stale.applied(0, put(schema, itemRow(1, 'old'), 1));
    const active = await TrialWriter.start(second, trial.stream);
    await active.applied(0, put(schema, itemRow(1, 'new'), 5), del(schema, itemRow(2), 6));
    for (let times = 0; times < 2; times++) {
      const outcome = await stale.apply(put(schema, itemRow(1, 'stale'), 3), put(schema, itemRow(2, 'stale'), 4));
      assert.deepEqual(outcome, { status: 'marker-moved' });
    }
    await active.applied(0, put(schema, itemRow(3), 7));
    assert.equal(await first.readMarker(trial.stream), active.marker);
    await trial.assertRows(schema, [itemRow(1, 'new'), itemRow(3)]);
  },

  'an unreachable store is a retriable error of every call': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.unreachableSink();
    const retriable = (error: unknown): boolean => isMysyncError(error) && error.retriable;
    const batch: ApplyBatch = { stream: trial.stream, changes: [], marker: { expected: null, next: 'm' } };
    await assert.rejects(sink.readMarker(trial.stream), retriable);
    await assert.rejects(sink.apply(batch, never), retriable);
    await assert.rejects(
      sink.prepare(schema).then(() => sink.apply({ ...batch, changes: [put(schema, itemRow(1), 1)] }, never)),
      retriable,
    );
    assert.ok((await sink.check()).some((finding) => finding.level === 'error' && finding.remedy !== ''));
  },

  'close twice, with nothing to say': async (trial) => {
    const sink = await trial.sink(items(trial.database));
    await sink.close();
    await sink.close();
  },

  'a store that is well has no error to report': async (trial) => {
    const sink = await trial.sink();
    const findings = await sink.check();
    assert.ok(findings.length > 0);
    assert.deepEqual(
      findings.filter((finding) => finding.level === 'error'),
      [],
    );
  },
};
