import { causeText, isMysyncError, systemClock } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { refusal } from './broker-error.ts';
import type { BrokerLink } from './broker-link.ts';
import type { Cluster } from './cluster.ts';
import { kafkaErrors } from './errors.ts';
import { isTransient, RETRY_MAX_MS, RETRY_MIN_MS } from './patience.ts';
import { CODE } from './protocol/codes.ts';
import type { TopicMetadata } from './protocol/metadata.ts';
import type { Reporter } from './reporter.ts';

/** A partition, and the connection to its leader. */
export interface LinkedLane {
  readonly partition: number;
  /** null while the leader is looked for. */
  link: BrokerLink | null;
}

export interface LeadersOptions {
  readonly cluster: Cluster;
  /** As it was when the publisher was opened. */
  readonly topic: TopicMetadata;
  readonly lanes: readonly LinkedLane[];
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  /** Nobody needs leaders any more. */
  isFinal(): boolean;
  /** A partition has its link. */
  onLink(partition: number): void;
  /** What does not pass: the topic is another one. */
  onFailure(error: Error): void;
}

/** Connections to one leader. With acks from all replicas a broker works at one request of a connection at a time. */
const CONNECTIONS = 4;

/**
 * Finds the leaders of the partitions, and finds them again.
 *
 * 1. One search at a time, for ever, with growing pauses, until every partition has a link.
 * 2. The topic must stay the one that it was: another one of the same name, or none for long, is an error that does not pass.
 */
export class Leaders {
  readonly #options: LeadersOptions;
  readonly #backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
  #recovering = false;
  /** Since when every broker asked has said that there is no such topic. */
  #missingSince: number | null = null;

  constructor(options: LeadersOptions) {
    this.#options = options;
  }

  /** A batch was stored: the next search begins at once. */
  well(): void {
    this.#backoff.reset();
  }

  /** Looks for the leaders of the partitions that have no link. */
  recover(): void {
    if (this.#recovering) return;
    this.#recovering = true;
    this.#recoverAll().catch((error: unknown) => {
      if (!this.#options.signal.aborted) this.#options.onFailure(error as Error);
    });
  }

  async topicNow(): Promise<TopicMetadata> {
    const { cluster, topic: before } = this.#options;
    const topic = await cluster.topic(before.name);
    if (topic === null) throw this.#topicMissing();
    this.#missingSince = null;
    if (topic.id !== before.id) {
      throw kafkaErrors.KAFKA_TOPIC_REPLACED({
        message: `the topic '${topic.name}' is not the one that this publisher was opened for`,
        where: { topic: topic.name, id: topic.id, was: before.id },
      });
    }
    return topic;
  }

  /** Connects the partitions that have no link to their leaders, as far as those can be reached. */
  async connect(topic: TopicMetadata): Promise<void> {
    const { cluster, lanes, onLink } = this.#options;
    const failures: unknown[] = [];
    await Promise.all(
      lanes.map(async (lane) => {
        const leader = topic.partitions[lane.partition]?.leader ?? -1;
        if (lane.link !== null || leader < 0) return;
        try {
          lane.link = await cluster.link(leader, `produce-${lane.partition % CONNECTIONS}`);
        } catch (error) {
          failures.push(error);
          return;
        }
        onLink(lane.partition);
      }),
    );
    const final = failures.find((failure) => !isTransient(failure));
    if (final !== undefined) throw final;
  }

  /** A broker that has just started may not know a topic yet; one that nobody has known for half of `stallMs` was deleted. */
  #topicMissing(): Error {
    const now = systemClock.monotonic();
    this.#missingSince ??= now;
    const { cluster, topic } = this.#options;
    const missingMs = now - this.#missingSince;
    if (missingMs < cluster.options.stallMs / 2) {
      return refusal(CODE.UNKNOWN_TOPIC_OR_PARTITION, `the topic '${topic.name}'`);
    }
    return kafkaErrors.KAFKA_TOPIC_REPLACED({
      message: `the topic '${topic.name}' is gone: the brokers have not known it for ${Math.round(missingMs / 1000)} s`,
      where: { topic: topic.name, was: topic.id },
    });
  }

  async #recoverAll(): Promise<void> {
    try {
      await this.#search();
    } finally {
      // In the same turn as the last look at the lanes: one that is lost later must find that nobody recovers.
      this.#recovering = false;
    }
  }

  async #search(): Promise<void> {
    const { lanes, signal, reporter, isFinal } = this.#options;
    while (!signal.aborted && !isFinal() && lanes.some((lane) => lane.link === null)) {
      await systemClock.sleep(this.#backoff.next(), signal);
      try {
        await this.connect(await this.topicNow());
      } catch (error) {
        // Refused logins pass too: right after its start a broker may not have read its users yet.
        if (isMysyncError(error, 'KAFKA_TOPIC_REPLACED')) throw error;
        // Without an answer nobody knows whether the topic is there.
        if (isMysyncError(error, 'TRANSPORT_UNREACHABLE')) this.#missingSince = null;
        reporter.trouble(`looking for the leaders: ${causeText(error)}`);
      }
    }
  }
}
