import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger, systemClock } from '@mysync/core';
import type { PassedBatch } from '@mysync/flow';
import { createMetrics } from '@mysync/telemetry';
import { type OutgoingRecord, type ProducerIdentity, type Publisher, transportErrors } from '@mysync/transport';
import { encodeControl, encodeTransaction, readDelivery, readOperation } from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';
import type { LargeRowPolicy } from './large-rows.ts';
import { PublishPump } from './publish-pump.ts';
import { rowEntry } from './rows.fixture.ts';

interface Call {
  readonly partition: number;
  /** Copied when published: what would be stored. */
  readonly sequences: readonly { epoch: number; generation: number; base: number; sequence: number }[];
  readonly operations: readonly string[];
  readonly store: (offset: number) => void;
  readonly refuse: (error: unknown) => void;
}

/** A publisher whose answers the test gives. */
class ScriptedPublisher implements Publisher {
  readonly maxOpenBatches = 3;
  maxBatchBytes = 1 << 20;
  surelyTakenBytes = 1 << 20;
  readonly calls: Call[] = [];
  identity: ProducerIdentity = { id: '7', epoch: 0 };
  log: string[] = [];

  publish(partition: number, records: readonly OutgoingRecord[]): Promise<{ baseOffset: number }> {
    const operations = records.map(({ value }) => readOperation(value ?? Buffer.alloc(0)));
    const sequences = records.map((record) => {
      const { epoch, generation, base, sequence } = readDelivery(record.value ?? Buffer.alloc(0));
      return { epoch, generation, base, sequence };
    });
    return new Promise((resolve, reject) => {
      this.calls.push({
        partition,
        sequences,
        operations,
        store: (baseOffset) => resolve({ baseOffset }),
        refuse: reject,
      });
    });
  }

  takes({ key, value, headers }: OutgoingRecord): boolean {
    return key.length + (value?.length ?? headers[0]?.value.length ?? 0) <= this.surelyTakenBytes;
  }

  renumber(): Promise<ProducerIdentity> {
    this.identity = { id: '7', epoch: this.identity.epoch + 1 };
    this.log.push(`renumber ${this.identity.epoch}`);
    return Promise.resolve(this.identity);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const transaction = encodeTransaction({
  source: 's',
  serverUuid: 'u',
  id: { file: 'bin.1', offset: 4, gtid: '', ordinal: 0 },
  commitTimeMicros: 1,
});

function entry(): WindowEntry {
  const message = encodeControl({ operation: 'heartbeat', transaction, ordinal: 0 });
  const id = { file: 'bin.1', offset: 4, gtid: '', ordinal: 0 };
  return { message, transaction: { id, commitTimeMicros: 1, counter: 9 }, ordinal: 0, versionOrdinal: 0 };
}

function setUp(partitions: number, windowMessages = 100, onLargeRow: LargeRowPolicy = 'halt', takenBytes = 1 << 20) {
  const publisher = new ScriptedPublisher();
  publisher.surelyTakenBytes = takenBytes;
  const acked: { partition: number; run: PassedBatch }[] = [];
  const pump = new PublishPump({
    source: 's',
    publisher,
    epoch: 5,
    starts: Array.from({ length: partitions }, () => ({ sequence: 10, offset: 99 })),
    windowMessages,
    windowBytes: 1 << 20,
    batchMessages: 2,
    saveIdentity: async (identity) => {
      publisher.log.push(`saved ${identity.epoch}`);
    },
    onAcked: (partition, run) => acked.push({ partition, run }),
    onLargeRow: () => onLargeRow,
    clock: systemClock,
    logger: silentLogger,
    metrics: createMetrics(),
  });
  return { publisher, pump, acked };
}

/** Lets everything that is ready run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('messages get contiguous sequences behind the frontier, under the epoch, in batches', async () => {
  const { publisher, pump, acked } = setUp(1);
  for (let i = 0; i < 3; i += 1) assert.equal(pump.tryPut(0, entry()), 11 + i);
  pump.flush();
  assert.deepEqual(
    publisher.calls.flatMap((call) => call.sequences),
    [11, 12, 13].map((sequence) => ({ epoch: 5, generation: 0, base: 11, sequence })),
  );
  publisher.calls[0]?.store(100);
  publisher.calls[1]?.store(102);
  await pump.drain();
  assert.equal(pump.ackedSequence(0), 13);
  assert.deepEqual(
    acked.map(({ run }) => [run.firstSequence, run.count, run.baseOffset]),
    [
      [11, 2, 100],
      [13, 1, 102],
    ],
  );
});

test('a message is given back once, when it is stored and never sent again', async () => {
  const { publisher, pump } = setUp(1);
  const back: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    const put = entry();
    put.message.giveBack = () => void back.push(i);
    pump.tryPut(0, put);
  }
  pump.flush();
  publisher.calls[1]?.store(102);
  await settle();
  publisher.calls[0]?.refuse(transportErrors.TRANSPORT_RENUMBER({ message: 'unknown producer' }));
  await settle();
  assert.deepEqual(back, []);
  publisher.calls[2]?.store(110);
  await settle();
  // the base waits for what was sent before that ack
  assert.deepEqual(back, []);
  publisher.calls[3]?.store(112);
  await pump.drain();
  assert.deepEqual(back, [0, 1, 2, 3]);
});

test('a refusal sends everything not acked, of all partitions, again: epoch raised and saved first, next generation', async () => {
  const { publisher, pump } = setUp(2);
  for (let i = 0; i < 4; i += 1) pump.tryPut(0, entry());
  for (let i = 0; i < 2; i += 1) pump.tryPut(1, entry());
  pump.flush();
  publisher.calls[0]?.store(100);
  await settle();
  const before = publisher.calls.length;
  publisher.calls[1]?.refuse(transportErrors.TRANSPORT_RENUMBER({ message: 'unknown producer' }));
  await settle();
  assert.deepEqual(publisher.log, ['renumber 1', 'saved 1']);
  const again = publisher.calls.slice(before);
  assert.deepEqual(
    again.map((call) => [call.partition, call.sequences.map(({ sequence }) => sequence)]),
    [
      // the first batch was acked while the second was still open, so the base could not move over it
      [0, [11, 12]],
      [0, [13, 14]],
      [1, [11, 12]],
    ],
  );
  assert.ok(again.every((call) => call.sequences.every(({ generation, base }) => generation === 1 && base === 11)));
});

test('batches stored in another order than sent go again', async () => {
  const { publisher, pump } = setUp(1);
  for (let i = 0; i < 4; i += 1) pump.tryPut(0, entry());
  pump.flush();
  publisher.calls[1]?.store(100);
  publisher.calls[0]?.store(102);
  await settle();
  assert.deepEqual(publisher.log, ['renumber 1', 'saved 1']);
  assert.equal(pump.ackedSequence(0), 10);
  assert.deepEqual(publisher.calls[2]?.sequences[0], { epoch: 5, generation: 1, base: 11, sequence: 11 });
});

test('a full window takes nothing, waits for room, and loses nothing', async () => {
  const { publisher, pump } = setUp(1, 2);
  assert.equal(pump.tryPut(0, entry()), 11);
  assert.equal(pump.tryPut(0, entry()), 12);
  assert.equal(pump.tryPut(0, entry()), false);
  const room = pump.room();
  await settle();
  publisher.calls[0]?.store(100);
  await room;
  assert.equal(pump.tryPut(0, entry()), 13);
});

test('being fenced ends publishing with the error, also for those who wait', async () => {
  const { publisher, pump } = setUp(1, 2);
  pump.tryPut(0, entry());
  pump.flush();
  const waiting = [pump.room(), pump.failed, pump.drain()];
  publisher.calls[0]?.refuse(transportErrors.TRANSPORT_FENCED({ message: 'a successor is active' }));
  for (const result of await Promise.allSettled(waiting)) {
    assert.equal(result.status, 'rejected');
    assert.equal((result as PromiseRejectedResult).reason.code, 'TRANSPORT_FENCED');
  }
});

test('a log that shrank below what was acked ends publishing', async () => {
  const { publisher, pump } = setUp(1);
  pump.tryPut(0, entry());
  pump.flush();
  publisher.calls[0]?.store(42);
  await assert.rejects(pump.failed, { code: 'READER_LOG_TRUNCATED' });
});

test('a stop drains while a snapshot drains: both see the end', async () => {
  const { publisher, pump } = setUp(1);
  pump.tryPut(0, entry());
  const both = Promise.all([pump.drain(), pump.drain()]);
  publisher.calls[0]?.store(100);
  await both;
});

test('a refusal that may pass is told, shown as the trouble of the moment, and gone with the next ack', async () => {
  const { publisher, pump } = setUp(1);
  pump.tryPut(0, entry());
  pump.flush();
  publisher.calls[0]?.refuse(transportErrors.TRANSPORT_DISK_FULL({ message: 'no room' }));
  while (publisher.calls.length < 2) await systemClock.sleep(20);
  assert.equal(pump.trouble, 'TRANSPORT_DISK_FULL: no room');
  publisher.calls[1]?.store(100);
  await pump.drain();
  assert.equal(pump.trouble, '');
});

test('a record that is too large ends publishing also when its neighbours were given back before it', async () => {
  const { publisher, pump } = setUp(2);
  pump.tryPut(0, entry());
  pump.tryPut(1, entry());
  pump.flush();
  publisher.calls[0]?.refuse(transportErrors.TRANSPORT_RENUMBER({ message: 'a batch was refused' }));
  publisher.calls[1]?.refuse(transportErrors.TRANSPORT_RECORD_TOO_LARGE({ message: 'it is', where: { record: 0 } }));
  await assert.rejects(pump.failed, { code: 'TRANSPORT_RECORD_TOO_LARGE' });
});

const LIMIT = 300;
const small = () => rowEntry('insert', null, [1, 'us', 'a']);
const large = () => rowEntry('insert', null, [1, 'us', 'a'.repeat(LIMIT)]);
const tooLarge = (where: { record?: number } = {}) =>
  transportErrors.TRANSPORT_RECORD_TOO_LARGE({ message: 'it is', where });
const sent = (calls: readonly Call[]): string[] =>
  calls.map(
    ({ partition, sequences, operations }) => `${partition}: ${sequences[0]?.sequence} ${operations.join(' ')}`,
  );

test('what the transport is known not to take is sent smaller the first time, and counts as what it is', async () => {
  const { publisher, pump } = setUp(1, 100, 'withhold', LIMIT);
  const bytes = (entry: WindowEntry): number => entry.message.bytes;
  const entries = [small(), large(), large(), small()];
  publisher.maxBatchBytes = 2 * bytes(entries[0] as WindowEntry) + 200;
  for (const entry of entries) pump.tryPut(0, entry);
  pump.flush();
  assert.deepEqual(sent(publisher.calls), ['0: 11 insert withheld', '0: 13 withheld insert']);
  publisher.calls[0]?.store(100);
  publisher.calls[1]?.store(102);
  await pump.drain();
  assert.deepEqual(publisher.log, []);
});

test('what waits when the limit is lowered is smaller the first time too', async () => {
  const { publisher, pump } = setUp(1, 100, 'withhold');
  for (const entry of [small(), large(), large()]) pump.tryPut(0, entry);
  publisher.surelyTakenBytes = LIMIT;
  pump.flush();
  assert.deepEqual(sent(publisher.calls), ['0: 11 insert withheld', '0: 13 withheld']);
});

test('after a refusal all that was refused or never given goes smaller in one rewind; what may be stored stays as it is', async () => {
  const { publisher, pump } = setUp(2, 100, 'withhold');
  // three batches are open at a time: the fourth was never given
  for (let i = 0; i < 8; i += 1) pump.tryPut(0, i === 1 ? small() : large());
  for (let i = 0; i < 8; i += 1) pump.tryPut(1, large());
  pump.flush();
  publisher.calls[0]?.store(100);
  await settle();
  const before = publisher.calls.length;
  publisher.surelyTakenBytes = LIMIT;
  publisher.calls[1]?.refuse(tooLarge({ record: 1 }));
  await settle();
  assert.deepEqual(publisher.log, ['renumber 1', 'saved 1']);
  assert.deepEqual(sent(publisher.calls.slice(before)), [
    // of the first batch nobody knows any more where it is: its ack came while others were open
    '0: 11 insert insert',
    '0: 13 withheld withheld',
    '0: 15 withheld withheld',
    '1: 11 insert insert',
    '1: 13 insert insert',
    '1: 15 insert insert',
  ]);
  // the other partition is refused once as well, then all of it is smaller
  const again = publisher.calls.length;
  publisher.calls[before]?.store(102);
  await settle();
  publisher.calls[before + 3]?.refuse(tooLarge({ record: 0 }));
  await settle();
  assert.deepEqual(publisher.log.slice(2), ['renumber 2', 'saved 2']);
  assert.deepEqual(sent(publisher.calls.slice(again)), [
    '0: 17 withheld withheld',
    '0: 11 insert insert',
    '0: 13 withheld withheld',
    '0: 15 withheld withheld',
    '1: 11 withheld withheld',
    '1: 13 withheld withheld',
    '1: 15 withheld withheld',
  ]);
});

test('a batch that is too large only as a whole goes again as it is', async () => {
  const { publisher, pump } = setUp(1, 100, 'withhold');
  pump.tryPut(0, large());
  pump.tryPut(0, large());
  pump.flush();
  publisher.calls[0]?.refuse(tooLarge());
  await settle();
  assert.deepEqual(sent(publisher.calls), ['0: 11 insert insert', '0: 11 insert insert']);
  publisher.calls[1]?.store(100);
  await pump.drain();
});
