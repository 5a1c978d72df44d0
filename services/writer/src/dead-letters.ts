import { type Clock, formatTableRef, isMysyncError } from '@mysync/core';
import { Backoff, unlessAborted } from '@mysync/flow';
import type { IncomingRecord, OutgoingRecord, Publisher, TopicSpec, Transport } from '@mysync/transport';
import { payloadOf } from '@mysync/wire';
import { causeOf, type KeyedChange } from './parked-keys.ts';
import { operationOf } from './row-change.ts';

/** Header of a dead letter: JSON, a `DeadLetter`. The record is otherwise the one of the source's topic. */
export const DEAD_LETTER_HEADER = 'mysync-dead-letter';

/** Why and whence a change was put away. */
export interface DeadLetter {
  readonly format: 1;
  readonly sink: string;
  readonly source: string;
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly offset: number;
  /** Where the change was merged out of several, the offset of the first of them; else the same. */
  readonly from: number;
  readonly version: string;
  readonly operation: 'put' | 'delete';
  readonly table: string;
  readonly code: string;
  readonly reason: string;
  readonly atMs: number;
  /** False when the log had forgotten the message already, or it is larger than the topic takes. */
  readonly hasMessage: boolean;
}

export interface DeadLetters {
  /** Resolves when the letter is stored; false when a successor writes letters of this partition now. */
  put(keyed: KeyedChange, error: unknown): Promise<boolean>;
  close(): Promise<void>;
}

export interface DeadLetterTopicOptions {
  readonly transport: Transport;
  /** Of the dead letters; it is made when the first one comes. */
  readonly spec: TopicSpec;
  readonly sink: string;
  readonly source: string;
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * The dead letters of one partition, in the same partition of a topic of their own.
 *
 * 1. A letter is stored durably before `put` resolves; the writer moves its marker after that. Stored twice is possible (killed in between),
 *    lost is not; source partition and offset name a letter.
 * 2. One publisher per sink, source and partition: whoever opens it shuts the one before it out.
 */
export class DeadLetterTopic implements DeadLetters {
  readonly #options: DeadLetterTopicOptions;
  #publisher: Publisher | null = null;

  constructor(options: DeadLetterTopicOptions) {
    this.#options = options;
  }

  async put(keyed: KeyedChange, error: unknown): Promise<boolean> {
    const { change, key, mergedFrom } = keyed;
    const { sink, source, topic, topicId, partition, clock } = this.#options;
    const record = await readRecord(this.#options, change.offset);
    const letter = (hasMessage: boolean): DeadLetter => ({
      format: 1,
      sink,
      source,
      topic,
      topicId,
      partition,
      offset: change.offset,
      from: mergedFrom ?? change.offset,
      version: change.version.toString(),
      operation: operationOf(change),
      table: formatTableRef(change.schema),
      ...causeOf(error),
      atMs: clock.now(),
      hasMessage,
    });
    const bare: OutgoingRecord = {
      key: Buffer.from(key, 'latin1'),
      value: null,
      headers: [letterHeader(letter(false))],
    };
    if (record === null || payloadOf(record) === null) return await this.#publish(bare);
    const whole = { ...record, headers: [...record.headers, letterHeader(letter(true))] };
    try {
      return await this.#publish(whole);
    } catch (failure) {
      if (!isMysyncError(failure, 'TRANSPORT_RECORD_TOO_LARGE')) throw failure;
      return await this.#publish(bare);
    }
  }

  async close(): Promise<void> {
    // nothing that waits is worth the wait: who put it has its answer, or was told to stop
    await this.#publisher?.close(0);
    this.#publisher = null;
  }

  async #publish(record: OutgoingRecord): Promise<boolean> {
    const { transport, spec, sink, source, partition, clock, signal } = this.#options;
    const backoff = new Backoff();
    for (;;) {
      signal.throwIfAborted();
      try {
        if (this.#publisher === null) {
          await unlessAborted(transport.ensureTopic(spec), signal);
          const producer = `mysync-dead-letters-${sink}-${source}-${partition}`;
          this.#publisher = await transport.openPublisher({ topic: spec.name, producer, previous: null, signal });
        }
        await unlessAborted(this.#publisher.publish(partition, [record]), signal);
        return true;
      } catch (error) {
        await this.close();
        if (isMysyncError(error, 'TRANSPORT_FENCED')) return false;
        if (!isMysyncError(error) || !error.retriable) throw error;
        await clock.sleep(backoff.next(), signal);
      }
    }
  }
}

function letterHeader(letter: DeadLetter): { name: string; value: Uint8Array } {
  return { name: DEAD_LETTER_HEADER, value: Buffer.from(JSON.stringify(letter)) };
}

/** One record of the log, copied; null when it is gone. */
export async function readRecord(
  {
    transport,
    topic,
    partition,
    signal,
  }: Pick<DeadLetterTopicOptions, 'transport' | 'topic' | 'partition'> & { readonly signal?: AbortSignal },
  offset: number,
): Promise<IncomingRecord | null> {
  const range = { topic, partition, from: offset, until: offset + 1 };
  try {
    for await (const { records } of transport.read(signal === undefined ? range : { ...range, signal })) {
      for (const record of records) if (record.offset === offset) return copyRecord(record);
    }
  } catch (error) {
    if (!isMysyncError(error, 'TRANSPORT_OFFSET_OUT_OF_RANGE')) throw error;
  }
  // what a stop cut short does not say that the record is gone
  signal?.throwIfAborted();
  return null;
}

export function copyRecord({ offset, key, value, headers }: IncomingRecord): IncomingRecord {
  return {
    offset,
    key: Buffer.from(key),
    value: value === null ? null : Buffer.from(value),
    headers: headers.map((header) => ({ name: header.name, value: Buffer.from(header.value) })),
  };
}
