/** What the conformance suite is made of: the adapter's description, and a bench that each test gets anew. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type {
  AssignedPartition,
  Consumer,
  IncomingRecord,
  OutgoingRecord,
  Publisher,
  RecordBatch,
  TopicSpec,
  Transport,
} from './port.ts';

/** What an adapter tells the suite about itself. A capability that is left out skips its tests visibly. */
export interface ConformanceOptions {
  /** Stands before every test's name. */
  readonly name: string;
  /** A new client of the same servers (or files) at each call, as another process would make it. */
  readonly createTransport: () => Promise<Transport>;
  /** A name that no topic has yet. */
  readonly topicName: () => string;
  /** Laid over the suite's topic settings, for example `{ allowWeaker: true }` on a single Kafka node. */
  readonly spec?: Partial<TopicSpec>;
  /** Value size of one record that must be stored. Default 900,000. */
  readonly bigRecordBytes?: number;
  /** Value size of one record that must be refused. */
  readonly tooLargeRecordBytes?: number;
  /** Makes a topic of one partition that is compacted within seconds while records keep coming. */
  readonly createCompactingTopic?: (transport: Transport, name: string, deleteRetentionMs: number) => Promise<void>;
  /** Deletes a topic by whatever means an operator has. */
  readonly deleteTopic?: (name: string) => Promise<void>;
  /** Removes everything before `offset`, as retention would. */
  readonly truncateBefore?: (topic: string, partition: number, offset: number) => Promise<void>;
  /** Per test. Default 60 s. */
  readonly timeoutMs?: number;
}

/** An incoming record whose bytes were copied, with its partition. */
export interface Seen {
  readonly member: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly value: string | null;
}

/** One thing that a group member lived through. */
export type GroupEvent =
  | {
      readonly kind: 'assigned';
      readonly member: string;
      readonly partition: number;
      readonly committed: number | null;
    }
  | { readonly kind: 'record'; readonly member: string; readonly seen: Seen }
  | { readonly kind: 'ended'; readonly member: string; readonly partition: number };

/** Entries in the order in which they came, and waiting for them without polling. */
export class Journal<T> {
  readonly entries: T[] = [];
  readonly #waiting = new Set<() => void>();

  push(entry: T): void {
    this.entries.push(entry);
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves as soon as the predicate holds; rejects when one of `failures` does first. */
  async wait(predicate: (entries: readonly T[]) => boolean, ...failures: readonly Promise<unknown>[]): Promise<void> {
    if (predicate(this.entries)) return;
    let look = (): void => {};
    const held = new Promise<void>((resolve) => {
      look = () => {
        if (predicate(this.entries)) resolve();
      };
      this.#waiting.add(look);
    });
    try {
      await Promise.race([
        held,
        ...failures.map(async (failure) => {
          await failure;
          assert.fail('the member ended before what the test waits for');
        }),
      ]);
    } finally {
      this.#waiting.delete(look);
    }
  }
}

export interface Member {
  readonly name: string;
  readonly consumer: Consumer;
  readonly done: Promise<void>;
  /** Leaves the group and waits for `run` to end. */
  stop(): Promise<void>;
}

export interface MemberOptions {
  readonly name: string;
  readonly topic: string;
  readonly group: string;
  readonly journal: Journal<GroupEvent>;
  readonly transport?: Transport;
  readonly handoverMs?: number;
  /** Default: reads from the committed offset (or the earliest), journals each record, commits each batch. */
  readonly handle?: (partition: AssignedPartition) => Promise<void>;
}

/** What one test works with. Everything it opens is closed at the end. */
export class Bench {
  readonly options: ConformanceOptions;
  readonly #stop = new AbortController();
  readonly #transports: Transport[] = [];
  readonly #members: Member[] = [];

  constructor(options: ConformanceOptions) {
    this.options = options;
  }

  /** Aborts when the test ends. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  async transport(): Promise<Transport> {
    const transport = await this.options.createTransport();
    this.#transports.push(transport);
    return transport;
  }

  spec(name: string, partitions = 1, more: Partial<TopicSpec> = {}): TopicSpec {
    return {
      name,
      partitions,
      compacted: true,
      deleteRetentionMs: 7 * 86_400_000,
      minCompactionLagMs: 86_400_000,
      retentionMs: -1,
      allowWeaker: false,
      ...this.options.spec,
      ...more,
    };
  }

  async topic(transport: Transport, partitions = 1): Promise<string> {
    const name = this.options.topicName();
    await transport.ensureTopic(this.spec(name, partitions));
    return name;
  }

  publisher(transport: Transport, topic: string, producer = `p-${topic}`): Promise<Publisher> {
    return transport.openPublisher({ topic, producer, previous: null });
  }

  async join(options: MemberOptions): Promise<Member> {
    const { name, topic, group, journal, handoverMs = 20_000 } = options;
    const transport = options.transport ?? (await this.transport());
    const consumer = await transport.openConsumer({ topic, group, maxBatchBytes: 1 << 20, handoverMs });
    const stop = new AbortController();
    const handle = options.handle ?? ((partition: AssignedPartition) => follow(partition, name, journal));
    const run = async (partition: AssignedPartition): Promise<void> => {
      journal.push({ kind: 'assigned', member: name, partition: partition.partition, committed: partition.committed });
      try {
        await handle(partition);
      } finally {
        journal.push({ kind: 'ended', member: name, partition: partition.partition });
      }
    };
    const done = consumer.run(run, stop.signal);
    done.catch(() => {});
    const member: Member = {
      name,
      consumer,
      done,
      stop: async () => {
        stop.abort();
        await done;
        await consumer.close();
      },
    };
    this.#members.push({ ...member, stop: async () => stop.abort() });
    return member;
  }

  async dispose(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#members.map((member) => member.stop()));
    await Promise.allSettled(this.#members.map((member) => member.done));
    await Promise.all(this.#transports.map((transport) => transport.close()));
  }
}

async function follow(partition: AssignedPartition, member: string, journal: Journal<GroupEvent>): Promise<void> {
  for await (const batch of partition.batches(partition.committed ?? partition.range.earliest)) {
    for (const record of batch.records) {
      journal.push({ kind: 'record', member, seen: copied(record, partition.partition, member) });
    }
    await partition.commit(batch.nextOffset);
  }
}

export type Register = (title: string, run: (bench: Bench) => Promise<void>, missing?: boolean) => void;

/** Registers one test of the suite; `missing` names an absent capability. */
export function registrar(options: ConformanceOptions): Register {
  return (title, run, missing = false) => {
    const settings = {
      timeout: options.timeoutMs ?? 60_000,
      skip: missing ? 'the adapter has not given this capability' : false,
    };
    test(`${options.name}: ${title}`, settings, async () => {
      const bench = new Bench(options);
      try {
        await run(bench);
      } finally {
        await bench.dispose();
      }
    });
  };
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function record(key: string, value: string | null = key): OutgoingRecord {
  return { key: bytes(key), value: value === null ? null : bytes(value), headers: [] };
}

export function randomName(prefix: string): string {
  return `${prefix}-${randomBytes(6).toString('hex')}`;
}

export function copied(source: IncomingRecord, partition: number, member = ''): Seen {
  return {
    member,
    partition,
    offset: source.offset,
    key: Buffer.from(source.key).toString(),
    value: source.value === null ? null : Buffer.from(source.value).toString(),
  };
}

/** Every record of a partition that is there now. */
export async function readAll(transport: Transport, topic: string, partition = 0, from?: number): Promise<Seen[]> {
  const range = (await transport.offsetRanges(topic))[partition];
  assert.ok(range !== undefined);
  const seen: Seen[] = [];
  for await (const batch of transport.read({ topic, partition, from: from ?? range.earliest, until: range.end })) {
    checkBatch(batch, partition);
    for (const each of batch.records) seen.push(copied(each, partition));
  }
  return seen;
}

/** What holds for every batch. */
export function checkBatch(batch: RecordBatch, partition: number): void {
  assert.equal(batch.partition, partition);
  let last = -1;
  for (const each of batch.records) {
    assert.ok(each.offset > last, 'offsets ascend within a batch');
    last = each.offset;
  }
  assert.ok(batch.nextOffset > last, 'the next offset lies behind the last record');
  assert.ok(batch.endOffset >= batch.nextOffset, 'the end is not before the next offset');
}

export async function rejectsWith(code: string, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(isMysyncError(error), `expected ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.toString());
    return true;
  });
}
