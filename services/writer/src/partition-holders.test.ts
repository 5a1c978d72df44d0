/** A sink whose data others hold now: rows may be gone that lie before the marker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCatalogue } from '@mysync/core';
import { desk } from './desk.fixture.ts';
import { type SetUp, setUp } from './loop.fixture.ts';
import { parseMarker } from './marker.ts';
import { MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';

const errors = errorCatalogue({ TEST_POISON: { remedy: 'mend it', retriable: false } });
const SPAN_MS = 1_000;

function held(given: SetUp = {}) {
  const sink = given.sink ?? new MemorySink();
  const store = { holders: 'first' };
  sink.holders = () => Promise.resolve(store.holders);
  const running = setUp({ replayMs: SPAN_MS, maxChanges: 1, ...given, sink });
  /** One of the servers is another one now, and lacks these rows; the marker stands where it stood. */
  const failOver = (...lost: readonly string[]): void => {
    store.holders += ' and another';
    for (const key of lost) sink.rows.delete(key);
    running.loop.doubt();
  };
  return { ...running, store, failOver };
}

/** Applies row after row, `ms` apart. */
async function fill(running: ReturnType<typeof held>, from: number, to: number, ms: number): Promise<void> {
  const { log, assigned, clock, applied } = running;
  for (let id = from; id <= to; id += 1) {
    clock.ms += ms;
    log.put(id, `v${id}`);
    assigned.news();
    await applied(log.end);
  }
}

test('rows that went with a server come again, of a span and no more', async () => {
  const running = held();
  await fill(running, 1, 40, 100);
  const { sink, failOver, applied, stop } = running;
  failOver('1', '35', '40');
  sink.changed.length = 0;
  await turnsUntil('the last row is there again', () => sink.rows.has('40'));
  await applied(40);
  assert.deepEqual(sink.changed, [34, 39], 'what is older than two spans is left to verify');
  await stop();
});

test('a row that was lost while nobody ran is applied by the next one', async () => {
  const running = held();
  await fill(running, 1, 20, 100);
  await running.stop();
  const { sink, log, failOver } = running;
  failOver('20');
  const next = setUp({ replayMs: SPAN_MS, sink, log, clock: running.clock });
  await turnsUntil('the last row is there again', () => sink.rows.has('20'));
  await next.applied(20);
  await next.stop();
});

test('killed while it applies again: the next one goes on, and goes back no further', async () => {
  const running = held();
  await fill(running, 1, 40, 100);
  const { sink, log, assigned, failOver } = running;
  sink.hooks.push(async () => {
    assigned.revoke.abort();
    throw errors.TEST_POISON({ message: 'killed' });
  });
  log.put(41, 'v41');
  failOver('38', '40');
  await running.done;
  const back = sink.next;
  assert.ok(back >= 20 && back < 38, `${back}`);
  const next = setUp({ replayMs: SPAN_MS, sink, log, clock: running.clock });
  await next.applied(41);
  assert.deepEqual(Object.keys(sink.states()).length, 41);
  await next.stop();
});

test('a backup that comes back long after: from a span before its own marker', async () => {
  const running = held();
  await fill(running, 1, 40, 100);
  const { sink, log, clock, assigned, applied, store, stop } = running;
  // the marker was copied later than the rows
  const backup = { marker: sink.marker, rows: [...sink.rows].filter(([key]) => Number(key) < 35) };
  await fill(running, 41, 60, 100);
  clock.ms += 100 * SPAN_MS;
  sink.marker = backup.marker;
  sink.rows.clear();
  for (const [key, row] of backup.rows) sink.rows.set(key, row);
  store.holders += ' restored';
  running.loop.doubt();
  log.put(61, 'v61');
  assigned.news();
  await turnsUntil('the last row is there', () => sink.rows.has('61'));
  await applied(61);
  assert.equal(sink.rows.size, 61);
  await stop();
});

test('the same servers as before: nothing is applied again', async () => {
  const running = held();
  await fill(running, 1, 20, 100);
  const { sink, loop, stop } = running;
  const owners = sink.owners.length;
  loop.doubt();
  await turnsUntil('the marker was read again', () => running.loop.status().state === 'running');
  assert.equal(sink.next, 20);
  assert.equal(sink.owners.length, owners);
  await stop();
});

test('a key that is set aside stays so, and one that was released since is not set aside again', async () => {
  const sink = new MemorySink();
  let bad = true;
  sink.refuses = (change) => {
    const id = change.kind === 'put' ? String(change.row[0]) : '';
    const refused = id === '6' || (id === '5' && bad);
    return refused ? errors.TEST_POISON({ message: 'it is bad' }) : null;
  };
  const running = held({ sink, onPoison: 'park' });
  await fill(running, 1, 15, 100);
  const { log, assigned, applied, stop, failOver, clock } = running;
  bad = false;
  sink.shared = true;
  await desk(log, sink).release(({ offset }) => offset === 4);
  assert.ok(sink.rows.has('5'));
  clock.ms += 100;
  failOver('5', '15');
  log.put(16, 'v16');
  assigned.news();
  await turnsUntil('the rows are there again', () => sink.rows.has('15'));
  await applied(16);
  const parked = parseMarker(sink.marker ?? '', {}).parked ?? [];
  assert.deepEqual(
    parked.map(({ offset }) => offset),
    [5],
  );
  assert.ok(sink.rows.has('5'));
  await stop();
});

test('a log that does not reach back that far: from where it begins', async () => {
  const running = held();
  await fill(running, 1, 20, 100);
  await running.stop();
  const { sink, log, failOver } = running;
  failOver('3', '20');
  const assigned = new ScriptedPartition({ log, earliest: 20 });
  const next = setUp({ replayMs: SPAN_MS, sink, log, assigned, clock: running.clock });
  log.put(21, 'v21');
  assigned.news();
  await next.applied(21);
  assert.equal(sink.rows.has('3'), false);
  await next.stop();
});
