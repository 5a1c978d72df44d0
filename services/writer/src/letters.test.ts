/** Dead letters and acts in a log of their own. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { errorCatalogue, isMysyncError, systemClock } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import type { DeleteChange, PutChange } from '@mysync/sink';
import type { PublisherOptions, ReadOptions, TopicSpec } from '@mysync/transport';
import { LogTransport } from '@mysync/transport-log';
import { DeadLetterTopic, type DeadLetterTopicOptions, readRecord } from './dead-letters.ts';
import { type Act, LetterBox } from './letter-box.ts';
import { formatMarker } from './marker.ts';
import { MemorySink } from './partition.fixture.ts';
import { PoisonDesk, type PoisonDeskOptions } from './poison-desk.ts';
import { NO_CHANGE, schema, TestLog } from './test-log.fixture.ts';

const errors = errorCatalogue({ TEST_POISON: { remedy: 'mend it', retriable: false } });
const signal = new AbortController().signal;
const spec: TopicSpec = {
  name: 'letters',
  partitions: 1,
  compacted: false,
  deleteRetentionMs: 7 * 86_400_000,
  minCompactionLagMs: 0,
  retentionMs: -1,
  allowWeaker: false,
};

/** The same object, but for what is given. */
function answering<T extends object>(real: T, given: Partial<Record<keyof T, unknown>>): T {
  return new Proxy(real, {
    get: (target, name) => {
      if (Object.hasOwn(given, name)) return given[name as keyof T];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A log with the topic `shop`, filled with records. */
async function logOf(records: TestLog, options: { maxRecordBytes?: number } = {}) {
  const path = await mkdtemp(join(tmpdir(), 'letters-'));
  const transport = await LogTransport.open({ path, maintenance: false, ...options });
  const topic = await transport.ensureTopic({ ...spec, name: 'shop', compacted: true });
  const publisher = await transport.openPublisher({ topic: 'shop', producer: 'reader', previous: null });
  await publisher.publish(0, records.records);
  const letters = (other: Partial<DeadLetterTopicOptions> = {}): DeadLetterTopic =>
    new DeadLetterTopic({
      transport,
      spec,
      sink: 'memory',
      source: 's',
      topic: 'shop',
      topicId: topic.id,
      partition: 0,
      clock: systemClock,
      signal,
      ...other,
    });
  const box = new LetterBox({ transport, spec, sink: 'memory', source: 's', signal });
  const close = async (): Promise<void> => {
    await transport.close();
    await rm(path, { recursive: true });
  };
  return { transport, letters, box, close };
}

/** The change of the log's record at an offset, as a writer would refuse it. */
function refused(log: TestLog, offset: number, kind: 'put' | 'delete', id: number) {
  const key = Buffer.from(log.records[offset]?.key ?? []).toString('latin1');
  const row = [id, 'x', null];
  const name = { database: schema.database, table: schema.table, columns: ['id'], values: [id] };
  const version = (BigInt(offset + 1) << 20n) + 1n;
  const change: PutChange | DeleteChange = { kind, schema, key: name, row, version, offset };
  return { key, change };
}

function act(result: 'applied' | 'refused', phase: Act['phase'] = 'done'): Act {
  const item = { id: 's/0/0', kind: 'dead-letter', partition: 0, offset: 0, row: 'shop.orders 1', code: 'X' } as const;
  const settled = phase === 'done' ? { ...item, result } : item;
  return { format: 1, act: 'retry', phase, by: 'me@here', atMs: 1, sink: 'memory', source: 's', items: [settled] };
}

function markerOf(topicId: string, nextOffset: number): string {
  const guard = initialGuardState(0);
  return formatMarker({ topicId, partitions: 1, owner: 'writer', nextOffset, guard, version: '0', change: NO_CHANGE });
}

function deskOf(options: Pick<PoisonDeskOptions, 'sink' | 'log' | 'topic' | 'letterRecord'>): PoisonDesk {
  return new PoisonDesk({ ...options, sinkName: 'memory', partition: 0, compacted: true, clock: systemClock, signal });
}

const poison = errors.TEST_POISON({ message: 'it is bad' });

test('an act over many keys is recorded in as many records as the log takes', async () => {
  const { box, close } = await logOf(new TestLog().put(1, 'a'), { maxRecordBytes: 1_024 });
  const items = Array.from({ length: 50 }, (_, offset) => {
    const row = `shop.orders ${'k'.repeat(offset * 100)}`;
    return { id: `s/0/${offset}`, kind: 'parked', partition: 0, offset, row, code: 'X' } as const;
  });
  await box.record([{ ...act('applied', 'asked'), items }]);
  const { acts } = await box.read();
  assert.ok(acts.length > 1);
  assert.deepEqual(
    acts.flatMap((each) => each.items.map(({ offset }) => offset)),
    items.map(({ offset }) => offset),
  );
  await close();
});

test('a stop ends a letter that waits for a log which does not answer', async () => {
  const log = new TestLog().put(1, 'bad');
  const { transport, letters, box, close } = await logOf(log);
  const never = new Promise<never>(() => undefined);
  for (const silent of ['read', 'ensureTopic', 'publish'] as const) {
    const stop = new AbortController();
    let ask = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    const hang = (): Promise<never> => {
      ask();
      return never;
    };
    const away = answering(transport, {
      ...(silent === 'ensureTopic' ? { ensureTopic: hang } : {}),
      ...(silent === 'publish'
        ? {
            openPublisher: async (options: PublisherOptions) =>
              answering(await transport.openPublisher(options), { publish: hang }),
          }
        : {}),
      ...(silent === 'read'
        ? {
            read: async function* ({ signal }: ReadOptions) {
              ask();
              await new Promise((resolve) => signal?.addEventListener('abort', resolve));
            },
          }
        : {}),
    });
    const writer = letters({ transport: away, signal: stop.signal });
    const put = writer.put(refused(log, 0, 'put', 1), poison);
    await asked;
    stop.abort(new Error('revoked'));
    await assert.rejects(put, /revoked/, silent);
    await writer.close();
  }
  assert.deepEqual((await box.read()).open, [], 'nothing is put away of which nobody can tell');
  await close();
});

test('of a change that was published several times one letter is open: the last', async () => {
  const log = new TestLog().put(1, 'bad').again().put(1, 'bad too');
  const { letters, box, close } = await logOf(log);
  const writer = letters();
  const first = refused(log, 0, 'put', 1);
  await writer.put(first, poison);
  await writer.put({ ...first, change: { ...first.change, offset: 1 } }, poison);
  await writer.put(refused(log, 2, 'put', 1), poison);
  assert.deepEqual(
    (await box.read()).open.map(({ letter }) => letter.offset),
    [1, 2],
  );
  await close();
});

test('a letter that was stored twice is one; an act settles it; the same change later opens it again', async () => {
  const log = new TestLog().put(1, 'bad');
  const { letters, box, close } = await logOf(log);
  assert.deepEqual(await box.read(), { open: [], acts: [] });
  const writer = letters();
  for (let times = 0; times < 2; times += 1) assert.equal(await writer.put(refused(log, 0, 'put', 1), poison), true);
  const [letter, ...others] = (await box.read()).open;
  assert.equal(others.length, 0);
  assert.equal(letter?.letter.code, 'TEST_POISON');
  assert.equal(letter?.letter.hasMessage, true);
  await box.record([act('refused', 'asked'), act('refused')]);
  assert.equal((await box.read()).open.length, 1);
  await box.record([act('applied')]);
  assert.deepEqual((await box.read()).open, []);
  assert.deepEqual(
    (await box.read()).acts.map(({ phase, items }) => [phase, items[0]?.result]),
    [
      ['asked', undefined],
      ['done', 'refused'],
      ['done', 'applied'],
    ],
  );
  await writer.put(refused(log, 0, 'put', 1), poison);
  assert.equal((await box.read()).open.length, 1);
  await close();
});

test('a writer that was replaced cannot put letters away any more', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad');
  const { letters, box, close } = await logOf(log);
  const [old, successor] = [letters(), letters()];
  assert.equal(await old.put(refused(log, 0, 'put', 1), poison), true);
  assert.equal(await successor.put(refused(log, 0, 'put', 1), poison), true);
  assert.equal(await old.put(refused(log, 1, 'put', 2), poison), false);
  assert.deepEqual(
    (await box.read()).open.map(({ letter }) => letter.offset),
    [0],
  );
  await close();
});

test('a message that is too large for the topic, or gone from the log, leaves its key and its cause', async () => {
  const log = new TestLog().put(1, 'x'.repeat(3_000));
  const { letters, box, close } = await logOf(log, { maxRecordBytes: 3_500 });
  const reason = 'because '.repeat(30);
  await letters().put(refused(log, 0, 'put', 1), errors.TEST_POISON({ message: reason }));
  const gone = { ...refused(log, 0, 'put', 1) };
  await letters().put({ ...gone, change: { ...gone.change, offset: 99, version: 9n << 20n } }, poison);
  assert.deepEqual(
    (await box.read()).open.map(({ letter }) => [letter.offset, letter.hasMessage, letter.table]),
    [
      [0, false, 'shop.orders'],
      [99, false, 'shop.orders'],
    ],
  );
  await close();
});

test('a retry applies the newest state that the log has of the key, a deletion also from its letter', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad').put(1, 'newest').remove(3).put(4, 'bad');
  const { transport, letters, box, close } = await logOf(log);
  const writer = letters();
  for (const [offset, kind, id] of [
    [0, 'put', 1],
    [3, 'delete', 3],
    [4, 'put', 4],
  ] as const) {
    await writer.put(refused(log, offset, kind, id), poison);
  }
  const sink = new MemorySink();
  sink.rows.set('3', { state: 'old', version: 1n });
  const topic = await transport.describeTopic('shop');
  assert.ok(topic);
  sink.marker = markerOf(topic.id, 4);
  const reader = log.reader;
  const desk = deskOf({
    sink,
    // Compaction has taken the deletion; the letters are whole.
    log: {
      offsetRanges: reader.offsetRanges,
      read: async function* (options) {
        for await (const batch of reader.read(options)) {
          yield { ...batch, records: batch.records.filter(({ offset }) => offset !== 3) };
        }
      },
    },
    topic,
    letterRecord: ({ at }) => readRecord({ transport, topic: spec.name, partition: 0 }, at),
  });
  const results = await desk.reapply((await box.read()).open);
  assert.deepEqual(
    results.map(({ first, result }) => [first, result]),
    [
      [0, 'applied'],
      [3, 'applied'],
      [4, 'applied'],
    ],
  );
  assert.deepEqual(
    sink.states(),
    { 1: 'newest', 4: 'bad' },
    'also one whose writer was killed before it moved the marker',
  );
  assert.equal(sink.next, 4);
  await close();
});

test('a letter whose table was cleared since is settled, and brings nothing back', async () => {
  const log = new TestLog().put(1, 'bad').put(2, 'bad').truncate().put(2, 'after');
  const { transport, letters, box, close } = await logOf(log);
  const writer = letters();
  for (const [offset, id] of [
    [0, 1],
    [1, 2],
  ] as const) {
    await writer.put(refused(log, offset, 'put', id), poison);
  }
  const topic = await transport.describeTopic('shop');
  assert.ok(topic);
  const sink = new MemorySink();
  sink.marker = markerOf(topic.id, 4);
  const desk = deskOf({ sink, log: transport, topic, letterRecord: () => Promise.resolve(null) });
  const results = await desk.reapply((await box.read()).open);
  assert.deepEqual(
    results.map(({ first, result }) => [first, result]),
    [
      [0, 'superseded'],
      [1, 'applied'],
    ],
  );
  assert.deepEqual(sink.states(), { 2: 'after' });
  await close();
});

test('what two commands do at a time is told to the one that came first', async () => {
  const log = new TestLog().put(1, 'bad');
  const { transport, box, close } = await logOf(log);
  const publisher = transport.openPublisher.bind(transport);
  let second = true;
  transport.openPublisher = async (options) => {
    const opened = await publisher(options);
    if (second) {
      second = false;
      await (await publisher(options)).close();
    }
    return opened;
  };
  await assert.rejects(box.record([act('applied')]), (error) => isMysyncError(error, 'WRITER_BUSY'));
  assert.deepEqual((await box.read()).acts, []);
  await close();
});
