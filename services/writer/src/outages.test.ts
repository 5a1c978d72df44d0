/** A sink, or a log, that does not answer: what waits is seen, and who waits says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCatalogue } from '@mysync/core';
import type { Metrics } from '@mysync/telemetry';
import { setUp } from './loop.fixture.ts';
import { FastClock, MemorySink, ScriptedPartition, turnsUntil } from './partition.fixture.ts';
import { PartitionOutages } from './partition-outages.ts';
import { TestLog } from './test-log.fixture.ts';

const errors = errorCatalogue({ TEST_AWAY: { remedy: 'none', retriable: true } });
const away = (): never => {
  throw errors.TEST_AWAY({ message: 'the sink is away' });
};

async function gauge(metrics: Metrics, name: 'lag' | 'stalledSeconds'): Promise<number> {
  return (await metrics.writer[name].get()).values[0]?.value ?? Number.NaN;
}

/** A sink whose every apply fails while `isAway`; also of the batches that hold nothing. */
class AwaySink extends MemorySink {
  isAway = false;

  override async apply(...args: Parameters<MemorySink['apply']>): ReturnType<MemorySink['apply']> {
    if (this.isAway) away();
    return await super.apply(...args);
  }
}

test('a sink that dies in a quiet moment: heartbeats keep nobody waiting, and the first change behind them is the lag', async () => {
  const clock = new FastClock();
  const log = new TestLog();
  log.commitTimeMicros = Math.floor(clock.ms) * 1000;
  const sink = new AwaySink();
  const { stop, applied, assigned, loop, metrics } = setUp({ log: log.put(1, 'a'), clock, sink });
  await applied(1);
  sink.isAway = true;
  for (let beat = 0; beat < 4; beat += 1) {
    // each of them may move the marker
    clock.ms += 10_000;
    log.control('heartbeat');
    assigned.news();
    await turnsUntil('the heartbeat was read', () => loop.status().endOffset === log.end);
  }
  assert.equal(loop.status().state, 'retrying');
  assert.equal(loop.status().lagSeconds, 0, 'nothing that was committed waits');
  log.commitTimeMicros = Math.floor(clock.ms) * 1000;
  const committed = Math.floor(clock.ms);
  log.put(2, 'b');
  assigned.news();
  await turnsUntil('the change was read', () => loop.status().endOffset === log.end);
  clock.ms += 40_000;
  const { lagSeconds, stalledSeconds, detail } = loop.status();
  assert.ok(lagSeconds >= 40 && lagSeconds <= (clock.ms - committed) / 1000 + 0.001, String(lagSeconds));
  assert.ok(stalledSeconds > lagSeconds, `${stalledSeconds} of ${lagSeconds}`);
  assert.match(detail, /the sink is away/);
  loop.refresh();
  assert.ok((await gauge(metrics, 'lag')) >= 40);
  assert.ok((await gauge(metrics, 'stalledSeconds')) >= 40);
  sink.isAway = false;
  await applied(log.end);
  await turnsUntil('all is well', () => loop.status().lagSeconds === 0 && loop.status().state === 'running');
  assert.equal(loop.status().stalledSeconds, 0);
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b' });
  await stop();
});

test('heartbeats that stood behind an apply move the marker once it is done', async () => {
  const log = new TestLog().put(1, 'a');
  const clock = new FastClock();
  const { stop, applied, assigned, sink, loop } = setUp({ log, clock });
  await applied(1);
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  sink.hooks.push(async (_, apply) => {
    await finished;
    return apply();
  });
  log.put(2, 'b');
  assigned.news();
  await turnsUntil('applying', () => sink.hooks.length === 0);
  clock.ms += 10_000;
  for (let beat = 0; beat < 3; beat += 1) {
    log.control('heartbeat');
    assigned.news();
    await turnsUntil('read', () => loop.status().endOffset === log.end);
  }
  finish();
  await turnsUntil('nothing is left', () => loop.status().nextOffset === log.end && loop.status().lagSeconds === 0);
  await stop();
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b' });
});

test('a sink that is away from the start, at the end of the log: the first change that comes is the lag, heartbeats are not', async () => {
  const clock = new FastClock();
  const log = new TestLog().put(1, 'a');
  const sink = new MemorySink();
  const first = setUp({ log, sink, clock });
  await first.applied(1);
  await first.stop();
  let isAway = true;
  const { readMarker } = sink;
  sink.readMarker = async () => (isAway ? away() : await readMarker());
  const assigned = new ScriptedPartition({ log, committed: 1 });
  const { stop, loop, applied } = setUp({ log, sink, clock, assigned });
  await turnsUntil('retrying', () => loop.status().state === 'retrying');
  log.control('heartbeat');
  assigned.news();
  await turnsUntil('the heartbeat was seen', () => loop.status().endOffset === 2);
  assert.equal(loop.status().lagSeconds, 0);
  log.commitTimeMicros = Math.floor(clock.ms) * 1000;
  log.put(2, 'b');
  assigned.news();
  await turnsUntil('the lag grows', () => loop.status().lagSeconds > 60);
  assert.ok(loop.status().lagSeconds <= (clock.ms * 1000 - (log.commitTimeMicros ?? 0)) / 1e6 + 0.001);
  assert.equal(loop.status().endOffset, 3);
  isAway = false;
  await applied(3);
  await turnsUntil('all is well', () => loop.status().lagSeconds === 0 && loop.status().state === 'running');
  assert.deepEqual(sink.states(), { 1: 'a', 2: 'b' });
  await stop();
});

test('an apply without an answer is an outage too, once it takes longer than any apply should', async () => {
  const clock = new FastClock();
  const { stop, sink, loop } = setUp({ log: new TestLog().put(1, 'a'), clock });
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  sink.hooks.push(async (_, apply) => {
    await finished;
    return apply();
  });
  await turnsUntil('applying', () => sink.hooks.length === 0);
  clock.ms += 29_000;
  assert.equal(loop.status().state, 'running');
  clock.ms += 2_000;
  assert.equal(loop.status().state, 'retrying');
  assert.equal(loop.status().stalledSeconds, 31);
  finish();
  await turnsUntil('running', () => loop.status().state === 'running');
  await stop();
});

test('a log that cannot be read: what was committed since is not known, so the lag is not zero', async () => {
  const clock = new FastClock();
  const log = new TestLog().put(1, 'a');
  const { stop, applied, assigned, loop } = setUp({ log, clock });
  await applied(1);
  await turnsUntil('idle', () => loop.status().lagSeconds === 0);
  assigned.outage = { sinceMs: clock.ms, cause: 'it has no leader' };
  clock.ms += 20_000;
  const { state, detail, lagSeconds, stalledSeconds } = loop.status();
  assert.deepEqual(
    { state, detail, lagSeconds, stalledSeconds },
    {
      state: 'retrying',
      detail: 'it has no leader',
      lagSeconds: 20,
      stalledSeconds: 20,
    },
  );
  assigned.outage = null;
  assert.equal(loop.status().state, 'running');
  assert.equal(loop.status().lagSeconds, 0);
  await stop();
});

test('turns that fail again and again are one outage; it is over when something is applied, or nothing failed for a while', () => {
  const clock = new FastClock();
  const calls = { outage: null };
  const outages = new PartitionOutages({ assigned: calls, retries: calls, clock });
  const began = clock.ms;
  for (let turn = 0; turn < 5; turn += 1) {
    outages.follows();
    clock.ms += 10_000;
    outages.turnFailed(new Error('no answer'));
  }
  assert.deepEqual(outages.current, { sinceMs: began + 10_000, cause: 'no answer' });
  assert.equal(outages.unreadSeconds(), 40, 'what was committed since is not known');
  outages.follows();
  clock.ms += 29_000;
  assert.notEqual(outages.current, null);
  clock.ms += 2_000;
  assert.equal(outages.current, null);
  outages.turnFailed(new Error('no answer'));
  outages.applied();
  assert.equal(outages.current, null);
  assert.equal(outages.unreadSeconds(), 0);
});

test('every label of a partition that was given up is gone', async () => {
  const { stop, applied, loop, metrics } = setUp({ log: new TestLog().put(1, 'a') });
  await applied(1);
  loop.refresh();
  assert.equal(await gauge(metrics, 'stalledSeconds'), 0);
  await stop();
  assert.ok(Number.isNaN(await gauge(metrics, 'stalledSeconds')));
});
