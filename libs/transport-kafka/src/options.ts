/** What the Kafka adapter can be told, with its defaults. */
import type { SecureContextOptions } from 'node:tls';
import { Admission } from './admission.ts';
import { kafkaErrors } from './errors.ts';

export interface KafkaSasl {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  readonly username: string;
  readonly password: string;
}

/** Passed to node:tls. `true` means: the system's authorities, host name checked. */
export type KafkaTls = boolean | (SecureContextOptions & { rejectUnauthorized?: boolean; servername?: string });

export interface KafkaLogEntry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number>>;
}

/** Told about what an operator should see; every method may be left out. Must not throw. */
export interface KafkaObserver {
  log?(entry: KafkaLogEntry): void;
  /** Records of another writer lie between our own batches: `count` of them, before `offset`. */
  foreignRecords?(event: { topic: string; partition: number; count: number; offset: number }): void;
  /** Batches sent again under the same numbers, after an answer that never came or a transient refusal. */
  batchesResent?(event: { topic: string; partition: number; count: number }): void;
  /** The watchdog made the connections anew, since nothing moved for `stallMs`. */
  clientReplaced?(event: { client: 'publisher' | 'consumer' | 'reader' }): void;
  /** The group was joined again. */
  rebalanced?(event: { group: string; generation: number; partitions: number }): void;
}

export interface KafkaOptions {
  /** `host:port` of at least one broker. */
  readonly brokers: readonly string[];
  readonly clientId?: string;
  readonly tls?: KafkaTls;
  readonly sasl?: KafkaSasl;
  /** Of the batches published. Reading takes both, whatever is set. Default none (docs/adr/0043). */
  readonly compression?: 'none' | 'gzip';
  /** Replicas of a topic that we make, and the least an existing one may have. Default 3. */
  readonly replicationFactor?: number;
  /** `min.insync.replicas` of the topic. Default 2. */
  readonly minInsyncReplicas?: number;
  /** A request without an answer for so long counts as lost. Default 10,000. */
  readonly requestTimeoutMs?: number;
  /** Default 5,000. */
  readonly connectionTimeoutMs?: number;
  /** A group member not heard of for so long loses its partitions. Default 6,000, the least that brokers take by default. */
  readonly sessionTimeoutMs?: number;
  /** Largest record; becomes `max.message.bytes` of the topic (with 1 KiB for the batch around it). Default 8 MiB. */
  readonly maxRecordBytes?: number;
  /** The watchdog replaces connections when nothing moved for so long although it should. Default 60,000. */
  readonly stallMs?: number;
  /** How long a follower's fetch waits at the broker for something new; no latency, only idle traffic. Default 500. */
  readonly fetchWaitMs?: number;
  /**
   * A publisher shows its coordinator so often that it is there: well within what brokers remember (`transactional.id.expiration.ms`,
   * 7 days by default). After a sixth of it without a stored batch it asks before it sends. Default six hours.
   */
  readonly producerRenewalMs?: number;
  readonly observer?: KafkaObserver;
}

export type ResolvedKafkaOptions = Required<Omit<KafkaOptions, 'tls' | 'sasl'>> & {
  readonly tls: KafkaTls | null;
  readonly sasl: KafkaSasl | null;
  readonly admission: Admission;
};

/** Bytes of a record batch and its request around a single record: far less than this. */
export const BATCH_OVERHEAD_BYTES = 1024;

export function resolveOptions(options: KafkaOptions): ResolvedKafkaOptions {
  const resolved: ResolvedKafkaOptions = {
    brokers: options.brokers,
    clientId: options.clientId ?? 'mysync',
    tls: options.tls === undefined || options.tls === false ? null : options.tls,
    sasl: options.sasl ?? null,
    compression: options.compression ?? 'none',
    replicationFactor: options.replicationFactor ?? 3,
    minInsyncReplicas: options.minInsyncReplicas ?? 2,
    requestTimeoutMs: options.requestTimeoutMs ?? 10_000,
    connectionTimeoutMs: options.connectionTimeoutMs ?? 5_000,
    sessionTimeoutMs: options.sessionTimeoutMs ?? 6_000,
    maxRecordBytes: options.maxRecordBytes ?? 8 * 2 ** 20,
    stallMs: options.stallMs ?? 60_000,
    fetchWaitMs: options.fetchWaitMs ?? 500,
    producerRenewalMs: options.producerRenewalMs ?? 6 * 3_600_000,
    observer: options.observer ?? {},
    admission: new Admission(),
  };
  if (resolved.brokers.length === 0) {
    throw kafkaErrors.KAFKA_OPTION_INVALID({ message: 'no broker is named', where: { option: 'brokers' } });
  }
  for (const broker of resolved.brokers) parseAddress(broker);
  return resolved;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, with an IPv6 host in brackets. */
export function parseAddress(text: string): Address {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text.trim());
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port < 1 || port > 65_535) {
    throw kafkaErrors.KAFKA_OPTION_INVALID({
      message: `'${text}' is not a broker's address`,
      where: { option: 'brokers' },
      remedy: 'Write HOST:PORT, for example kafka-1.example.org:9092.',
    });
  }
  return { host, port };
}
