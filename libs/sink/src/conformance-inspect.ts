/** What an inspector sees and mends. */
import assert from 'node:assert/strict';
import type { ColumnValue, TableSchema } from '@mysync/core';
import { del, itemRow, items, itemsWithExtra, put, type Trial, TrialWriter } from './conformance-kit.ts';
import type { InspectedRow, SinkInspector, StoredRecord } from './inspector.ts';
import type { StreamRef } from './port.ts';

const { signal } = new AbortController();

function inspected(schema: TableSchema, row: readonly ColumnValue[]): InspectedRow {
  const { key } = put(schema, row, 0);
  return { schema, key, row };
}

async function recordsOf(
  inspector: SinkInspector,
  schema: TableSchema,
  streams: readonly StreamRef[],
): Promise<ReadonlyMap<string, bigint>> {
  const found = new Map<string, bigint>();
  for await (const page of inspector.records(schema, streams, signal)) {
    for (const { target, version } of page) found.set(target, version);
  }
  return found;
}

export const inspectTests: Readonly<Record<string, (trial: Trial) => Promise<void>>> = {
  'inspect: rows that are right are equal, in any number': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const rows = Array.from({ length: 450 }, (_, id) =>
      itemRow(id, id % 7 === 0 ? null : `näme "${id}" 日本 \n${'x'.repeat(id)}`),
    );
    await (await TrialWriter.start(sink, trial.stream)).applied(0, ...rows.map((row) => put(schema, row, 5)));
    const verdicts = await sink.inspector.compare(
      rows.map((row) => inspected(schema, row)),
      signal,
    );
    assert.deepEqual(new Set(verdicts.map(({ state }) => state)), new Set(['equal']));
  },

  'inspect: what differs, is missing, or is deleted is told apart': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, ...[1, 2, 3, 4].map((id) => put(schema, itemRow(id), 5)));
    await writer.applied(0, del(schema, itemRow(4), 6));
    const changed = [...itemRow(2, null)];
    changed[2] = 18446744073709551614n;
    const verdicts = await sink.inspector.compare(
      [itemRow(1), changed, itemRow(3), itemRow(4), itemRow(9)].map((row) => inspected(schema, row)),
      signal,
    );
    assert.deepEqual(
      verdicts.map(({ state }) => state),
      ['equal', 'different', 'equal', 'missing', 'missing'],
    );
    assert.equal(verdicts[1]?.version, 5n);
    assert.deepEqual([...(verdicts[1]?.fields ?? [])].sort(), ['amount', 'name']);
  },

  'inspect: what an older shape left behind is a difference, a column that came as NULL is none': async (trial) => {
    const [small, large] = [items(trial.database), itemsWithExtra(trial.database)];
    const sink = await trial.sink(small, large);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(large, [...itemRow(1), 7], 5), put(small, itemRow(2), 6));
    const state = async (row: InspectedRow): Promise<string | undefined> =>
      (await sink.inspector.compare([row], signal))[0]?.state;
    const [left] = await sink.inspector.compare([inspected(small, itemRow(1))], signal);
    assert.deepEqual([left?.state, left?.fields], ['different', ['extra (should not be there)']]);
    assert.equal(await state(inspected(large, [...itemRow(1), 7])), 'equal');
    assert.equal(await state(inspected(small, itemRow(2))), 'equal');
    await sink.inspector.rewrite(trial.stream, [inspected(small, itemRow(1))], 9n, signal);
    assert.equal(await state(inspected(small, itemRow(1))), 'equal');
  },

  'inspect: records are those of the table and its streams that are there': async (trial) => {
    const [schema, other] = [items(trial.database), items(trial.database, 'others')];
    const sink = await trial.sink(schema, other);
    const second = { ...trial.stream, partition: 1 };
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, ...[1, 2, 3].map((id) => put(schema, itemRow(id), 2n ** 62n + BigInt(id))));
    await writer.applied(0, put(other, itemRow(7), 1), del(schema, itemRow(3), 2n ** 62n + 9n));
    await (await TrialWriter.start(sink, second)).applied(0, put(schema, itemRow(8), 4));
    const targets = (ids: readonly number[]): string[] =>
      ids.map((id) => sink.inspector.targetOf(inspected(schema, itemRow(id))));
    const { inspector } = sink;
    const [one = '', two = '', three = '', eight = ''] = targets([1, 2, 3, 8]);
    assert.deepEqual(
      await recordsOf(inspector, schema, [trial.stream, second]),
      new Map([
        [one, 2n ** 62n + 1n],
        [two, 2n ** 62n + 2n],
        [eight, 4n],
      ]),
    );
    assert.deepEqual([...(await recordsOf(inspector, schema, [second])).keys()], [eight]);
    const found: readonly (StoredRecord | null)[] = await inspector.find(schema, [two, three, 'nowhere'], signal);
    assert.deepEqual(found, [{ target: two, version: 2n ** 62n + 2n }, null, null]);
  },

  'inspect: a rewrite mends what is older, and moves no marker': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(schema, itemRow(1, 'wrong'), 5), put(schema, itemRow(2, 'newer'), 50));
    const rows = [itemRow(1), itemRow(2), itemRow(3)].map((row) => inspected(schema, row));
    await sink.inspector.rewrite(trial.stream, rows, 20n, signal);
    await trial.assertRows(schema, [itemRow(1), itemRow(2, 'newer'), itemRow(3)]);
    assert.equal(await sink.readMarker(trial.stream), writer.marker);
    await writer.applied(1, put(schema, itemRow(3, 'older'), 19), put(schema, itemRow(1, 'next'), 21));
    await trial.assertRows(schema, [itemRow(1, 'next'), itemRow(2, 'newer'), itemRow(3)]);
  },

  'inspect: a repair writes over its own version, a writer does not': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, ...[1, 2, 3].map((id) => put(schema, itemRow(id, 'wrong'), 20)));
    await writer.applied(0, put(schema, itemRow(3), 20));
    await sink.inspector.rewrite(trial.stream, [inspected(schema, itemRow(1))], 20n, signal);
    await sink.inspector.remove(schema, [sink.inspector.targetOf(inspected(schema, itemRow(2)))], 20n, signal);
    await trial.assertRows(schema, [itemRow(1), itemRow(3, 'wrong')]);
  },

  'inspect: a removal deletes what is older, for good': async (trial) => {
    const schema = items(trial.database);
    const sink = await trial.sink(schema);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 5), put(schema, itemRow(2), 50));
    const targets = [1, 2, 3].map((id) => sink.inspector.targetOf(inspected(schema, itemRow(id))));
    await sink.inspector.remove(schema, targets, 20n, signal);
    await trial.assertRows(schema, [itemRow(2)]);
    await writer.applied(1, put(schema, itemRow(1, 'older'), 19));
    await trial.assertRows(schema, [itemRow(2)]);
  },
};
