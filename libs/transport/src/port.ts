/**
 * The transport port: an ordered, partitioned, keyed log of bytes. Adapters: `transport-log` (embedded) and
 * `transport-kafka`. One conformance suite (`@mysync/transport/conformance`) holds both to every contract below.
 *
 * It carries bytes only: key, value, headers. What is in them is nobody's business here, so that both ends can one day
 * work without decoding.
 */

import type { Finding, Outage } from '@mysync/core';

export interface Header {
  readonly name: string;
  readonly value: Uint8Array;
}

/** What is published. The bytes are read until the publish call has settled, and must not change before. */
export interface OutgoingRecord {
  readonly key: Uint8Array;
  /** null: a tombstone, which lets compaction forget the key. */
  readonly value: Uint8Array | null;
  readonly headers: readonly Header[];
}

/** What is consumed. The bytes are valid until the next batch is asked for. */
export interface IncomingRecord {
  readonly offset: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
  readonly headers: readonly Header[];
}

export interface TopicSpec {
  readonly name: string;
  readonly partitions: number;
  /** By key; otherwise records are kept for `retentionMs` only. */
  readonly compacted: boolean;
  /** How long a tombstone stays after compaction reached it. At least 7 days unless `allowWeaker`. */
  readonly deleteRetentionMs: number;
  /** Records younger than this are not compacted: longer than any outage of a reader. */
  readonly minCompactionLagMs: number;
  /** For topics without compaction; -1 for ever. */
  readonly retentionMs: number;
  /** Accept an existing topic with weaker settings than these (one replica, unclean election …). */
  readonly allowWeaker: boolean;
}

export interface TopicDescription {
  readonly name: string;
  /** Changes when a topic of this name is deleted and made anew. */
  readonly id: string;
  readonly partitions: number;
}

/** Per partition: the first offset still there, and the offset that the next record will get. */
export interface OffsetRange {
  readonly earliest: number;
  readonly end: number;
}

export interface Transport {
  readonly kind: 'log' | 'kafka';

  /**
   * Makes the topic if it is missing (with the spec's settings), else checks its settings.
   * Throws `TRANSPORT_TOPIC_WEAKER` (each weaker setting, with the command that mends it) unless `allowWeaker`, and
   * `TRANSPORT_PARTITIONS_DIFFER` when the partition count is another one.
   */
  ensureTopic(spec: TopicSpec): Promise<TopicDescription>;

  /** null when there is no such topic. */
  describeTopic(name: string): Promise<TopicDescription | null>;

  /** What `mysync check` says of the servers and the topic; never throws for a finding. */
  check(spec: TopicSpec): Promise<readonly Finding[]>;

  offsetRanges(topic: string): Promise<readonly OffsetRange[]>;

  /** Per partition the next offset to read, or null where the group has committed nothing. */
  committedOffsets(topic: string, group: string): Promise<readonly (number | null)[]>;

  /**
   * Opens the one publisher of `producer` (a stable name such as `mysync-shop`) and fences every earlier one: the producer
   * epoch rises, and as soon as this publisher has stored one record in a partition, no batch of an earlier publisher
   * of the same name can be stored there any more (it gets TRANSPORT_FENCED).
   */
  openPublisher(options: PublisherOptions): Promise<Publisher>;

  /**
   * Reads one partition without a group: from `from` (inclusive) to `until` (exclusive); ends there, or on abort. Throws
   * `TRANSPORT_OFFSET_OUT_OF_RANGE` when `from` lies before the earliest offset or beyond the end.
   */
  read(options: ReadOptions): AsyncIterable<RecordBatch>;

  /** Joins a consumer group. Nothing is consumed before `run`. */
  openConsumer(options: ConsumerOptions): Promise<Consumer>;

  /** Closes what is still open and releases all handles. Idempotent. */
  close(): Promise<void>;
}

export interface PublisherOptions {
  readonly topic: string;
  readonly producer: string;
  /**
   * The producer id that the last checkpoint knew, or null. Where the servers have forgotten the name and would give
   * another id, the adapter also fences the old id (design: fencing).
   */
  readonly previous: ProducerIdentity | null;
  /**
   * The record that the adapter writes where it has to fence an old producer id by itself; without one it takes a
   * tombstone of a key of its own. Consumers see it like any other record.
   */
  readonly fenceRecord?: (partition: number) => OutgoingRecord;
  readonly signal?: AbortSignal;
}

/** Which producer this is, as the servers count. */
export interface ProducerIdentity {
  readonly id: string;
  readonly epoch: number;
}

/**
 * Publishes batches with numbers of its own (producer id, producer epoch, batch sequence per partition), so that a batch
 * sent again is stored once and a predecessor is refused.
 */
export interface Publisher {
  /** The id changes by `renumber` only; the epoch may also rise by itself, which keeps the name alive at the servers. */
  readonly identity: ProducerIdentity;
  /** How many publish calls of one partition may be open at a time. */
  readonly maxOpenBatches: number;
  /** Most bytes (keys + values + headers) one batch may hold; a single record may be larger up to `maxRecordBytes`. */
  readonly maxBatchBytes: number;
  /** A record of up to so many bytes (key + value + headers) is taken, as far as is known; of a larger one `takes` tells. */
  readonly surelyTakenBytes: number;

  /** False: a batch of this record alone would be refused for its size, as far as is known now. It may cost as much as publishing it. */
  takes(record: OutgoingRecord): boolean;

  /**
   * Appends the records as one batch: all or none, contiguous offsets. Resolves when stored durably (Kafka: acks=-1;
   * log: committed), with the first record's offset. Calls of one partition are stored in call order.
   *
   * An answer that never came is met inside, by sending the same bytes under the same numbers, in order, for ever;
   * so it settles late rather than wrongly. Rejects only
   * - with `TRANSPORT_RENUMBER`: numbers refused as unknown, log truncated, order found wrong. Every open and later call, of
   *   all partitions, rejects alike until `renumber` was called;
   * - with `TRANSPORT_FENCED`: a successor is active. Final;
   * - with `TRANSPORT_RECORD_TOO_LARGE`: neither this batch nor a later one of its partition was stored. `where.record` names a record that
   *   is too large even alone; without it, smaller batches are asked for. Then renumber;
   * - with `TRANSPORT_DISK_FULL` (log): not stored, retriable by the caller after a pause and `renumber`;
   * - when closed.
   */
  publish(partition: number, records: readonly OutgoingRecord[]): Promise<{ readonly baseOffset: number }>;

  /**
   * Raises the producer epoch and restarts batch sequences at 0 in all partitions: nothing given to `publish` before can
   * be stored behind what is published afterwards. Resolves with the new identity when the epoch is valid. Open calls
   * settle: with their offset, or with `TRANSPORT_RENUMBER`. Rejects with `TRANSPORT_FENCED` when a successor is active: a
   * predecessor that wakes up must not shut out its successor.
   */
  renumber(): Promise<ProducerIdentity>;

  /** Waits for open batches up to `drainMs`, then closes. Idempotent. */
  close(drainMs?: number): Promise<void>;
}

export interface ReadOptions {
  readonly topic: string;
  readonly partition: number;
  readonly from: number;
  /** Exclusive; omit to follow the log for ever, waking as soon as something is appended. */
  readonly until?: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

export interface RecordBatch {
  readonly partition: number;
  /** In offset order; offsets may have gaps (compaction). Empty when only `nextOffset` moved. */
  readonly records: readonly IncomingRecord[];
  /** Where to read on. */
  readonly nextOffset: number;
  /** Offset that the next appended record would get, as known when this batch was read: for the backlog. */
  readonly endOffset: number;
  /** When that end was looked up, in milliseconds since 1970: earlier than now where batches are fetched ahead. */
  readonly endOffsetAtMs?: number;
}

export interface ConsumerOptions {
  readonly topic: string;
  readonly group: string;
  /** Hint: most bytes a batch should hold (a single larger record still comes, alone). */
  readonly maxBatchBytes: number;
  /** How long a revoked partition may still finish its batch in flight. */
  readonly handoverMs: number;
}

/**
 * A member of a consumer group: gets partitions, gives them up when asked. A partition without a committed offset
 * begins at the earliest record (never at the newest).
 */
export interface Consumer {
  /**
   * Calls `handle` once for each partition as it is assigned, and waits for its promise before the partition is given up
   * (at most `handoverMs` after `revoked` aborted; the membership is kept alive meanwhile, however long an apply takes).
   * Resolves when the signal aborted and all handlers ended; rejects when a handler rejects (after the others were
   * revoked and ended) or the group fails for good.
   */
  run(handle: (partition: AssignedPartition) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** While it runs: since when the group cannot be reached, or joined, which is tried for ever. */
  readonly outage: Outage | null;
  close(): Promise<void>;
}

export interface AssignedPartition {
  readonly topic: TopicDescription;
  readonly partition: number;
  /** Next offset to read as committed by the group, or null. */
  readonly committed: number | null;
  readonly range: OffsetRange;
  /** Aborted when the partition must be given up (rebalance, stop, lost membership). */
  readonly revoked: AbortSignal;
  /** While batches are asked for: since when the partition cannot be read, which is tried for ever. */
  readonly outage: Outage | null;
  /**
   * Batches from `from` on. Ends when revoked or when `signal` aborts, without an error. Asking for the next batch means that the last one was taken over by the caller.
   * Throws `TRANSPORT_OFFSET_OUT_OF_RANGE` when `from` lies before the earliest offset or beyond the end.
   */
  batches(from: number, signal?: AbortSignal): AsyncIterable<RecordBatch>;
  /**
   * Commits the next offset to read. Rejects with `TRANSPORT_NOT_OWNER` when the partition was given to another
   * member meanwhile: the commit had no effect.
   */
  commit(nextOffset: number): Promise<void>;
}
