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

test('a sweep leaves the old row of a key that is set aside, a truncate does not', async () => {
  const log = new TestLog().put(1, 'old').put(2, 'old').put(3, 'old');
  const { stop, applied, sink, assigned } = setUp({ log, onPoison: 'park' });
  await applied(3);
  // the table is read again: row 1 is too large now, row 3 is gone
  log.withhold(1).put(2, 'read').sweep(4);
  assigned.news();
  await applied(6);
  assert.deepEqual(sink.states(), { 1: 'old', 2: 'read' });
  assert.equal(parked(sink).length, 1);
  log.truncate();
  assigned.news();
  await applied(7);
  assert.deepEqual(sink.states(), {});
  assert.deepEqual(parked(sink), []);
  await stop();
});

test('halt: the partition stops with the key, the cause and what to do', async () => {
  const log = new TestLog().put(1, 'a').withhold(2).put(3, 'c');
  const { halted, sink, stop } = setUp({ log, onPoison: 'halt', maxChanges: 1 });
  const detail = await halted();
  assert.match(detail, /WRITER_CHANGE_REFUSED/);
  assert.match(detail, /the row is larger than the log takes/);
  assert.match(detail, /change the row in the source .*then restart the writer.*onPoison: park/);
  assert.deepEqual(sink.states(), { 1: 'a' });
  await stop();
});

test('halt: once the row was made to fit, or is gone, a restart goes on', async () => {
  const log = new TestLog().put(1, 'a').withhold(2).put(3, 'c').withhold(4).withhold(5);
  const first = setUp({ log, maxChanges: 1 });
  await first.halted();
  await first.stop();
  log.put(2, 'fits').remove(4);
  const { sink } = first;
  const assigned = new ScriptedPartition({ log, committed: 1 });
  const second = setUp({ log, sink, assigned, maxChanges: 1 });
  assert.match(await second.halted(), /where: .*offset 4.*key 5/);
  assert.deepEqual(sink.states(), { 1: 'a', 3: 'c' });
  await second.stop();
  log.truncate();
  const third = setUp({ log, sink, assigned: new ScriptedPartition({ log, committed: 4 }), maxChanges: 1 });
  await third.applied(8);
  assert.deepEqual(sink.states(), {});
  await third.stop();
});

test('halt: what comes behind a withheld row and is withheld too, a part, or older, is no reason to go on', async () => {
  const older = new TestLog().put(1, 'older').withhold(1).put(2, 'b');
  older.againFrom(0);
  for (const log of [
    new TestLog().put(1, 'old').withhold(1).withhold(1),
    new TestLog().put(1, 'old').withhold(1).row('update', [1, 'x', null], [1, 'part', undefined]),
    older,
  ]) {
    const { halted, sink, stop } = setUp({ log, maxChanges: 1 });
    assert.match(await halted(), /WRITER_CHANGE_REFUSED.*\n.*offset 1/);
    assert.equal(sink.next, 1);
    await stop();
  }
});

test('too many for the marker: nothing of the step is set aside or counted, and the error says the way out of such rows', async () => {
  const log = new TestLog().withhold(1).withhold(2).withhold(3).withhold(4);
  const { halted, sink, stop, loop, metrics } = setUp({ log, onPoison: 'park', maxParkedKeys: 3 });
  const detail = await halted();
  assert.match(detail, /WRITER_PARKED_FULL: 0 keys are set aside, and 4 more would have to be: WRITER_ROW_WITHHELD/);
  assert.match(detail, /verify --repair/);
  assert.equal(loop.status().parkedKeys, 0);
  assert.equal(sink.next, 0);
  assert.deepEqual((await metrics.writer.parkedChanges.get()).values, []);
  await stop();
  const again = setUp({ log, sink, onPoison: 'park', maxParkedKeys: 4 });
  await again.applied(4);
  assert.equal(parked(sink).length, 4);
  const [count, ...others] = (await again.metrics.writer.parkedChanges.get()).values;
  assert.deepEqual([count?.value, others.length], [4, 0]);
  await again.stop();
});

test('what was set aside in a step that then halts for another row is neither shown nor counted', async () => {
  const log = new TestLog().withhold(1).put(2, 'bad');
  const sink = new MemorySink();
  sink.refuses = (change) => (change.kind === 'put' && change.row[1] === 'bad' ? new Error('bad') : null);
  const { halted, stop, loop, metrics } = setUp({ log, sink, onPoison: 'park', maxParkedKeys: 1 });
  assert.match(await halted(), /WRITER_PARKED_FULL/);
  assert.equal(loop.status().parkedKeys, 0);
  assert.deepEqual((await metrics.writer.parkedChanges.get()).values, []);
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
