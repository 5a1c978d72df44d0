import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { checkpointErrors } from '@mysync/checkpoint';
import { type Clock, silentLogger } from '@mysync/core';
import { sourceErrors } from '@mysync/source-mysql';
import { createMetrics } from '@mysync/telemetry';
import { CheckpointKeeper } from './checkpoint-keeper.ts';
import { CutOff } from './cut-off.ts';
import { Life, MemoryCheckpoints, readerOf, TestTopics } from './life.fixture.ts';
import { TestServer, type TestSource } from './source.fixture.ts';
import { SourceContact } from './source-contact.ts';

/** Time that passes by hand. */
class HandClock implements Clock {
  ms = 1_000_000;
  now = (): number => Date.UTC(2026, 0, 1) + this.ms;
  monotonic = (): number => this.ms;
  sleep = (): Promise<void> => new Promise(() => undefined);
}

const lost = () => sourceErrors.SOURCE_UNREACHABLE({ message: 'no answer from db:3306' });

function setUp(given: { waitingSinceMs?: number; trouble?: string; heartbeatMs?: number } = {}) {
  const clock = new HandClock();
  const metrics = createMetrics();
  const contact = new SourceContact({ source: 'shop', clock, metrics });
  const store = new MemoryCheckpoints();
  const keeper = new CheckpointKeeper({ store, loaded: null, clock, logger: silentLogger });
  const pump = { waitingSinceMs: given.waitingSinceMs ?? null, trouble: given.trouble ?? '' };
  const cutOff = new CutOff({ contact, pump, keeper, heartbeatMs: given.heartbeatMs ?? 5_000, clock });
  const reconnects = async (): Promise<number> => (await metrics.reader.reconnects.get()).values[0]?.value ?? 0;
  return { clock, contact, cutOff, store, keeper, reconnects };
}

test('a source that is not reached beyond the grace is told with its cause; a reconnect is not, and is counted', async () => {
  const { clock, contact, cutOff, reconnects } = setUp();
  contact.asks();
  contact.reads();
  assert.equal(await reconnects(), 0, 'the first connection replaces none');
  contact.brokeOff(lost(), clock.ms - 6_000);
  clock.ms += 5_000;
  assert.equal(cutOff.source, '');
  assert.ok(cutOff.isReady);
  assert.equal(contact.unknownSinceMicros(), (clock.now() - 11_000) * 1000, 'since it was heard last');
  contact.reads();
  assert.equal(await reconnects(), 1);
  assert.equal(contact.unknownSinceMicros(), null);
  contact.brokeOff(lost(), clock.ms);
  clock.ms += 30_000;
  contact.brokeOff(lost(), undefined);
  assert.match(cutOff.source, /^cut off from the source for 30 s: .*no answer from db:3306/);
  assert.equal(cutOff.detail, cutOff.source);
  assert.ok(!cutOff.isReady);
  contact.reads();
  assert.ok(cutOff.isReady);
  assert.equal(cutOff.detail, '');
  assert.equal(await reconnects(), 2);
});

test('a first connection that does not come is an outage too', () => {
  const { clock, contact, cutOff } = setUp();
  contact.asks();
  clock.ms += 20_000;
  assert.equal(cutOff.source, 'cut off from the source for 20 s: connecting');
  assert.ok(!cutOff.isReady);
});

test('rows of a table that do not come: told after a minute, and no longer than they are waited for', async () => {
  const { clock, contact, cutOff } = setUp();
  const sent: ((batch: string | null) => void)[] = [];
  async function* batches(): AsyncGenerator<string> {
    for (;;) {
      const batch = await new Promise<string | null>((resolve) => sent.push(resolve));
      if (batch === null) return;
      yield batch;
    }
  }
  const rows = contact.waitingForRows(batches());
  const first = rows.next();
  clock.ms += 59_000;
  assert.ok(cutOff.isReady);
  clock.ms += 2_000;
  assert.equal(cutOff.source, 'cut off from the source for 61 s: it sends no rows of the table that is read');
  sent[0]?.('rows');
  assert.equal((await first).value, 'rows');
  clock.ms += 90_000;
  assert.ok(cutOff.isReady, 'nobody waits for rows while these are taken');
  const last = rows.next();
  await new Promise((resolve) => setImmediate(resolve));
  clock.ms += 61_000;
  assert.ok(!cutOff.isReady);
  sent[1]?.(null);
  assert.ok((await last).done);
  assert.ok(cutOff.isReady);
});

test('a transport that stores nothing of what waits, for longer than heartbeats leave it alone', () => {
  const { cutOff } = setUp({ waitingSinceMs: 1_000_000 - 20_000 });
  assert.match(cutOff.transport, /^cut off from the transport for 20 s: it stores nothing/);
  assert.ok(!cutOff.isReady);
  assert.ok(setUp({ waitingSinceMs: 1_000_000 - 14_000 }).cutOff.isReady);
  const rare = setUp({ waitingSinceMs: 1_000_000 - 20_000, heartbeatMs: 10_000, trouble: 'the disk is full' });
  assert.ok(rare.cutOff.isReady, 'three heartbeats may be missing');
  assert.equal(rare.cutOff.detail, 'the disk is full', 'what the transport says is told at once');
});

test('a store of checkpoints that refuses, or says nothing, is told; the reader stays ready', async () => {
  const { clock, cutOff, store, keeper } = setUp();
  const save = store.save.bind(store);
  store.save = () => Promise.reject(checkpointErrors.CHECKPOINT_UNREACHABLE({ message: 'no answer' }));
  await assert.rejects(keeper.save({}));
  clock.ms += 20_000;
  assert.match(cutOff.checkpoints, /^cut off from the store of checkpoints for 20 s: .*no answer/);
  assert.ok(cutOff.isReady);
  store.save = () => Promise.resolve();
  await keeper.save({});
  assert.equal(cutOff.detail, '');
  store.save = () => new Promise(() => undefined);
  void keeper.save({});
  await new Promise((resolve) => setImmediate(resolve));
  clock.ms += 20_000;
  assert.match(cutOff.checkpoints, /for 20 s: no answer/);
  store.save = save;
});

let topics: TestTopics;

beforeEach(async () => {
  topics = await TestTopics.open();
});

afterEach(async () => {
  await topics.close();
});

async function running(
  act: (source: TestSource, reader: ReturnType<typeof readerOf>['reader']) => void,
): Promise<void> {
  const stop = new AbortController();
  let atEnd: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    atEnd = resolve;
  });
  const server = new TestServer().commit({ table: 'a', id: 1, state: 'v1' });
  const { reader, source } = readerOf(topics.placeOf(server), new Life(), { atEnd, beats: 0 });
  const run = reader.run(stop.signal);
  await reached;
  // all is stored
  for (let turn = 0; turn < 5_000 && reader.status().lagSeconds > 0; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  act(source, reader);
  stop.abort();
  await run;
}

test('a reader whose source does not answer is disconnected, not ready, and late; until it reads again', async () => {
  // the clock of a life goes on by a second whenever it is asked
  await running((source, reader) => {
    assert.equal(reader.status().state, 'streaming');
    assert.equal(reader.health().detail, 'streaming');
    source.observer?.brokeOff(lost(), undefined);
    for (let asked = 0; asked < 20; asked += 1) reader.status();
    const status = reader.status();
    assert.equal(status.state, 'disconnected');
    assert.match(status.detail, /^cut off from the source for \d+ s: .*no answer from db:3306/);
    assert.ok(status.lagSeconds > 15, String(status.lagSeconds));
    const health = reader.health();
    assert.ok(health.alive && !health.ready);
    assert.match(health.detail, /^disconnected: cut off from the source/);
    source.observer?.reads();
    assert.equal(reader.status().state, 'streaming');
    assert.ok(reader.health().ready, reader.health().detail);
  });
});
