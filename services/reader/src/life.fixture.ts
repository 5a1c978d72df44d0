import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Checkpoint,
  type CheckpointStore,
  checkpointErrors,
  encodeCheckpoint,
  parseCheckpoint,
} from '@mysync/checkpoint';
import { type Clock, silentLogger } from '@mysync/core';
import { initialGuardState, SequenceGuard } from '@mysync/flow';
import { createMetrics, type Metrics } from '@mysync/telemetry';
import type { OutgoingRecord, ProducerIdentity, Publisher, PublisherOptions, Transport } from '@mysync/transport';
import { LogTransport } from '@mysync/transport-log';
import { type BaseMessage, keyKind, MessageDecoder, payloadOf, readDelivery } from '@mysync/wire';
import type { LargeRowPolicy } from './large-rows.ts';
import type { ReaderOptions, UnseenPolicy } from './options.ts';
import { Reader } from './reader.ts';
import { type TestServer, TestSource } from './source.fixture.ts';
import { VIEW_WAIT_MS } from './table-resync.ts';

export const HEARTBEAT_MS = 10_000;
export const CHECKPOINT_MS = 1_500;
export const DRAIN_MS = 60_000;
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A checkpoint that outlives readers. */
export class MemoryCheckpoints implements CheckpointStore {
  stored: Checkpoint | null = null;

  load(): Promise<Checkpoint | null> {
    return Promise.resolve(this.stored);
  }

  save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    if ((this.stored?.epoch ?? null) !== replaces) {
      return Promise.reject(checkpointErrors.CHECKPOINT_FENCED({ message: 'another one' }));
    }
    // as a store does: what it could not load again is not saved
    this.stored = parseCheckpoint(encodeCheckpoint(checkpoint), 'memory');
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** When a process dies: at its `at`th step outward; `late`: that step still has its effect, but nobody learns of it. */
export interface Death {
  readonly at: number;
  readonly late: boolean;
}

/**
 * One process: all that a reader does outward goes through `step`. After its death nothing answers it any more and no time
 * passes for it, as after a kill.
 */
export class Life {
  readonly #death: Death;
  steps = 0;
  dead = false;
  readonly died: Promise<void>;
  #die: () => void = () => undefined;

  constructor(death: Death = { at: Number.POSITIVE_INFINITY, late: false }) {
    this.#death = death;
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
  }

  async step<T>(action: () => Promise<T>): Promise<T> {
    if (this.dead) return await never<T>();
    this.steps += 1;
    if (this.steps < this.#death.at) return await action();
    this.dead = true;
    if (this.#death.late) await action().catch(() => undefined);
    this.#die();
    return await never<T>();
  }

  /** Heartbeats and checkpoints come at every turn, but only so often; the time to drain is over at once or never. */
  clock(beats: number, saves: number, patient: boolean): Clock {
    const left = new Map([
      [HEARTBEAT_MS, beats],
      [CHECKPOINT_MS, saves],
      [DRAIN_MS, patient ? 0 : 1],
      [VIEW_WAIT_MS, 0],
    ]);
    let seconds = 0;
    return {
      now: () => Date.UTC(2026, 0, 1),
      monotonic: () => {
        seconds += 1;
        return seconds * 1000;
      },
      sleep: async (ms, signal) => {
        const more = left.get(ms) ?? Number.POSITIVE_INFINITY;
        left.set(ms, more - 1);
        await turn();
        if (more > 0 && !this.dead && !signal?.aborted) return;
        await new Promise((_, reject) => {
          if (signal?.aborted) reject(signal.reason);
          else signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
      },
    };
  }

  checkpoints(store: MemoryCheckpoints): CheckpointStore {
    return {
      load: () => this.step(() => store.load()),
      save: (checkpoint, replaces) => this.step(() => store.save(checkpoint, replaces)),
      close: () => Promise.resolve(),
    };
  }

  transport(transport: Transport, store: MemoryCheckpoints): Transport {
    return {
      kind: transport.kind,
      ensureTopic: (spec) => this.step(() => transport.ensureTopic(spec)),
      describeTopic: (name) => transport.describeTopic(name),
      check: (spec) => transport.check(spec),
      offsetRanges: (topic) => this.step(() => transport.offsetRanges(topic)),
      committedOffsets: (topic, group) => transport.committedOffsets(topic, group),
      read: (options) => transport.read(options),
      openConsumer: (options) => transport.openConsumer(options),
      openPublisher: (options) => this.step(() => this.#publisher(transport, store, options)),
      close: () => Promise.resolve(),
    };
  }

  async #publisher(transport: Transport, store: MemoryCheckpoints, options: PublisherOptions): Promise<Publisher> {
    const publisher = await transport.openPublisher(options);
    return {
      get identity(): ProducerIdentity {
        return publisher.identity;
      },
      maxOpenBatches: publisher.maxOpenBatches,
      maxBatchBytes: publisher.maxBatchBytes,
      surelyTakenBytes: publisher.surelyTakenBytes,
      takes: (record) => publisher.takes(record),
      publish: (partition, records) => {
        if (!this.dead) assertSaved(store, publisher.identity, records);
        return this.step(() => publisher.publish(partition, records));
      },
      renumber: () => this.step(() => publisher.renumber()),
      close: (drainMs) => publisher.close(drainMs),
    };
  }
}

/** Nothing is published under what the checkpoint does not hold. */
function assertSaved(store: MemoryCheckpoints, identity: ProducerIdentity, records: readonly OutgoingRecord[]): void {
  // a later one is that of a successor
  assert.equal(store.stored?.producer?.id, identity.id);
  assert.ok((store.stored?.producer?.epoch ?? 0) >= identity.epoch, 'a producer epoch is used before it is saved');
  for (const record of records) {
    const payload = payloadOf(record);
    if (payload === null) continue;
    assert.ok(readDelivery(payload).epoch <= (store.stored?.epoch ?? 0), 'an epoch is used before it is saved');
  }
}

export interface Place {
  readonly transport: Transport;
  readonly topic: string;
  readonly partitions: number;
  readonly checkpoints: MemoryCheckpoints;
  readonly server: TestServer;
}

export const PARTITIONS = 2;

/** Topics of an embedded log in a folder of its own. */
export class TestTopics {
  readonly #folder: string;
  readonly transport: LogTransport;
  #opened = 0;

  private constructor(folder: string, transport: LogTransport) {
    this.#folder = folder;
    this.transport = transport;
  }

  static async open(): Promise<TestTopics> {
    const folder = mkdtempSync(join(tmpdir(), 'mysync-reader-'));
    return new TestTopics(folder, await LogTransport.open({ path: folder, fsync: 'interval', maintenance: false }));
  }

  /** A new topic, and no checkpoint yet. */
  placeOf(server: TestServer): Place {
    this.#opened += 1;
    const { transport } = this;
    const topic = `topic-${this.#opened}`;
    return { transport, topic, partitions: PARTITIONS, checkpoints: new MemoryCheckpoints(), server };
  }

  async close(): Promise<void> {
    await this.transport.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export function readerOf(
  place: Place,
  life: Life,
  options: {
    captures?: readonly string[];
    fingerprint?: string;
    start?: ReaderOptions['start'];
    beats?: number;
    saves?: number;
    idleCheckpointMs?: number;
    windowMessages?: number;
    /** Whether a stop waits until all is acked. */
    patient?: boolean;
    /** Turns of the event loop between two batches of the source. */
    pace?: number;
    /** Transactions beyond the stream that have happened when a view is opened; default: all. */
    ahead?: number;
    /** Views that break off after so many items. */
    breaks?: readonly number[];
    stale?: readonly number[];
    onUnseenChange?: UnseenPolicy;
    onLargeRow?: LargeRowPolicy;
    atEnd?: () => void;
    metrics?: Metrics;
  } = {},
): { reader: Reader; source: TestSource } {
  const { transport, topic, partitions, checkpoints, server } = place;
  const { atEnd, captures = ['a'] } = options;
  const source = new TestSource(server, {
    captures,
    pace: options.pace ?? 1,
    ...(options.ahead === undefined ? {} : { ahead: options.ahead }),
    ...(atEnd === undefined ? {} : { atEnd }),
  });
  source.breaks.push(...(options.breaks ?? []));
  source.stale.push(...(options.stale ?? []));
  const reader = new Reader({
    sourceName: 'shop',
    source,
    transport: life.transport(transport, checkpoints),
    topic: {
      name: topic,
      partitions,
      compacted: true,
      deleteRetentionMs: 7 * 86_400_000,
      minCompactionLagMs: 86_400_000,
      retentionMs: -1,
      allowWeaker: false,
    },
    checkpoints: life.checkpoints(checkpoints),
    start: options.start ?? 'earliest',
    onUnseenChange: () => options.onUnseenChange ?? 'resync',
    onLargeRow: () => options.onLargeRow ?? 'halt',
    onAlter: 'keep',
    configFingerprint: options.fingerprint ?? 'config-1',
    windowMessages: options.windowMessages ?? 8,
    windowBytes: 1 << 20,
    batchMessages: 2,
    heartbeatMs: HEARTBEAT_MS,
    checkpointMs: CHECKPOINT_MS,
    idleCheckpointMs: options.idleCheckpointMs ?? 0,
    drainMs: DRAIN_MS,
    onSnapshotProgress: () => undefined,
    clock: life.clock(options.beats ?? 2, options.saves ?? 6, options.patient ?? true),
    logger: silentLogger,
    metrics: options.metrics ?? createMetrics(),
  });
  return { reader, source };
}

/** Runs a reader until it has read the log to its end and stops in order, or dies. True when it lived. */
export async function live(
  place: Place,
  death: Death | undefined,
  options: Parameters<typeof readerOf>[2] = {},
): Promise<{ lived: boolean; steps: number }> {
  const life = new Life(death);
  const stop = new AbortController();
  const { reader } = readerOf(place, life, { ...options, atEnd: () => stop.abort() });
  const ended = reader.run(stop.signal).then(() => true);
  const lived = await Promise.race([ended, life.died.then(() => false)]);
  return { lived, steps: life.steps };
}

export interface Effective {
  readonly partition: number;
  readonly message: BaseMessage;
}

/** What a guard lets through, less what a newer generation begins below; checks that a change has one version only. */
export async function effective({ transport, topic, partitions }: Place): Promise<readonly Effective[]> {
  const all: Effective[] = [];
  const ranges = await transport.offsetRanges(topic);
  for (let partition = 0; partition < partitions; partition += 1) {
    const guard = new SequenceGuard(initialGuardState(0));
    const decoder = new MessageDecoder();
    const accepted: BaseMessage[] = [];
    for await (const batch of transport.read({ topic, partition, from: 0, until: ranges[partition]?.end ?? 0 })) {
      for (const record of batch.records) {
        const payload = payloadOf(record);
        if (payload === null || keyKind(record.key) === 'fence') {
          guard.skip(record.offset);
          continue;
        }
        const { epoch, generation, base, sequence } = readDelivery(payload);
        const takeovers = guard.counts.takeovers;
        const verdict = guard.offer(record.offset, epoch, generation, base, sequence);
        if (guard.counts.takeovers > takeovers) {
          const last = accepted.at(-1)?.delivery.epoch ?? epoch;
          assert.ok(
            epoch === last || base > accepted.length,
            'a successor publishes again what its predecessor had stored',
          );
          accepted.length = Math.min(accepted.length, base - 1);
        }
        if (verdict === 'accept') accepted.push(decoder.decode(Uint8Array.from(payload)));
      }
    }
    assert.deepEqual(
      accepted.map(({ delivery }) => delivery.sequence),
      accepted.map((_, index) => index + 1),
      'the effective sequences are contiguous',
    );
    all.push(...accepted.map((message) => ({ partition, message })));
  }
  return all;
}

/** The copy that a sink keeps: the newest version of each row. */
export function copy(found: readonly Effective[]): Record<string, string> {
  const rows = new Map<string, { state: string | null; version: bigint; partition: number }>();
  for (const { partition, message } of found) {
    const { version } = message.delivery;
    if (message.operation === 'truncate' || message.operation === 'sweep') {
      for (const [key, row] of rows) {
        if (row.partition === partition && key.startsWith(`${message.table.table}:`) && row.version < version)
          rows.delete(key);
      }
    } else if ('schema' in message) {
      const image = message.operation === 'delete' ? message.before : message.after;
      const key = `${message.schema.table}:${image?.[0]}`;
      const stored = rows.get(key);
      if (stored !== undefined && stored.version > version) continue;
      rows.set(key, { state: message.operation === 'delete' ? null : String(image?.[1]), version, partition });
    }
  }
  const there = [...rows].filter(([, { state }]) => state !== null).map(([key, { state }]) => [key, state ?? '']);
  return Object.fromEntries(there.sort());
}
