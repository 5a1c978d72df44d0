import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTableRef, isMysyncError, type MysyncError, silentLogger, systemClock } from '@mysync/core';
import type { Batch } from '@mysync/flow';
import { createMetrics } from '@mysync/telemetry';
import { type OutgoingRecord, transportErrors } from '@mysync/transport';
import type { WindowEntry } from './change-router.ts';
import { type LargeRowPolicy, LargeRows } from './large-rows.ts';
import { rowEntry as entry, readRow as read } from './rows.fixture.ts';

const batchOf = (...items: WindowEntry[]): Batch<WindowEntry> =>
  ({ id: 1, generation: 0, base: 1, firstSequence: 1, items, bytes: 0 }) as Batch<WindowEntry>;

function refusal(record: number): MysyncError {
  return transportErrors.TRANSPORT_RECORD_TOO_LARGE({ message: 'it is', where: { record } }) as MysyncError;
}

/** `limit`: up to so many bytes of key and message are taken. */
function largeRows(policy: LargeRowPolicy, limit = Number.POSITIVE_INFINITY) {
  const metrics = createMetrics();
  const asked: string[] = [];
  const onLargeRow = (table: Parameters<typeof formatTableRef>[0]): LargeRowPolicy => {
    asked.push(formatTableRef(table));
    return policy;
  };
  const lines: (readonly [string, unknown])[] = [];
  const tell = (fields: object, message: string) => void lines.push([message, (fields as { rows?: number }).rows]);
  const logger = { ...silentLogger, warn: tell, error: tell };
  const clock = { ...systemClock, monotonic: () => now.ms };
  const now = { ms: 5 };
  const publisher = {
    surelyTakenBytes: limit - 64,
    takes: ({ key, value, headers }: OutgoingRecord) => {
      return key.length + (value?.length ?? headers[0]?.value.length ?? 0) <= limit;
    },
  };
  const rows = new LargeRows({ source: 's', publisher, onLargeRow, clock, logger, metrics });
  return { rows, metrics, asked, lines, now };
}

test('withhold: an update loses its image before first, then the row is withheld, then there is no way left', async () => {
  const { rows, metrics, asked } = largeRows('withhold');
  const beside = entry('insert', null, [1, 'us', 'a']);
  const large = entry('update', [2, 'us', 'before'], [2, 'us', 'after']);
  const { key } = large.message;
  const batch = batchOf(beside, large);
  assert.equal(rows.meet(refusal(1), batch), null);
  assert.deepEqual(
    [read(large).operation, read(large).before, read(large).after],
    ['update', [2, 'us', undefined], [2, 'us', 'after']],
  );
  assert.equal(rows.meet(refusal(1), batch), null);
  assert.deepEqual([read(large).operation, read(large).before, read(large).after], ['withheld', null, null]);
  assert.deepEqual(Buffer.from(large.message.key), Buffer.from(key));
  assert.equal(read(large).source.change.ordinal, 3);
  const failure = rows.meet(refusal(1), batch);
  assert.ok(isMysyncError(failure, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.equal(read(beside).operation, 'insert', 'its neighbour is untouched');
  assert.deepEqual(new Set(asked), new Set(['shop.orders']));
  const [counted, ...more] = (await metrics.reader.withheldRows.get()).values;
  assert.deepEqual([counted?.value, counted?.labels['table'], more.length], [1, 'shop.orders', 0]);
});

test('withhold: a deletion keeps what names the row in a sink (key and partitionBy), and is never withheld', () => {
  const { rows } = largeRows('withhold');
  const large = entry('delete', [2, 'us', 'before'], null);
  assert.equal(rows.meet(refusal(0), batchOf(large)), null);
  assert.deepEqual([read(large).operation, read(large).before], ['delete', [2, 'us', undefined]]);
  assert.ok(isMysyncError(rows.meet(refusal(0), batchOf(large)), 'TRANSPORT_RECORD_TOO_LARGE'));
});

test('halt: the error names row, table, place and the limit that would do; the message stays as it is', () => {
  const { rows } = largeRows('halt');
  const large = entry('insert', null, [2, 'us', 'a']);
  const { bytes } = large.message;
  const failure = rows.meet(refusal(0), batchOf(large));
  assert.ok(isMysyncError(failure, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.deepEqual(failure.where, {
    record: 0,
    table: 'shop.orders',
    row: '{"id":2,"region":"us"}',
    position: 'binlog.000007:4711',
    gtid: '0-1-9',
  });
  assert.match(failure.remedy, /to 1048576 or more/);
  assert.equal(large.message.bytes, bytes);
});

test('a refusal of a whole batch, and no record, changes nothing', () => {
  const { rows } = largeRows('withhold', 10);
  const large = entry('insert', null, [2, 'us', 'a']);
  const together = transportErrors.TRANSPORT_RECORD_TOO_LARGE({ message: 'it is', where: {} });
  assert.equal(rows.meet(together as MysyncError, batchOf(large)), null);
  assert.equal(read(large).operation, 'insert');
});

test('one step takes a row as far as the transport wants it: both images, one, or none', () => {
  const bytesOf = (...row: Parameters<typeof entry>): number => entry(...row).message.bytes;
  const note = 'n'.repeat(500);
  const limit = bytesOf('insert', null, [2, 'us', note]) + 20;
  const { rows, lines } = largeRows('withhold', limit);
  const cases = [
    [entry('update', [2, 'us', 'a'], [2, 'us', 'b']), ['update', 'a', 'b']],
    [entry('update', [2, 'us', note], [2, 'us', note]), ['update', undefined, note]],
    [entry('update', [2, 'us', note], [2, 'us', note + note]), ['withheld']],
    [entry('insert', null, [2, 'us', note + note]), ['withheld']],
    [entry('delete', [2, 'us', note + note], null), ['delete', undefined]],
  ] as const;
  for (const [row, wanted] of cases) {
    rows.fit(row);
    const { operation, before, after } = read(row);
    const notes = [before, after].flatMap((image) => (image === null ? [] : [image[2]]));
    assert.deepEqual([operation, ...notes], wanted);
    assert.ok(row.message.bytes <= limit);
    assert.equal(
      rows.meet(refusal(0), batchOf(row)) === null,
      operation === 'update',
      'and one step more when refused',
    );
  }
  assert.ok(lines.length < 4);
});

test('halt: what does not fit stays as it is, to be refused', () => {
  const { rows } = largeRows('halt', 10);
  const large = entry('insert', null, [2, 'us', 'a']);
  rows.fit(large);
  assert.equal(read(large).operation, 'insert');
});

test('withheld rows are told once in a while with a count; the metric has each', async () => {
  const { rows, lines, metrics, now } = largeRows('withhold', 10);
  const one = () => rows.fit(entry('insert', null, [2, 'us', 'a']));
  for (let i = 0; i < 50; i += 1) one();
  now.ms += 10_000;
  one();
  const withheld = 'row withheld: its message is larger than the transport takes';
  assert.deepEqual(lines, [
    [withheld, 1],
    [withheld, 50],
  ]);
  assert.equal((await metrics.reader.withheldRows.get()).values[0]?.value, 51);
});

test('what is left of a withheld row: the remedy names a limit that can be set, and no option that is set', () => {
  const failureOf = (policy: LargeRowPolicy, bytes: number) => {
    const { rows } = largeRows(policy);
    const row = entry('insert', null, [2, 'us', 'a'], '');
    if (policy === 'withhold') assert.equal(rows.meet(refusal(0), batchOf(row)), null);
    Object.defineProperty(row.message, 'bytes', { value: bytes });
    const failure = rows.meet(refusal(0), batchOf(row));
    assert.ok(isMysyncError(failure));
    assert.ok(!('gtid' in failure.where), 'a snapshot has none');
    return failure;
  };
  assert.match(failureOf('halt', 1000).remedy, /onLargeRow/);
  const left = failureOf('withhold', 3 * 2 ** 20);
  assert.match(left.message, /what is left of the row/);
  assert.doesNotMatch(left.remedy, /onLargeRow/);
  assert.match(left.remedy, /4194304 or more/);
  for (const policy of ['halt', 'withhold'] as const) {
    assert.match(failureOf(policy, 2 ** 30).remedy, /^No limit that can be configured/);
  }
});
