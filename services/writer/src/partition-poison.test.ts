/** Changes that the sink can never take: set aside, put away, or in the way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCatalogue } from '@mysync/core';
import type { SinkChange } from '@mysync/sink';
import { makeTableSchema } from '@mysync/wire';
import { desk, parked } from './desk.fixture.ts';
import { MemoryLetters, type SetUp, setUp } from './loop.fixture.ts';
import { parseMarker } from './marker.ts';
import { parkedName } from './parked-keys.ts';
import { MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';
import { schema, TestLog } from './test-log.fixture.ts';

const errors = errorCatalogue({
  TEST_POISON: { remedy: 'mend it', retriable: false },
  TEST_TABLE: { remedy: 'mend the mapping', retriable: false, scope: 'table' },
});

/** Rows that say so are refused. */
function refusing(sink: MemorySink): void {
  sink.refuses = (change: SinkChange) => {
    const bad = change.kind === 'put' && String(change.row[1]).startsWith('bad');
    return bad ? errors.TEST_POISON({ message: 'it is bad' }) : null;
  };
}

function park(given: SetUp = {}): ReturnType<typeof setUp> {
  const sink = given.sink ?? new MemorySink();
  refusing(sink);
  return setUp({ onPoison: 'park', ...given, sink });
}

test('a refused change sets its key aside; its neighbours are applied and the partition goes on', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'bad').put(3, 'c');
  const { stop, applied, sink, assigned, loop, metrics } = park({ log });
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'a', 3: 'c' });
  const [entry, ...others] = parked(sink);
  assert.ok(entry);
  assert.equal(others.length, 0);
  assert.equal(parkedName(entry), 'shop.orders 2');
  assert.deepEqual([entry.first, entry.offset, entry.code, entry.waiting], [1, 1, 'TEST_POISON', 0]);
  assert.equal(loop.status().parkedKeys, 1);
  loop.refresh();
  assert.deepEqual(
    (await metrics.writer.parkedKeys.get()).values.map(({ value }) => value),
    [1],
  );
  const [counted] = (await metrics.writer.parkedChanges.get()).values;
  assert.deepEqual([counted?.value, counted?.labels['code']], [1, 'TEST_POISON']);
  await stop();
  assert.equal(assigned.commits.at(-1), 3);
});

test('later changes of the key wait behind it, also good ones; released is the newest, with its own version', async () => {
  const log = new TestLog().put(1, 'bad');
  const { stop, applied, sink, assigned } = park({ log });
  await applied(1);
  log.put(1, 'good').put(2, 'b').remove(1).put(1, 'newest');
  assigned.news();
  await applied(5);
  assert.deepEqual(sink.states(), { 2: 'b' });
  assert.deepEqual(
    parked(sink).map(({ first, offset, operation }) => [first, offset, operation]),
    [[0, 4, 'put']],
  );
  await stop();
  const results = await desk(log, sink).release(() => true);
  assert.deepEqual(
    results.map(({ first, result }) => [first, result]),
    [[0, 'applied']],
  );
  assert.deepEqual(sink.states(), { 1: 'newest', 2: 'b' });
  assert.equal(sink.rows.get('1')?.version, (5n << 20n) + 1n);
  assert.deepEqual(parked(sink), []);
  assert.equal(sink.next, 5, 'the place in the log stays');
});

test('a key that was deleted while it waited is deleted at its release', async () => {
  const sink = new MemorySink();
  const log = new TestLog().put(1, 'old').put(1, 'bad').remove(1);
  const { stop, applied } = park({ log, sink, maxChanges: 1 });
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'old' });
  await stop();
  await desk(log, sink).release(() => true);
  assert.deepEqual(sink.states(), {});
});

test('what the sink still refuses stays set aside, with the new reason', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad too');
  const { stop, applied, sink } = park({ log });
  await applied(2);
  await stop();
  sink.refuses = (change) =>
    change.kind === 'put' && change.row[1] === 'bad' ? errors.TEST_TABLE({ message: 'another reason' }) : null;
  const results = await desk(log, sink).release(() => true);
  assert.deepEqual(results.map(({ first, result, code }) => [first, result, code]).sort(), [
    [0, 'refused', 'TEST_TABLE'],
    [1, 'applied', 'TEST_POISON'],
  ]);
  assert.deepEqual(
    parked(sink).map(({ first, reason }) => [first, reason]),
    [[0, 'another reason']],
  );
  assert.deepEqual(sink.states(), { 2: 'bad too' });
});

test('discarded: the sink keeps what it has until the next change of the key', async () => {
  const log = new TestLog().put(1, 'old').put(1, 'bad');
  const { stop, applied, sink, assigned } = park({ log, maxChanges: 1 });
  await applied(2);
  await desk(log, sink).discard(({ first }) => first === 1);
  assert.deepEqual(parked(sink), []);
  log.put(1, 'new');
  assigned.news();
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'new' });
  await stop();
});

test('a truncate clears the keys that are older than it, and no others', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'b').truncate().put(3, 'bad');
  const { stop, applied, sink } = park({ log });
  await applied(4);
  assert.deepEqual(sink.states(), {});
  assert.deepEqual(
    parked(sink).map(({ first }) => first),
    [3],
  );
  await stop();
  sink.refuses = () => null;
  await desk(log, sink).release(() => true);
  assert.deepEqual(sink.states(), { 3: 'bad' });
});

test('a sweep clears the keys whose newest change is older than its snapshot, and no others', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad').put(2, 'good').sweep(3);
  const { stop, applied, sink } = park({ log, maxChanges: 1 });
  await applied(4);
  assert.deepEqual(
    parked(sink).map(({ first, offset }) => [first, offset]),
    [[1, 2]],
  );
  await stop();
});

test('a key parked in a unit that does not move the marker stands in it all the same', async () => {
  const log = new TestLog().put(1, 'bad').truncate();
  const sink = new MemorySink();
  const markers: (string | null)[] = [];
  sink.hooks.push(
    (_, apply) => apply(),
    (_, apply) => {
      markers.push(sink.marker);
      return apply();
    },
  );
  const { stop, applied } = park({ log, sink });
  await applied(2);
  await stop();
  const stood = parseMarker(markers[0] ?? '', {});
  assert.equal(stood.nextOffset, 0);
  assert.deepEqual(
    stood.parked?.map(({ first }) => first),
    [0],
  );
  assert.deepEqual(parked(sink), []);
});

test('a new owner reads what is set aside before its first apply', async () => {
  const log = new TestLog().put(1, 'bad');
  const first = park({ log });
  await first.applied(1);
  await first.stop();
  log.put(1, 'good').put(2, 'b');
  const second = park({ log, sink: first.sink, assigned: new ScriptedPartition({ log, committed: 1 }) });
  await second.applied(3);
  assert.deepEqual(first.sink.states(), { 2: 'b' });
  assert.deepEqual(
    parked(first.sink).map(({ offset, waiting }) => [offset, waiting]),
    [[1, 1]],
  );
  await second.stop();
});

test('a sink restored from before: what was set aside since is met again', async () => {
  const log = new TestLog().put(1, 'a');
  const { stop, applied, sink, assigned } = park({ log, maxChanges: 1 });
  await applied(1);
  const { marker } = sink;
  log.put(2, 'bad').put(2, 'good');
  assigned.news();
  await applied(3);
  sink.marker = marker;
  sink.doubt();
  await applied(3);
  assert.deepEqual(parked(sink).length, 1);
  assert.deepEqual(sink.states(), { 1: 'a' });
  await stop();
});

test('too many keys: halted, with the marker before the change', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad').put(3, 'bad');
  const { stop, halted, sink } = park({ log, maxParkedKeys: 2, maxChanges: 1 });
  assert.match(
    await halted(),
    /^WRITER_PARKED_FULL: 2 keys are set aside.*TEST_POISON: it is bad\n {2}where: .*offset 2/,
  );
  assert.equal(sink.next, 2);
  assert.equal(parked(sink).length, 2);
  await stop();
});

test('dead letters: each is put away before the marker passes it, and later changes of its key are applied', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'b');
  const sink = new MemorySink();
  refusing(sink);
  const deadLetters = new MemoryLetters();
  const nexts: number[] = [];
  deadLetters.onPut = () => nexts.push(sink.next);
  const { stop, applied, assigned } = setUp({ log, sink, onPoison: 'dead-letter', deadLetters });
  await applied(2);
  log.put(1, 'good');
  assigned.news();
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'good', 2: 'b' });
  assert.deepEqual(
    deadLetters.letters.map(({ offset }) => offset),
    [0],
  );
  assert.deepEqual(nexts, [0]);
  assert.deepEqual(parked(sink), []);
  await stop();
});

test('a dead letter that cannot be stored halts: the marker does not pass it', async () => {
  const log = new TestLog().put(1, 'bad');
  const sink = new MemorySink();
  refusing(sink);
  const deadLetters = new MemoryLetters();
  deadLetters.onPut = () => {
    throw errors.TEST_POISON({ message: 'denied' });
  };
  const { stop, halted } = setUp({ log, sink, onPoison: 'dead-letter', deadLetters });
  assert.match(await halted(), /^TEST_POISON: denied/);
  assert.equal(sink.next, 0);
  await stop();
});

test('a table that does not fit: its rows are set aside one by one, those of other tables go on', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b', otherTable()).put(1, 'c');
  const sink = new MemorySink();
  sink.onPrepare = ({ table }) => {
    if (table === 'orders') throw errors.TEST_TABLE({ message: 'no such column' });
  };
  const { stop, applied } = setUp({ log, sink, onPoison: 'park' });
  await applied(3);
  assert.deepEqual(sink.states(), { 2: 'b' });
  assert.deepEqual(
    parked(sink).map(({ offset, code }) => [offset, code]),
    [[2, 'TEST_TABLE']],
  );
  await stop();
  sink.onPrepare = () => undefined;
  await desk(log, sink).release(() => true);
  assert.deepEqual(sink.states(), { 1: 'c', 2: 'b' });
});

test('what is not about a table halts in prepare, whatever the policy', async () => {
  const sink = new MemorySink();
  sink.onPrepare = () => {
    throw errors.TEST_POISON({ message: 'denied' });
  };
  const { stop, halted } = setUp({ log: new TestLog().put(1, 'a'), sink, onPoison: 'park' });
  assert.match(await halted(), /^TEST_POISON: denied/);
  await stop();
});

test('a refused clear halts, whatever the policy', async () => {
  const sink = new MemorySink();
  sink.refuses = (change) => (change.kind === 'clear' ? errors.TEST_POISON({ message: 'no' }) : null);
  const { stop, halted } = setUp({ log: new TestLog().put(1, 'a').truncate(), sink, onPoison: 'park' });
  assert.match(await halted(), /^WRITER_CHANGE_REFUSED/);
  await stop();
});

test('parts of a row that wait are merged at the release', async () => {
  const log = new TestLog()
    .put(1, 'bad')
    .row('update', [1, 'x', null], [1, 'whole', Buffer.from('k')])
    .row('update', [1, undefined, null], [1, undefined, null]);
  const { stop, applied, sink, assigned } = park({ log, maxChanges: 1 });
  await applied(3);
  log.row('update', [1, undefined, null], [1, 'last', undefined]);
  assigned.news();
  await applied(4);
  assert.deepEqual(
    parked(sink).map(({ from, offset }) => [from, offset]),
    [[1, 3]],
  );
  const seen: SinkChange[] = [];
  sink.hooks.push((batch, apply) => {
    seen.push(...batch.changes);
    return apply();
  });
  await desk(log, sink).release(() => true);
  assert.deepEqual(
    seen.map((change) => change.kind === 'put' && change.row),
    [[1, 'last', null]],
  );
  await stop();
});

test('released while its writer runs: the writer resumes from the marker that stands then, and nothing is lost', async () => {
  const log = new TestLog().put(1, 'bad');
  const { stop, applied, sink, assigned } = park({ log });
  sink.shared = true;
  await applied(1);
  log.put(1, 'newest').put(2, 'b');
  assigned.news();
  await applied(3);
  await desk(log, sink).release(() => true);
  log.put(3, 'c').put(1, 'after');
  assigned.news();
  await applied(5);
  assert.deepEqual(sink.states(), { 1: 'after', 2: 'b', 3: 'c' });
  assert.deepEqual(parked(sink), []);
  await stop();
});

test('the newest change is gone from the log: applied when it comes, or kept with its reason', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad');
  const { stop, applied, sink } = park({ log });
  await applied(2);
  await stop();
  // Compaction: a newer change of key 1 lies further on, none of key 2.
  log.put(1, 'newer');
  log.records.splice(0, 2);
  const results = await desk(log, sink).release(() => true);
  assert.deepEqual(
    results.map(({ first, result }) => [first, result]),
    [
      [0, 'superseded'],
      [1, 'gone'],
    ],
  );
  assert.deepEqual(
    parked(sink).map(({ first }) => first),
    [1],
  );
});

function otherTable() {
  return makeTableSchema({ ...schema, table: 'others' });
}

/** Numbers that a seed repeats. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('random changes, owners, releases and restores: once mended and released, the sink equals the table', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = generator(seed);
    const log = new TestLog();
    const sink = new MemorySink();
    sink.shared = true;
    refusing(sink);
    const model = new Map<number, string>();
    const backups: { marker: string | null; rows: Map<string, { state: string | null; version: bigint }> }[] = [];
    let run = setUp({ log, sink, onPoison: 'park', maxChanges: 1 + random(6) });
    for (let step = 0; step < 30; step += 1) {
      for (let count = random(8); count > 0; count -= 1) {
        const id = random(5);
        const kind = random(12);
        if (kind === 0) {
          log.truncate();
          model.clear();
        } else if (kind < 3) {
          log.remove(id);
          model.delete(id);
        } else {
          const state = `${kind < 6 ? 'bad' : 'good'} ${step}.${count}`;
          log.put(id, state);
          model.set(id, state);
        }
      }
      run.assigned.news();
      const deed = random(6);
      if (deed === 0) {
        // Killed: whatever it has under way is cut off.
        await run.stop();
        run = setUp({
          log,
          sink,
          onPoison: 'park',
          maxChanges: 1 + random(6),
          assigned: new ScriptedPartition({ log, committed: run.assigned.commits.at(-1) ?? null }),
        });
      } else if (deed === 1) {
        const keys = await desk(log, sink).release(() => random(2) === 0);
        for (const { result } of keys) assert.ok(['applied', 'refused'].includes(result), `seed ${seed}: ${result}`);
      } else if (deed === 2 && sink.marker !== null) {
        backups.push({ marker: sink.marker, rows: new Map(sink.rows) });
      } else if (deed === 3 && backups.length > 0) {
        const backup = backups[random(backups.length)];
        sink.marker = backup?.marker ?? null;
        sink.rows.clear();
        for (const [key, row] of backup?.rows ?? []) sink.rows.set(key, row);
        sink.doubt();
      } else {
        await run.applied(log.end);
      }
    }
    run.assigned.news();
    await turnsUntil(`seed ${seed}: the end, ${JSON.stringify(run.loop.status())}`, () => sink.next === log.end);
    sink.refuses = () => null;
    const results = await desk(log, sink).release(() => true);
    for (const { result } of results) assert.equal(result, 'applied', `seed ${seed}`);
    assert.deepEqual(parked(sink), []);
    const states = Object.fromEntries([...model].map(([id, state]) => [String(id), state]));
    assert.deepEqual(sink.states(), states, `seed ${seed}`);
    await run.stop();
  }
});
