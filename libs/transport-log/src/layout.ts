/** What lies where in the store: keys, and the small JSON values beside the batches. */

export const FORMAT_VERSION = 1;

export interface TopicEntry {
  /** 16 hex digits, random. */
  readonly id: string;
  readonly partitions: number;
  readonly compacted: boolean;
  readonly deleteRetentionMs: number;
  readonly minCompactionLagMs: number;
  readonly retentionMs: number;
}

/** What a partition remembers of a producer: enough to store a repeated batch once. */
export interface ProducerState {
  readonly epoch: number;
  /** The batch sequence that comes next. */
  readonly next: number;
  /** Base offsets of the last batches, newest last; the newest has sequence `next` - 1. */
  readonly bases: readonly number[];
}

export interface PartitionState {
  readonly earliest: number;
  /** Offset that the next record will get. */
  readonly end: number;
  /** Every record before this offset is the last of its key up to here. */
  readonly cleanedTo: number;
  /** Bytes of all stored batches, and of those before `cleanedTo` when compaction last ended. */
  readonly bytes: number;
  readonly cleanBytes: number;
  /** When the next tombstone may go, in ms; 0: none is waiting. */
  readonly horizonMs: number;
  readonly producers: Readonly<Record<string, ProducerState>>;
}

export const emptyPartition: PartitionState = {
  earliest: 0,
  end: 0,
  cleanedTo: 0,
  bytes: 0,
  cleanBytes: 0,
  horizonMs: 0,
  producers: {},
};

export interface ProducerEntry {
  readonly id: string;
  readonly epoch: number;
}

export const metaKey = {
  format: 'format',
  size: 'size',
  maintenance: 'maintenance',
  topic: (name: string) => `topic/${name}`,
  partition: (topicId: string, partition: number) => `partition/${topicId}/${partition}`,
  partitionsOf: (topicId: string) => `partition/${topicId}/`,
  producer: (name: string) => `producer/${name}`,
  group: (topicId: string, group: string) => `group/${topicId}/${group}`,
  groupsOf: (topicId: string) => `group/${topicId}/`,
  ownership: (topicId: string, group: string, partition: number) => `owner/${topicId}/${group}/${partition}`,
  ownershipsOf: (topicId: string) => `owner/${topicId}/`,
} as const;

/** Key of a batch: topic id, partition, base offset, so that batches of a partition lie in order. */
export function batchKey(topicId: string, partition: number, baseOffset: number): Buffer {
  const key = Buffer.allocUnsafe(20);
  key.write(topicId, 0, 8, 'hex');
  key.writeUInt32BE(partition, 8);
  key.writeUInt32BE(Math.floor(baseOffset / 2 ** 32), 12);
  key.writeUInt32BE(baseOffset % 2 ** 32, 16);
  return key;
}

export function baseOffsetOf(key: Uint8Array): number {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return bytes.readUInt32BE(12) * 2 ** 32 + bytes.readUInt32BE(16);
}
