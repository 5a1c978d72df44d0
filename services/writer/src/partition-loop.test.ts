import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCatalogue } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import { type ApplyOutcome, sinkErrors } from '@mysync/sink';
import type { createMetrics } from '@mysync/telemetry';
import { transportErrors } from '@mysync/transport';
import { setUp } from './loop.fixture.ts';
import { formatMarker } from './marker.ts';
import { FastClock, MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';
import { NO_CHANGE, TestLog } from './test-log.fixture.ts';

const DAY_MS = 86_400_000;
const errors = errorCatalogue({
  TEST_AWAY: { remedy: 'none', retriable: true },
  TEST_WRONG: { remedy: 'mend it', retriable: false },
});
const away = (): never => {
  throw errors.TEST_AWAY({ message: 'the sink is away' });
};

function marker(nextOffset: number, change: object = {}): string {
  return formatMarker({
    topicId: 'topic-1',
    partitions: 1,
    owner: 'predecessor',
    nextOffset,
    guard: { ...initialGuardState(0), epoch: 1, sequence: nextOffset, offset: nextOffset - 1, nextOffset },
    version: '0',
    change: NO_CHANGE,
    ...change,
  });
}

async function gauge(metrics: ReturnType<typeof createMetrics>, name: 'lag' | 'backlog' | 'halted'): Promise<number[]> {
  const { values } = await metrics.writer[name].get();
  return values.map(({ value }) => value);
}

test('its own name goes into the marker before anything else, and shuts a predecessor out', async () => {
  const sink = new MemorySink();
  sink.marker = marker(1);
  const before = sink.marker;
  const { stop, applied, log } = setUp({ sink, log: new TestLog().put(1, 'a').put(2, 'b') });
  await applied(2);
  assert.deepEqual(sink.changed, [1], 'what the marker covers is not read again');
  const late = await sink.apply({
    stream: { topic: 'shop', partition: 0 },
    changes: [],
    marker: { expected: before, next: marker(9) },
  });
  assert.equal(late.status, 'marker-moved');
  assert.equal(log.end, 2);
  await stop();
});

test('it resumes from the marker, even below the commit', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b').put(3, 'c');
  const sink = new MemorySink();
  sink.marker = marker(1);
  const { stop, applied, assigned } = setUp({ log, sink, assigned: new ScriptedPartition({ log, committed: 3 }) });
  await applied(3);
  assert.deepEqual(sink.states(), { 2: 'b', 3: 'c' });
  await stop();
  assert.equal(assigned.commits.at(-1), undefined, 'three is committed already');
});

test('no marker and no commit: it begins at the first record of the log', async () => {
  const log = new TestLog().compacted().compacted().put(1, 'a');
  const { stop, applied, assigned, sink } = setUp({ log, assigned: new ScriptedPartition({ log, earliest: 2 }) });
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'a' });
  await stop();
  assert.equal(assigned.commits.at(-1), 3);
});

test('no marker, but a commit: halted', async () => {
  const log = new TestLog().put(1, 'a');
  const { stop, halted, sink } = setUp({ log, assigned: new ScriptedPartition({ log, committed: 1 }) });
  assert.match(await halted(), /^WRITER_SINK_LOST: .*\n {2}where: sink memory, topic shop, partition 0/);
  assert.equal(sink.marker, null, 'nothing is written into a store that may be the wrong one');
  await stop();
});

test('a log that was made anew after a loss fills no new sink, and goes on for one that was filled before', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b');
  const empty = setUp({ log, incomplete: true });
  assert.match(await empty.halted(), /^WRITER_LOG_INCOMPLETE/);
  assert.equal(empty.sink.marker, null);
  await empty.stop();
  const sink = new MemorySink();
  sink.marker = marker(1);
  const filled = setUp({ log, sink, incomplete: true });
  await filled.applied(2);
  await filled.stop();
});

test('a sink that lost everything while it was being filled: halted, not silently begun anew', async () => {
  const { stop, halted, applied, sink, log, assigned } = setUp({ log: new TestLog().put(1, 'a') });
  await applied(1);
  sink.marker = null;
  sink.rows.clear();
  sink.doubt();
  assert.match(await halted(), /^WRITER_SINK_LOST/);
  log.put(2, 'b');
  assigned.news();
  await stop();
  assert.deepEqual(sink.states(), {});
});

test('a marker of another topic, or of another number of partitions: halted', async () => {
  for (const change of [{ topicId: 'topic-0' }, { partitions: 2 }]) {
    const sink = new MemorySink();
    sink.marker = marker(0, change);
    const { stop, halted } = setUp({ sink });
    assert.match(await halted(), /^WRITER_TOPIC_CHANGED/);
    await stop();
  }
});

test('a marker that the log does not reach, at either end: halted', async () => {
  for (const [next, earliest] of [
    [5, 0],
    [1, 2],
  ] as const) {
    const log = new TestLog().put(1, 'a').put(2, 'b').put(3, 'c');
    const sink = new MemorySink();
    sink.marker = marker(next);
    const { stop, halted } = setUp({ sink, log, assigned: new ScriptedPartition({ log, earliest }) });
    assert.match(await halted(), /^WRITER_LOG_TRUNCATED: the sink needs offset/);
    await stop();
  }
});

test('a marker that is not one of ours: halted with its remedy', async () => {
  for (const text of ['{', '{}', marker(0, { version: 'x' }), marker(0, { guard: { sequence: 1 } })]) {
    const sink = new MemorySink();
    sink.marker = text;
    const { stop, halted } = setUp({ sink });
    assert.match(await halted(), /^WRITER_MARKER_INVALID/, text);
    await stop();
  }
});

test('a marker moved by another writer is read again, after a pause, and nothing is missing or goes back', async () => {
  const { stop, applied, sink, log, assigned, clock } = setUp({ log: new TestLog().put(1, 'a') });
  await applied(1);
  sink.marker = marker(1);
  log.put(2, 'b').put(1, 'c');
  assigned.news();
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'c', 2: 'b' });
  assert.ok(clock.slept.length > 0, 'two that live must not take the marker from each other without end');
  await stop();
});

test('a loop whose marker was moved asks the group first: one that lost its partition takes nothing back', async () => {
  const { done, applied, sink, log, assigned } = setUp({ log: new TestLog().put(1, 'a') });
  await applied(1);
  await turnsUntil('committed', () => assigned.commits.length > 0);
  assigned.onCommit = () => {
    throw transportErrors.TRANSPORT_NOT_OWNER({ message: 'given away' });
  };
  const successor = marker(1);
  sink.marker = successor;
  log.put(2, 'b');
  assigned.news();
  await done;
  assert.equal(sink.marker, successor);
  assert.deepEqual(sink.changed, [0]);
});

test('two live loops on one sink: both pause longer and longer, and the rows end right', async () => {
  const log = new TestLog();
  const sink = new MemorySink();
  sink.shared = true;
  const clock = new FastClock();
  const one = setUp({ log, sink, clock, assigned: new ScriptedPartition({ log }) });
  const two = setUp({ log, sink, clock, assigned: new ScriptedPartition({ log }) });
  for (let id = 1; id <= 50; id += 1) {
    log.put(id % 7, `v${id}`);
    one.assigned.news();
    two.assigned.news();
    await turnsUntil('applied', () => sink.next === id);
  }
  await two.stop();
  await one.stop();
  assert.deepEqual(
    sink.states(),
    Object.fromEntries(Array.from({ length: 7 }, (_, n) => [(50 - n) % 7, `v${50 - n}`])),
  );
});

test('a doubt is met at once, without a record: the marker is read again and what is missing is filled again', async () => {
  const { stop, applied, sink } = setUp({ log: new TestLog().put(1, 'a').put(2, 'b') });
  await applied(2);
  sink.marker = marker(1);
  sink.rows.delete('2');
  sink.doubt();
  await applied(2);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b' });
  await stop();
});

test('a doubt during an apply: it is finished, then the marker is read again', async () => {
  const { stop, applied, sink, log, assigned } = setUp({ log: new TestLog().put(1, 'a') });
  await applied(1);
  sink.hooks.push((_, apply) => {
    sink.doubt();
    return apply();
  });
  log.put(2, 'b');
  assigned.news();
  log.put(3, 'c');
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b', 3: 'c' });
  await stop();
});

test('a refused change halts with table, key, offset and remedy; it is said at once and nothing behind it is applied', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b');
  const { stop, halted, sink, assigned, metrics } = setUp({ log, maxChanges: 1 });
  sink.hooks.push(
    (_, apply) => apply(),
    () => ({ status: 'refused', refusals: [{ index: 0, error: errors.TEST_WRONG({ message: 'no' }) }] }),
  );
  const detail = await halted();
  assert.match(detail, /^WRITER_CHANGE_REFUSED/);
  assert.match(detail, /where: sink memory, topic shop, partition 0, offset 1, table shop\.orders, key 2/);
  assert.match(detail, /what to do: mend it/);
  assert.deepEqual(await gauge(metrics, 'halted'), [1]);
  log.put(3, 'c');
  assigned.news();
  await stop();
  assert.equal(assigned.commits.at(-1), 1);
  assert.equal(sink.next, 1);
  assert.deepEqual(sink.changed, [0]);
});

test('the newest record refused: halted though no record follows', async () => {
  const sink = new MemorySink();
  sink.hooks.push(() => ({ status: 'refused', refusals: [{ index: 0, error: new Error('no') }] }));
  const { stop, halted } = setUp({ sink, log: new TestLog().put(1, 'a') });
  assert.match(await halted(), /^WRITER_CHANGE_REFUSED/);
  await stop();
});

test('after a halt and its remedy a new owner resumes at the refused change', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b');
  const first = setUp({ log, maxChanges: 1 });
  first.sink.hooks.push(
    (_, apply) => apply(),
    () => ({ status: 'refused', refusals: [{ index: 0, error: new Error('no') }] }),
  );
  await first.halted();
  await first.stop();
  const assigned = new ScriptedPartition({ log, committed: first.assigned.commits.at(-1) ?? null });
  const second = setUp({ log, sink: first.sink, assigned });
  await second.applied(2);
  assert.deepEqual(first.sink.changed, [0, 1]);
  await second.stop();
});

test('revoked in mid-apply: that one is finished and committed, no other begins', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b').put(3, 'c');
  const { done, sink, assigned } = setUp({ log, maxChanges: 1 });
  let finish: () => void = () => undefined;
  sink.hooks.push(async (_, apply) => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return apply();
  });
  await turnsUntil('applying', () => sink.inFlight === 1 && sink.hooks.length === 0);
  assigned.revoke.abort();
  await new Promise((resolve) => setImmediate(resolve));
  finish();
  await done;
  assert.deepEqual(sink.changed, [0]);
  assert.equal(sink.next, 1);
  assert.deepEqual(assigned.commits, [1]);
});

test('revoked while the sink is away: it ends, and commits only what was applied', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b');
  const { done, sink, assigned, loop } = setUp({ log, maxChanges: 1 });
  sink.hooks.push((_, apply) => apply(), ...Array.from({ length: 1000 }, () => away));
  await turnsUntil('retrying', () => loop.status().state === 'retrying');
  assigned.revoke.abort();
  await done;
  assert.deepEqual(assigned.commits, [1]);
});

test('an apply that outlasts the hand-over is abandoned', async () => {
  const { done, sink, assigned } = setUp({ log: new TestLog().put(1, 'a'), handoverMs: 1 });
  const { apply } = sink;
  sink.apply = (batch, signal?: AbortSignal) =>
    batch.changes.length === 0
      ? apply.call(sink, batch)
      : new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
  await turnsUntil('its name is there', () => sink.next === 0);
  assigned.revoke.abort();
  await done;
  assert.deepEqual(assigned.commits, []);
});

test('a commit that is refused ends the loop, though nothing was revoked', async () => {
  const { done, assigned, sink, log } = setUp({ log: new TestLog().put(1, 'a') });
  assigned.onCommit = () => {
    throw transportErrors.TRANSPORT_NOT_OWNER({ message: 'given away' });
  };
  await turnsUntil('applied', () => sink.next === 1);
  log.put(2, 'b');
  assigned.news();
  await done;
});

test('a commit that fails otherwise costs nothing: the next one says it', async () => {
  const { stop, applied, assigned, log } = setUp({ log: new TestLog().put(1, 'a') });
  let failures = 0;
  assigned.onCommit = () => {
    failures += 1;
    if (failures === 1) throw transportErrors.TRANSPORT_UNREACHABLE({ message: 'away' });
  };
  await applied(1);
  log.put(2, 'b');
  assigned.news();
  await applied(2);
  await stop();
  assert.equal(assigned.commits.at(-1), 2);
});

test('transient failures: the same batch again, in order, shown as retrying', async () => {
  const log = new TestLog().put(1, 'a').put(1, 'b').put(1, 'c');
  const { stop, applied, sink, loop, metrics } = setUp({ log, maxChanges: 1 });
  const offsets: number[] = [];
  const states: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    sink.hooks.push(
      (batch) => {
        offsets.push(...batch.changes.map(({ offset }) => offset));
        return away();
      },
      (batch, apply) => {
        states.push(loop.status().state, loop.status().detail);
        offsets.push(...batch.changes.map(({ offset }) => offset));
        return apply();
      },
    );
  }
  await applied(3);
  assert.deepEqual(offsets, [0, 0, 1, 1, 2, 2]);
  assert.equal(states[0], 'retrying');
  assert.match(states[1] ?? '', /TEST_AWAY|the sink is away/);
  assert.equal(loop.status().state, 'running');
  assert.equal((await metrics.writer.retries.get()).values[0]?.value, 3);
  await stop();
});

test('a sink that lets nobody in for a while does not halt the partition, whether at first or later', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b').put(3, 'c');
  const { stop, applied, sink, loop, metrics } = setUp({ log, maxChanges: 1 });
  const seen: string[] = [];
  const denied = (): never => {
    throw sinkErrors.SINK_DENIED({ message: 'unable to authenticate user [mysync]' });
  };
  const look = (_: unknown, apply: () => ApplyOutcome): ApplyOutcome => {
    const { state, detail } = loop.status();
    seen.push(`${state} ${detail}`);
    return apply();
  };
  sink.hooks.push(denied, denied, look, denied, look);
  await applied(3);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b', 3: 'c' });
  assert.equal(seen.length, 2);
  for (const each of seen) assert.match(each, /^retrying SINK_DENIED: .*unable to authenticate/);
  assert.equal(loop.status().state, 'running');
  const [retries] = (await metrics.writer.retries.get()).values;
  assert.deepEqual([retries?.labels.code, retries?.value], ['SINK_DENIED', 3]);
  assert.equal(
    (await gauge(metrics, 'halted')).every((value) => value === 0),
    true,
  );
  await stop();
});

test('a transport that fails for a while does not halt the partition', async () => {
  const log = new TestLog().put(1, 'a');
  const assigned = new ScriptedPartition({ log });
  let failures = 3;
  assigned.onBatch = () => {
    failures -= 1;
    if (failures > 0) throw transportErrors.TRANSPORT_UNREACHABLE({ message: 'away' });
  };
  const { stop, applied, loop } = setUp({ log, assigned });
  await applied(1);
  assert.equal(loop.status().state, 'running');
  await stop();
});

test('a record that cannot be read halts with its place', async () => {
  for (const spoil of [
    (log: TestLog) => log.foreign(Buffer.from('hello')),
    (log: TestLog) => {
      log.put(2, 'b');
      const { value } = log.records[1] ?? {};
      value?.fill(0xee, 60);
    },
  ]) {
    const log = new TestLog().put(1, 'a');
    spoil(log);
    const { stop, halted, sink } = setUp({ log });
    const detail = await halted();
    assert.match(detail, /^WIRE_MESSAGE_INVALID/);
    assert.match(detail, /topic shop, partition 0, offset 1/);
    assert.ok(sink.next <= 1);
    await stop();
  }
});

test('commits never run ahead of the applies, and no row goes back, whatever fails', async () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  for (let run = 0; run < 60; run += 1) {
    const log = new TestLog();
    const sink = new MemorySink();
    const expected: Record<string, string> = {};
    const assigned = new ScriptedPartition({ log, batchRecords: 1 + random(5) });
    const ahead: number[] = [];
    assigned.onCommit = (next) => {
      if (next > sink.next) ahead.push(next);
      if (random(5) === 0) throw transportErrors.TRANSPORT_UNREACHABLE({ message: 'away' });
    };
    const { stop } = setUp({ log, sink, assigned, maxChanges: 1 + random(4) });
    for (let n = 0; n < 40; n += 1) {
      const id = random(5);
      const what = random(10);
      if (what === 0) {
        log.row('delete', [id, 'x', null], null);
        delete expected[id];
      } else if (what === 1) {
        log.truncate();
        for (const key of Object.keys(expected)) delete expected[key];
      } else if (what === 2) {
        log.control(random(2) === 0 ? 'fence' : 'heartbeat');
      } else {
        log.put(id, `v${n}`);
        expected[id] = `v${n}`;
      }
      if (random(3) === 0) sink.hooks.push(away);
      // applied, but the answer is lost
      if (random(6) === 0)
        sink.hooks.push((_, apply) => {
          const outcome = apply();
          if (outcome.status !== 'applied') return outcome;
          return away();
        });
      if (random(8) === 0) sink.doubt();
      assigned.news();
      for (let turns = random(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    }
    log.put(9, 'last');
    expected[9] = 'last';
    sink.hooks.length = 0;
    assigned.news();
    await turnsUntil('all applied', () => sink.next === log.end);
    assert.deepEqual(sink.states(), expected, `run ${run}`);
    await stop();
    assert.deepEqual(ahead, []);
  }
});

test('lag: 0 when idle, also after an old heartbeat; grows while the sink is stuck, from the first moment', async () => {
  const clock = new FastClock();
  const log = new TestLog();
  log.commitTimeMicros = clock.ms * 1000;
  const { stop, applied, sink, assigned, loop, metrics } = setUp({ log: log.put(1, 'a'), clock });
  await applied(1);
  clock.ms += DAY_MS;
  assert.equal(loop.status().lagSeconds, 0);
  // a heartbeat of an idle source carries the time of its last change
  log.control('heartbeat');
  log.commitTimeMicros = clock.ms * 1000;
  log.put(2, 'b');
  let finish: () => void = () => undefined;
  sink.hooks.push(async (_, apply) => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return apply();
  });
  assigned.news();
  await turnsUntil('applying', () => sink.hooks.length === 0);
  clock.ms += 90_000;
  assert.equal(loop.status().lagSeconds, 90);
  loop.refresh();
  assert.deepEqual(await gauge(metrics, 'lag'), [90]);
  finish();
  await applied(3);
  await turnsUntil('idle', () => loop.status().lagSeconds === 0);
  await stop();
});

test('lag is never negative when the source is ahead of our clock', async () => {
  const clock = new FastClock();
  const log = new TestLog();
  log.commitTimeMicros = (clock.ms + 30_000) * 1000;
  const { stop, sink, loop } = setUp({ log: log.put(1, 'a'), clock });
  sink.hooks.push(...Array.from({ length: 3 }, () => away));
  await turnsUntil('applied', () => sink.next === 1);
  assert.ok(loop.status().lagSeconds >= 0);
  await stop();
});

test('a sink that is away from the start: lag and backlog grow though nothing was read', async () => {
  const log = new TestLog().put(1, 'a').put(2, 'b');
  const sink = new MemorySink();
  sink.readMarker = async () => away();
  const { stop, loop, metrics } = setUp({ log, sink });
  await turnsUntil('retrying', () => loop.status().state === 'retrying' && loop.status().lagSeconds > 60);
  loop.refresh();
  assert.deepEqual(await gauge(metrics, 'backlog'), [2]);
  await stop();
});

test('a partition that was given up leaves no gauge behind', async () => {
  const { stop, applied, loop, metrics, halted, sink } = setUp({
    log: new TestLog().put(1, 'a').put(2, 'b'),
    maxChanges: 1,
  });
  sink.hooks.push(
    (_, apply) => apply(),
    () => ({ status: 'refused', refusals: [{ index: 0, error: new Error('no') }] }),
  );
  await applied(1);
  await halted();
  loop.refresh();
  assert.equal((await gauge(metrics, 'lag')).length, 1);
  await stop();
  for (const name of ['lag', 'backlog', 'halted'] as const) assert.deepEqual(await gauge(metrics, name), []);
});

test('verdicts are counted', async () => {
  const log = new TestLog().put(1, 'a').again().lose().put(2, 'b');
  const { stop, applied, metrics } = setUp({ log });
  await applied(3);
  const { values } = await metrics.writer.verdicts.get();
  assert.deepEqual(Object.fromEntries(values.map(({ labels, value }) => [labels.verdict, value])), {
    accept: 1,
    duplicate: 1,
    early: 1,
  });
  await stop();
});

test('an open gap is told until a newer generation closes it, whatever else is accepted', async () => {
  const { stop, applied, loop, metrics, clock } = setUp({ log: new TestLog().put(1, 'a').lose().put(2, 'b') });
  await applied(2);
  clock.ms += 5_000;
  loop.refresh();
  assert.deepEqual(
    (await metrics.writer.gapSeconds.get()).values.map(({ value }) => value),
    [5],
  );
  await stop();
});

test('offsets missing to one who was away longer than deletions are kept: halted; to one who was not: compaction', async () => {
  for (const [days, missing, outcome] of [
    [6, true, 'applied'],
    [8, false, 'applied'],
    [8, true, 'halted'],
  ] as const) {
    const clock = new FastClock();
    const log = new TestLog().put(1, 'a');
    const first = setUp({ log, clock, deleteRetentionMs: 7 * DAY_MS });
    await first.applied(1);
    await first.stop();
    clock.ms += days * DAY_MS;
    if (missing) log.compacted();
    log.put(3, 'c');
    const assigned = new ScriptedPartition({ log, committed: 1, nowMs: () => clock.now() });
    const second = setUp({ log, clock, sink: first.sink, assigned, deleteRetentionMs: 7 * DAY_MS });
    if (outcome === 'applied') await second.applied(log.end);
    else assert.match(await second.halted(), /^WRITER_TOMBSTONES_LOST: .*\n.*offset 1/);
    await second.stop();
  }
});

test('deletions are not lost to one who sits at the end of a quiet log, nor to one who catches up in time', async () => {
  const clock = new FastClock();
  const log = new TestLog().put(1, 'a');
  const { stop, applied, assigned, loop } = setUp({ log, clock, deleteRetentionMs: 7 * DAY_MS });
  await applied(1);
  clock.ms += 30 * DAY_MS;
  log.put(2, 'b');
  assigned.news();
  await applied(2);
  for (let day = 0; day < 5; day += 1) {
    clock.ms += 2 * DAY_MS;
    log.compacted().put(3, 'c');
    assigned.news();
    await applied(log.end);
  }
  assert.equal(loop.status().state, 'running');
  await stop();
});
