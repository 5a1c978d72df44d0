/** Brokers that die, freeze and come back, under load. Servers of these tests alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer, until } from '@mysync/harness';
import type { Publisher, Transport } from '@mysync/transport';
import type { KafkaOptions } from './options.ts';
import { readAll, record, type SeenRecord, spec, topicName, transportOn } from './testing.ts';

/** Publishes numbered records into every partition until stopped, as many batches open as the publisher allows. */
class Load {
  readonly #publisher: Publisher;
  readonly #stop = new AbortController();
  readonly #lanes: Promise<void>[];
  readonly next: number[];
  readonly acked: number[];

  constructor(publisher: Publisher, partitions: number) {
    this.#publisher = publisher;
    this.next = new Array<number>(partitions).fill(0);
    this.acked = new Array<number>(partitions).fill(0);
    this.#lanes = this.next.map((_, partition) => this.#run(partition));
    for (const lane of this.#lanes) lane.catch(() => {});
  }

  async #run(partition: number): Promise<void> {
    const open: Promise<void>[] = [];
    while (!this.#stop.signal.aborted) {
      while (open.length < this.#publisher.maxOpenBatches) open.push(this.#batch(partition));
      await open.shift();
    }
    await Promise.all(open);
  }

  async #batch(partition: number): Promise<void> {
    const first = this.next[partition]!;
    const count = 1 + (first % 7);
    this.next[partition] = first + count;
    const records = Array.from({ length: count }, (_, index) => record(`${first + index}`, 'v'.repeat(200)));
    const { baseOffset } = await this.#publisher.publish(partition, records);
    assert.equal(baseOffset, first, 'the offset is the number: nothing lost, nothing twice, nothing foreign');
    assert.equal(this.acked[partition], first, 'acks come in order');
    this.acked[partition] = first + count;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#lanes);
  }

  /** Waits until every partition has acked `more` records beyond what it has now. */
  async goesOn(more: number): Promise<void> {
    const goal = this.acked.map((count) => count + more);
    await until(
      `${more} more records are acked`,
      () =>
        Promise.race([Promise.all(this.#lanes).then(() => true), goal.every((count, p) => this.acked[p]! >= count)]),
      { timeoutMs: 90_000 },
    );
  }

  check(partition: number, log: readonly SeenRecord[]): void {
    assert.deepEqual(
      log.map(({ key }) => key),
      Array.from({ length: this.next[partition]! }, (_, index) => `${index}`),
    );
  }
}

/** Follows a topic in a group and notes every record once per delivery. */
class Follower {
  readonly seen = new Map<number, number[]>();
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(transport: Transport, topic: string, group: string) {
    this.#done = this.#run(transport, topic, group);
    this.#done.catch(() => {});
  }

  async #run(transport: Transport, topic: string, group: string): Promise<void> {
    const consumer = await transport.openConsumer({ topic, group, maxBatchBytes: 2 ** 18, handoverMs: 5000 });
    await consumer.run(async (partition) => {
      const mine = this.seen.get(partition.partition) ?? [];
      this.seen.set(partition.partition, mine);
      for await (const { records, nextOffset } of partition.batches(partition.committed ?? 0)) {
        for (const { offset, key } of records) {
          assert.equal(Buffer.from(key).toString(), `${offset}`);
          mine.push(offset);
        }
        try {
          await partition.commit(nextOffset);
        } catch (error) {
          // The session ran out while no broker answered: the partition comes again, from the last commit.
          if (isMysyncError(error, 'TRANSPORT_NOT_OWNER')) return;
          throw error;
        }
      }
    }, this.#stop.signal);
    await consumer.close();
  }

  async sees(partition: number, end: number): Promise<void> {
    await until(
      `partition ${partition} is read to ${end}`,
      () => Promise.race([this.#done.then(() => true), this.seen.get(partition)?.at(-1) === end - 1]),
      { timeoutMs: 90_000 },
    );
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  /** In order, and without a hole; deliveries may repeat from a commit on. */
  check(partition: number, end: number): void {
    let next = 0;
    for (const offset of this.seen.get(partition) ?? []) {
      assert.ok(offset <= next, `offset ${offset} came where ${next} was due`);
      next = Math.max(next, offset + 1);
    }
    assert.equal(next, end);
  }
}

async function underLoad(
  server: TestServer,
  options: Partial<KafkaOptions> & { partitions: number; allowWeaker: boolean },
  faults: (load: Load, topic: string, transport: Transport) => Promise<void>,
): Promise<void> {
  const { partitions, allowWeaker, ...more } = options;
  const transport = transportOn(server, { requestTimeoutMs: 4_000, sessionTimeoutMs: 6_000, ...more });
  try {
    const topic = topicName();
    await transport.ensureTopic(spec(topic, partitions, { allowWeaker }));
    const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
    const load = new Load(publisher, partitions);
    const follower = new Follower(transport, topic, topic);
    await load.goesOn(100);
    await faults(load, topic, transport);
    await load.stop();
    for (let partition = 0; partition < partitions; partition++) {
      await follower.sees(partition, load.next[partition]!);
      load.check(partition, await readAll(transport, topic, partition));
      follower.check(partition, load.next[partition]!);
    }
    await follower.stop();
  } finally {
    await transport.close();
  }
}

test('kill -9 of the only broker under load, twice: order holds, nothing is lost or stored twice', async () => {
  await using server = await startServer('kafka');
  let resent = 0;
  const observer = {
    batchesResent: ({ count }: { count: number }) => {
      resent += count;
    },
  };
  await underLoad(server, { partitions: 3, allowWeaker: true, observer }, async (load) => {
    for (let round = 0; round < 2; round++) {
      await server.kill();
      await server.up();
      await load.goesOn(100);
    }
  });
  assert.ok(resent > 0, 'batches were open when the broker died');
});

test('a frozen broker: answers that never came are met by the same numbers again', async () => {
  await using server = await startServer('kafka');
  let resent = 0;
  const observer = {
    batchesResent: ({ count }: { count: number }) => {
      resent += count;
    },
  };
  const options = { partitions: 2, allowWeaker: true, observer, requestTimeoutMs: 1000, connectionTimeoutMs: 500 };
  await underLoad(server, options, async (load) => {
    for (let round = 0; round < 3; round++) {
      const before = resent;
      await server.pause();
      await until('a request was given up', () => resent > before);
      await server.resume();
      await load.goesOn(100);
    }
  });
});

test('three brokers, each killed and brought back in turn: order holds and both sides go on by themselves', async () => {
  await using server = await startServer('kafka', { env: { NODES: '3' } });
  await underLoad(server, { partitions: 3, allowWeaker: false }, async (load, topic, transport) => {
    const description = await transport.describeTopic(topic);
    assert.equal(description?.partitions, 3);
    for (const part of ['n1', 'n2', 'n3']) {
      await server.kill(part);
      // Each node leads one of three partitions: its death moves a leader, and with two in sync writing goes on.
      await load.goesOn(100);
      await server.upPart(part);
      await load.goesOn(100);
    }
  });
});
