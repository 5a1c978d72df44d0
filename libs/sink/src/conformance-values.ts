/** Values and keys arrive as they are. */
import assert from 'node:assert/strict';
import type { ColumnValue } from '@mysync/core';
import { del, itemRow, items, itemsWithExtra, pairs, put, type Trial, TrialWriter } from './conformance-kit.ts';

type Tests = Record<string, (trial: Trial) => Promise<void>>;

export const valueTests: Tests = {
  'values arrive as they are': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const allBytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const rows: ColumnValue[][] = [
      [1, '', 0, '0.0000000000', 0, new Uint8Array(), ''],
      [2, null, null, null, null, null, null],
      [3, 'null', 9007199254740991, '-0.0000000001', -1.5e-300, allBytes, 'NULL'],
      [
        4,
        '日本 😀 é "quoted" \\ \n\t\u0001 {x}',
        9007199254740993n,
        '99999999999999999999.9999999999',
        1e21,
        allBytes,
        '\u2028',
      ],
      [
        5,
        ' trailing ',
        18446744073709551615n,
        '1.0000000000',
        0.30000000000000004,
        new Uint8Array([0]),
        'x'.repeat(100_000),
      ],
      [9007199254740993n, 'big', 1, '0.1000000000', 5e-324, new Uint8Array([255]), '%3A'],
      [-9223372036854775808n, 'low', 1, '0.1000000000', 1.7976931348623157e308, new Uint8Array([255]), '-'],
      [0, 'zero', 1, '0.1000000000', 1, new Uint8Array([255]), '-'],
    ];
    await writer.applied(0, ...rows.map((row, at) => put(schema, row, at + 1)));
    await trial.assertRows(schema, rows);
    const emptied = rows.map((row): ColumnValue[] => row.map((value, index) => (index === 0 ? value : null)));
    await writer.applied(0, ...emptied.map((row, at) => put(schema, row, at + 20)));
    await trial.assertRows(schema, emptied);
    await writer.applied(0, ...rows.map((row, at) => put(schema, row, at + 40)));
    await trial.assertRows(schema, rows);
  },

  'big keys that differ in the last digit are different rows': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const ids = [9007199254740991, 9007199254740992n, 9007199254740993n];
    await writer.applied(0, ...ids.map((id, at) => put(schema, itemRow(id), at + 1)));
    await writer.applied(0, del(schema, itemRow(9007199254740992n), 5));
    await trial.assertRows(schema, [itemRow(9007199254740991), itemRow(9007199254740993n)]);
    await writer.applied(0, del(schema, itemRow(9007199254740991n), 6));
    await trial.assertRows(schema, [itemRow(9007199254740993n)]);
  },

  'composite keys never collide, whatever is in them': async (trial) => {
    const schema = pairs(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    const keys = [
      ['x:y', 'z'],
      ['x', 'y:z'],
      ['x%3Ay', 'z'],
      ['', 'null'],
      ['null', ''],
      ['', ''],
      ['{a}', 'b'],
      ['a}', '{b'],
      ['}{', ':'],
      ['日本', '😀'],
      ['/', '\\"'],
      ['a b', '\n'],
      ['A', 'a'],
      ['a', 'A'],
    ];
    const rows = keys.map(([a, b], at): ColumnValue[] => [a, b, at]);
    await writer.applied(0, ...rows.map((row, at) => put(schema, row, at + 1)));
    await trial.assertRows(schema, rows);
    await writer.applied(0, ...rows.filter((_, at) => at % 2 === 0).map((row, at) => del(schema, row, at + 100)));
    await trial.assertRows(
      schema,
      rows.filter((_, at) => at % 2 === 1),
    );
  },

  'a column that comes is there from the next row on; one that goes does not come back': async (trial) => {
    const before = items(trial.database);
    const after = itemsWithExtra(trial.database);
    const sink = await trial.sink(before);
    const writer = await TrialWriter.start(sink, trial.stream);
    await writer.applied(0, put(before, itemRow(1), 1), put(before, itemRow(2), 2));
    await sink.prepare(after);
    await writer.applied(0, put(after, [...itemRow(2, 'wide'), 42], 3), put(before, itemRow(3), 4));
    const documents = await trial.bench.readAll(after);
    const extra = (name: string): unknown => documents.find((document) => document['name'] === name)?.['extra'];
    assert.equal(documents.length, 3);
    const column = after.columns.at(-1);
    assert.deepEqual(extra('wide'), column && trial.bench.show(42, column));
    assert.equal(extra('name 1'), undefined);
    await writer.applied(0, put(before, itemRow(2, 'narrow'), 5));
    await trial.assertRows(before, [itemRow(1), itemRow(2, 'narrow'), itemRow(3)]);
  },

  'tables that no rule maps are not accepted': async (trial) => {
    const sink = await trial.sink();
    assert.equal(sink.accepts(items(trial.database)), true);
    assert.equal(sink.accepts({ database: 'not_mapped', table: 'items' }), false);
  },
};

export const partialTests: Tests = {
  'columns that the image lacks keep what is stored': async (trial) => {
    const schema = items(trial.database);
    const writer = await TrialWriter.start(await trial.sink(schema), trial.stream);
    await writer.applied(0, put(schema, itemRow(1), 1));
    await writer.applied(0, put(schema, [1, 'changed', undefined, null, undefined, undefined, undefined], 2));
    const [id, , amount, , ratio, data, note] = itemRow(1);
    await trial.assertRows(schema, [[id, 'changed', amount, null, ratio, data, note]]);
    await writer.applied(1, put(schema, [1, undefined, 5, undefined, undefined, undefined, undefined], 1));
    await trial.assertRows(schema, [[id, 'changed', amount, null, ratio, data, note]]);
  },
};
