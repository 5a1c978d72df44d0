/** A partition that stands before deletions which the log has forgotten, and what it may pass once somebody says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Logger, silentLogger } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { setUp } from './loop.fixture.ts';
import type { LostDeletions } from './lost-deletions.ts';
import { formatMarker, parseMarker } from './marker.ts';
import { MarkerHold } from './marker-hold.ts';
import { FastClock, MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';
import { TestLog } from './test-log.fixture.ts';

const DAY_MS = 86_400_000;
const RETENTION_MS = 7 * DAY_MS;

function lostOf(sink: MemorySink): LostDeletions | undefined {
  return sink.marker === null ? undefined : parseMarker(sink.marker, {}).lost;
}

/** Says that stretches before the offset may be passed. */
async function permit(sink: MemorySink, clock: FastClock, until: number): Promise<void> {
  sink.shared = true;
  const signal = new AbortController().signal;
  const topic = { name: 'shop', id: 'topic-1', partitions: 1 };
  const hold = new MarkerHold({ sink, topic, partition: 0, where: {}, clock, signal });
  for (;;) {
    const held = await hold.read();
    assert.ok(held?.marker.lost?.stoppedAt !== undefined, 'the partition does not stand');
    const { stoppedAt: _, ...lost } = held.marker.lost;
    if (await hold.replace(held, { ...held.marker, lost: { ...lost, until } })) return;
  }
}

/** Row 1 was applied; its deletion and the stretch behind it are gone; row 2 came then. */
async function behind(log = new TestLog()) {
  const clock = new FastClock();
  const first = setUp({ log: log.put(1, 'a'), clock, deleteRetentionMs: RETENTION_MS });
  await first.applied(1);
  await first.stop();
  clock.ms += 8 * DAY_MS;
  log.compacted().put(2, 'b');
  const again = (logger: Logger = silentLogger) =>
    setUp({
      logger,
      log,
      clock,
      sink: first.sink,
      assigned: new ScriptedPartition({ log, committed: 1, nowMs: () => clock.now() }),
      deleteRetentionMs: RETENTION_MS,
    });
  return { log, clock, sink: first.sink, again };
}

test('it stands, and the marker says so, until somebody says that it may go on; the marker tells it from then on', async () => {
  const { clock, sink, again, log } = await behind();
  const writer = again();
  assert.match(await writer.halted(), /^WRITER_TOMBSTONES_LOST/);
  await turnsUntil('the marker says where it stands', () => lostOf(sink)?.stoppedAt === 1);
  assert.deepEqual(sink.states(), { 1: 'a' });
  const { id, foundMs } = lostOf(sink) ?? {};
  assert.equal(writer.loop.status().deletionsLostSinceMs, foundMs);
  await permit(sink, clock, log.end);
  await writer.applied(log.end);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b' });
  const passed = lostOf(sink);
  assert.equal(passed?.until, log.end);
  assert.equal(passed?.foundMs, foundMs);
  assert.equal(passed?.stoppedAt, undefined);
  assert.notEqual(passed?.id, id);
  assert.equal(writer.loop.status().state, 'running');
  await writer.stop();
  // and so does the next owner
  const next = again();
  await turnsUntil('it runs', () => next.loop.status().state === 'running');
  assert.deepEqual(lostOf(sink), passed);
  next.loop.refresh();
  const { values } = await next.metrics.writer.deletionsLost.get();
  assert.deepEqual(
    values.map(({ value }) => value),
    [1],
  );
  await next.stop();
});

test('what was said is about the log as it was then: later stretches stop it again', async () => {
  const { log, clock, sink, again } = await behind();
  const writer = again();
  await writer.halted();
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === 1);
  const until = log.end;
  await permit(sink, clock, until);
  await writer.applied(until);
  await writer.stop();
  const before = lostOf(sink);
  clock.ms += 8 * DAY_MS;
  log.compacted().put(3, 'c');
  const later = again();
  assert.match(await later.halted(), /^WRITER_TOMBSTONES_LOST/);
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === until);
  assert.equal(lostOf(sink)?.foundMs, before?.foundMs);
  assert.equal(lostOf(sink)?.until, until);
  assert.equal(sink.next, until);
  await later.stop();
});

test('each step that passes such a stretch has an id of its own, others keep it', async () => {
  const { log, clock, sink, again } = await behind();
  log.put(3, 'c').compacted().put(4, 'd').put(5, 'e');
  const writer = again();
  await writer.halted();
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === 1);
  const ids = new Set<string | undefined>();
  for (let at = 0; at < 10; at += 1) {
    sink.hooks.push((batch, apply) => {
      const outcome = apply();
      ids.add(parseMarker(batch.marker.next, {}).lost?.id);
      return outcome;
    });
  }
  await permit(sink, clock, log.end);
  await writer.applied(log.end);
  const { id } = lostOf(sink) ?? {};
  assert.ok(ids.has(id));
  await writer.stop();
  log.put(6, 'f');
  const next = again();
  await next.applied(log.end);
  assert.equal(lostOf(sink)?.id, id);
  await next.stop();
});

test('a sink that is put back to before the word was given stops the partition again', async () => {
  const { log, clock, sink, again } = await behind();
  const older = sink.marker;
  const writer = again();
  await writer.halted();
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === 1);
  await permit(sink, clock, log.end);
  await writer.applied(log.end);
  sink.marker = older;
  sink.rows.delete('2');
  sink.doubt();
  assert.match(await writer.halted(), /^WRITER_TOMBSTONES_LOST/);
  assert.deepEqual(sink.states(), { 1: 'a' });
  await writer.stop();
});

test('the sink cannot be reached while the partition stands: it looks again, and goes on', async () => {
  const { log, clock, sink, again } = await behind();
  const errors: string[] = [];
  const logger: Logger = { ...silentLogger, error: (_, text) => errors.push(text), child: () => logger };
  const writer = again(logger);
  await writer.halted();
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === 1);
  const { readMarker } = sink;
  let failures = 0;
  sink.readMarker = () => {
    failures += 1;
    return Promise.reject(new Error('away'));
  };
  await turnsUntil('it tried', () => failures > 3);
  assert.equal(writer.loop.status().state, 'halted');
  assert.match(writer.loop.status().detail, /^WRITER_TOMBSTONES_LOST.*cannot be looked at: .*away$/s);
  assert.deepEqual(errors, ['partition halted', 'the applied marker cannot be looked at, trying again']);
  sink.readMarker = readMarker;
  await permit(sink, clock, log.end);
  await writer.applied(log.end);
  await writer.stop();
});

test('two that stand before it and take themselves for the owner pause longer and longer', async () => {
  const { clock, sink, again } = await behind();
  sink.shared = true;
  const [one, two] = [again(), again()];
  const from = sink.owners.length;
  await turnsUntil('they quarrel', () => sink.owners.length - from >= 20);
  assert.ok(Math.max(...clock.slept) > 2_000, `${clock.slept}`);
  await one.stop();
  await two.stop();
});

test('one that stands and has lost its partition takes no marker back', async () => {
  const { sink, again } = await behind();
  const writer = again();
  await writer.halted();
  await turnsUntil('noted', () => lostOf(sink)?.stoppedAt === 1);
  writer.assigned.onCommit = () => {
    throw transportErrors.TRANSPORT_NOT_OWNER({ message: 'given away' });
  };
  const successor = formatMarker({ ...parseMarker(sink.marker ?? '', {}), owner: 'successor' });
  sink.marker = successor;
  await writer.done;
  assert.equal(sink.marker, successor);
});

test('markers with something else in that place are refused', () => {
  const sink = new MemorySink();
  assert.equal(lostOf(sink), undefined);
  const marker = {
    topicId: 't',
    partitions: 1,
    owner: 'o',
    nextOffset: 0,
    guard: { epoch: 0, generation: 0, sequence: 0, offset: -1, seenSince: 0, closed: false, nextOffset: 0 },
    version: '0',
    change: { file: '', offset: 0, gtid: '', ordinal: 0 },
  };
  const text = (lost: unknown): string => formatMarker({ ...marker, lost: lost as LostDeletions });
  assert.equal(parseMarker(text({ id: 'x', foundMs: 1, until: 5 }), {}).lost?.until, 5);
  for (const lost of [{}, { id: 'x', foundMs: 1, until: '5' }, { id: 'x', foundMs: 1, stoppedAt: 1.5 }, 'yes']) {
    assert.throws(() => parseMarker(text(lost), {}), /WRITER_MARKER_INVALID|another form/);
  }
});
