import { type Clock, type Logger, type Outage, systemClock, type TableRef } from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type { Sink } from '@mysync/sink';
import type { HealthReport, Metrics } from '@mysync/telemetry';
import type { Consumer, TopicSpec, Transport } from '@mysync/transport';
import { DeadLetterTopic } from './dead-letters.ts';
import { PartitionLoop } from './partition-loop.ts';
import type { PartitionStatus } from './partition-status.ts';
import type { PoisonPolicy } from './poison-handler.ts';

export interface WriterOptions {
  readonly source: string;
  readonly topic: string;
  /** The consumer group: one per sink and source. */
  readonly group: string;
  readonly sinkName: string;
  readonly sink: Sink;
  readonly transport: Transport;
  /** Most changes in one apply. */
  readonly maxBatchChanges: number;
  readonly maxBatchBytes: number;
  readonly commitIntervalMs: number;
  /** How long a revoked partition may still finish its apply. */
  readonly handoverMs: number;
  /** How long the topic keeps deletions; null where it is not compacted. */
  readonly deleteRetentionMs: number | null;
  /** What happens to changes of a table that the sink can never take. */
  readonly onPoison: (table: TableRef) => PoisonPolicy;
  /** Most keys of one partition that are set aside; one more halts it. */
  readonly maxParkedKeys: number;
  /** What was applied in this long before is applied again when other servers hold the sink's data. */
  readonly replayMs: number;
  /** The topic of dead letters, made when the first one comes. Its partitions are those of the source's topic. */
  readonly deadLetterTopic: TopicSpec;
  /** Whether the log was made anew after a loss: then no sink is filled from it alone. */
  readonly isLogIncomplete: () => Promise<boolean>;
  readonly clock?: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface WriterStatus {
  readonly sink: string;
  readonly source: string;
  readonly partitions: readonly PartitionStatus[];
  /** Why it has no partitions that it might have; empty when it is a member of its group. */
  readonly detail: string;
}

/** A rebalance, a broker whose partitions move, a sink that begins anew: no outage. */
const GRACE_MS = 30_000;

/** Applies one source's topic to one sink: a partition loop for each partition that the group assigns to this process. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #loops = new Map<number, PartitionLoop>();
  #consumer: Consumer | null = null;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Resolves after an orderly stop: applies in flight finished, offsets committed. */
  async run(signal: AbortSignal): Promise<void> {
    const { sink } = this.#options;
    const consumer = await this.#open(signal);
    if (consumer === null) return;
    // Not before there is something to do: a sink keeps whom it has to call.
    sink.onDoubt(() => {
      for (const loop of this.#loops.values()) loop.doubt();
    });
    this.#consumer = consumer;
    try {
      await consumer.run((assigned) => {
        const { source, sinkName, maxBatchChanges, commitIntervalMs, handoverMs, deleteRetentionMs } = this.#options;
        const {
          clock = systemClock,
          logger,
          metrics,
          transport,
          topic,
          onPoison,
          maxParkedKeys,
          replayMs,
        } = this.#options;
        const deadLetters = new DeadLetterTopic({
          transport,
          spec: { ...this.#options.deadLetterTopic, partitions: assigned.topic.partitions },
          sink: sinkName,
          source,
          topic,
          topicId: assigned.topic.id,
          partition: assigned.partition,
          clock,
          signal: assigned.revoked,
        });
        const loop = new PartitionLoop({
          assigned,
          log: transport,
          source,
          sinkName,
          sink,
          maxChanges: maxBatchChanges,
          commitIntervalMs,
          handoverMs: handoverMs * 0.8,
          deleteRetentionMs,
          onPoison,
          maxParkedKeys,
          replayMs,
          isLogIncomplete: this.#options.isLogIncomplete,
          deadLetters,
          clock,
          logger,
          metrics,
        });
        this.#loops.set(assigned.partition, loop);
        return loop.run().finally(() => {
          if (this.#loops.get(assigned.partition) === loop) this.#loops.delete(assigned.partition);
        });
      }, signal);
    } finally {
      this.#consumer = null;
      await consumer.close();
    }
  }

  /** null when stopped meanwhile: a broker that does not answer is waited for for long, a stop is not. */
  async #open(signal: AbortSignal): Promise<Consumer | null> {
    const { transport, topic, group, maxBatchBytes, handoverMs } = this.#options;
    const opening = transport.openConsumer({ topic, group, maxBatchBytes, handoverMs });
    try {
      return await unlessAborted(opening, signal, (late) => late.close());
    } catch (error) {
      if (signal.aborted && error === signal.reason) return null;
      throw error;
    }
  }

  status(): WriterStatus {
    const partitions = [...this.#loops.values()].map((loop) => loop.status()).sort((a, b) => a.partition - b.partition);
    return { sink: this.#options.sinkName, source: this.#options.source, partitions, detail: this.#cutOff() };
  }

  refresh(): void {
    const { metrics, sinkName, source } = this.#options;
    metrics.writer.assigned.set({ sink: sinkName, source }, this.#loops.size);
    for (const loop of this.#loops.values()) loop.refresh();
  }

  health(): HealthReport {
    const { partitions, detail: cutOff } = this.status();
    const name = `writer ${this.#options.sinkName} of ${this.#options.source}`;
    const troubles = cutOff === '' ? [] : [cutOff];
    for (const { partition, state, stalledSeconds, detail } of partitions) {
      if (state === 'halted') troubles.push(`partition ${partition}: ${detail}`);
      else if (stalledSeconds * 1000 > GRACE_MS)
        troubles.push(`partition ${partition}: for ${Math.floor(stalledSeconds)} s: ${detail}`);
    }
    const ready = this.#consumer !== null && troubles.length === 0;
    return { name, alive: true, ready, detail: troubles.join('; ') };
  }

  #cutOff(): string {
    const outage: Outage | null = this.#consumer?.outage ?? null;
    if (outage === null) return '';
    const { clock = systemClock } = this.#options;
    const forMs = clock.monotonic() - outage.sinceMs;
    return forMs <= GRACE_MS ? '' : `cut off from its group for ${Math.floor(forMs / 1000)} s: ${outage.cause}`;
  }
}
