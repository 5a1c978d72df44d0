/** Rows that are larger than the log takes: their messages name a key and hold no row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desk, parked } from './desk.fixture.ts';
import { MemoryLetters, setUp } from './loop.fixture.ts';
import { parkedName } from './parked-keys.ts';
import { MemorySink, ScriptedPartition } from './partition.fixture.ts';
import { TestLog } from './test-log.fixture.ts';

async function released(log: TestLog, sink: MemorySink): Promise<readonly (readonly string[])[]> {
  return (await desk(log, sink).release(() => true)).map(({ result, code }) => [result, code]);
}

test('park: the key is set aside and told, all others go on', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'old').withhold(2).put(3, 'c');
  const { stop, applied, sink } = setUp({ log, onPoison: 'park', maxChanges: 1 });
  await applied(4);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'old', 3: 'c' });
  const [entry, ...others] = parked(sink);
  assert.ok(entry);
  assert.equal(others.length, 0);
  assert.equal(parkedName(entry), 'shop.orders 2');
  assert.deepEqual([entry.code, entry.operation, entry.offset], ['WRITER_ROW_WITHHELD', 'put', 2]);
  await stop();
  assert.deepEqual(await released(log, sink), [['refused', 'WRITER_ROW_WITHHELD']]);
  assert.equal(parked(sink).length, 1, 'it stays set aside');
});

test('the next change that fits is applied by itself, and the key is free', async () => {
  const log = new TestLog().withhold(1).withhold(2).withhold(3);
  const { stop, applied, sink, assigned } = setUp({ log, onPoison: 'park' });
  await applied(3);
  assert.equal(parked(sink).length, 3);
  log.put(1, 'fits').remove(2).withhold(3).put(4, 'd');
  assigned.news();
  await applied(7);
  assert.deepEqual(sink.states(), { 1: 'fits', 4: 'd' });
  assert.equal(sink.rows.get('2')?.state, null, 'the deletion was applied');
  assert.deepEqual(
    parked(sink).map(({ key, waiting }) => [parkedName({ key }), waiting]),
    [['shop.orders 3', 1]],
  );
  await stop();
});

test('what fits within the same batch is all that is applied: nothing is set aside', async () => {
  const log = new TestLog().withhold(1).put(1, 'fits').withhold(2).remove(2);
  const { stop, applied, sink } = setUp({ log, onPoison: 'park' });
  await applied(4);
  assert.deepEqual(sink.states(), { 1: 'fits' });
  assert.deepEqual(parked(sink), []);
  await stop();
});

test('a part of a row behind it does not free the key: it lacks what was withheld', async () => {
  const log = new TestLog().put(1, 'old').withhold(1);
  const { stop, applied, sink, assigned } = setUp({ log, onPoison: 'park', maxChanges: 1 });
  await applied(2);
  log.row('update', [1, 'x', null], [1, 'part', undefined]);
  assigned.news();
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'old' });
  assert.equal(parked(sink).length, 1);
  await stop();
});

test('it is read again from the marker by the next owner, and a truncate ends it', async () => {
  const log = new TestLog().withhold(1);
  const sink = new MemorySink();
  const first = setUp({ log, sink, onPoison: 'park' });
  await first.applied(1);
  await first.stop();
  log.put(1, 'fits').withhold(2).truncate();
  const assigned = new ScriptedPartition({ log, committed: 1 });
  const second = setUp({ log, sink, assigned, onPoison: 'park' });
  await second.applied(4);
  assert.deepEqual(sink.states(), {});
  assert.deepEqual(parked(sink), []);
  await second.stop();
});

test('halt: the partition stops with the key, the cause and what to do', async () => {
  const log = new TestLog().put(1, 'a').withhold(2).put(3, 'c');
  const { halted, sink, stop } = setUp({ log, onPoison: 'halt', maxChanges: 1 });
  const detail = await halted();
  assert.match(detail, /WRITER_CHANGE_REFUSED/);
  assert.match(detail, /the row is larger than the log takes/);
  assert.deepEqual(sink.states(), { 1: 'a' });
  await stop();
});

test('dead-letter: the change goes to its topic, and a later one is applied', async () => {
  const deadLetters = new MemoryLetters();
  const log = new TestLog().withhold(1).put(2, 'b');
  const { stop, applied, sink, assigned } = setUp({ log, onPoison: 'dead-letter', deadLetters });
  await applied(2);
  assert.deepEqual(
    deadLetters.letters.map(({ offset }) => offset),
    [0],
  );
  log.put(1, 'fits');
  assigned.news();
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'fits', 2: 'b' });
  await stop();
});
