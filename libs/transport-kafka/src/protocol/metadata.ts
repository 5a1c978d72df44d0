/** Metadata v10: the oldest version that carries topic ids (KIP-516, Kafka 2.8). kafkajs ends at v6. */
import { API } from './codes.ts';
import { type Api, beginFrame, endFrame } from './frame.ts';
import { WireReader } from './wire.ts';

export const METADATA: Api = { key: API.metadata, name: 'Metadata', version: 10, flexible: true };

export interface NodeAddress {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
}

export interface PartitionMetadata {
  readonly error: number;
  readonly partition: number;
  /** -1 while there is none. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly insync: readonly number[];
}

export interface TopicMetadata {
  readonly error: number;
  readonly name: string;
  /** 32 hex digits; another one after the topic was deleted and made anew. */
  readonly id: string;
  /** In order of the partition number. */
  readonly partitions: readonly PartitionMetadata[];
}

export interface ClusterMetadata {
  readonly clusterId: string;
  readonly controller: number;
  readonly nodes: readonly NodeAddress[];
  readonly topics: readonly TopicMetadata[];
}

/** Asks for the nodes, and for the topics named. Makes no topic. */
export function metadataRequest(clientId: string, topics: readonly string[]): Buffer {
  const writer = beginFrame(METADATA, clientId).unsignedVarint(topics.length + 1);
  for (const topic of topics) writer.int64(0).int64(0).compactString(topic).noTags();
  return endFrame(writer.bool(false).bool(false).bool(false).noTags());
}

export function metadataAnswer(payload: Buffer): ClusterMetadata {
  const reader = new WireReader(payload);
  reader.skipTags();
  reader.int32(); // throttle time
  const nodes = reader.compactArray(() => {
    const nodeId = reader.int32();
    const host = reader.compactString() ?? '';
    const port = reader.int32();
    reader.compactString(); // rack
    reader.skipTags();
    return { nodeId, host, port };
  });
  const clusterId = reader.compactString() ?? '';
  const controller = reader.int32();
  const topics = reader.compactArray(() => {
    const error = reader.int16();
    const name = reader.compactString() ?? '';
    const id = reader.uuid();
    reader.int8(); // internal
    const partitions = reader.compactArray(() => partitionOf(reader));
    reader.int32(); // authorized operations
    reader.skipTags();
    partitions.sort((a, b) => a.partition - b.partition);
    return { error, name, id, partitions };
  });
  return { clusterId, controller, nodes, topics };
}

function partitionOf(reader: WireReader): PartitionMetadata {
  const error = reader.int16();
  const partition = reader.int32();
  const leader = reader.int32();
  reader.int32(); // leader epoch
  const replicas = reader.compactArray(() => reader.int32());
  const insync = reader.compactArray(() => reader.int32());
  reader.compactArray(() => reader.int32()); // offline replicas
  reader.skipTags();
  return { error, partition, leader, replicas, insync };
}
