import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LogFields, type Logger, silentLogger } from '@mysync/core';
import { ProgressDisplay, progressLine } from './progress.ts';

const shop = { database: 'shop', table: 'orders' };

test('the line says rows, speed and time left, and is full only at the end', () => {
  assert.equal(
    progressLine('shop.orders', { table: shop, rows: 25, estimatedRows: 100, done: false }, 5, 15),
    'shop.orders  [####............]  25%  25 of ~100 rows  5 rows/s  15 s left',
  );
  assert.match(
    progressLine('t', { table: shop, rows: 500, estimatedRows: 100, done: false }, 5, null),
    / 99% {2}500 rows /,
  );
  assert.match(
    progressLine('t', { table: shop, rows: 0, estimatedRows: 0, done: true }, 0, null),
    /\[#{16}\] {2}100% {2}0 rows/,
  );
});

test('a terminal gets a bar drawn in place, a file log lines now and then', () => {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
  const shown = (live: boolean): { notes: string[]; logged: LogFields[] } => {
    now = 0;
    const notes: string[] = [];
    const logged: LogFields[] = [];
    const logger: Logger = { ...silentLogger, info: (fields) => logged.push(fields) };
    const output = { result: () => undefined, note: (text: string) => notes.push(text), live, columns: 80 };
    const display = new ProgressDisplay({ output, logger, clock });
    for (const [at, rows, done] of [
      [0, 0, false],
      [100, 10, false],
      [1_000, 100, false],
      [5_000, 500, false],
      [6_000, 600, true],
    ] as const) {
      now = at;
      display.show({ table: shop, rows, estimatedRows: 600, done });
    }
    return { notes, logged };
  };
  const terminal = shown(true);
  assert.equal(terminal.notes.length, 4, 'the one after 100 ms is left out');
  assert.equal(
    terminal.notes[1],
    '\r\x1b[2Kshop.orders  [###.............]  16%  100 of ~600 rows  100 rows/s  5 s left',
  );
  assert.match(terminal.notes.at(-1) ?? '', /600 rows .*\n$/);
  assert.deepEqual(terminal.logged, []);
  const file = shown(false);
  assert.deepEqual(file.notes, []);
  assert.deepEqual(
    file.logged.map((fields) => fields['rows']),
    [0, 500, 600],
  );
  assert.equal(file.logged[1]?.['secondsLeft'], 1);
});
