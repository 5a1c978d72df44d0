import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { checkpointErrors } from '@mysync/checkpoint';
import { isMysyncError } from '@mysync/core';
import type { OutgoingRecord, Publisher, Transport } from '@mysync/transport';

const PARTITION = 0;
/** A piece of a text has so many UTF-16 units at most, three times as many bytes before it is compressed: a record stays below what topics take (Kafka: 1 MiB). */
const PIECE_UNITS = 200_000;
/** A topic that compaction is to keep small, and whose tombstones nobody has to see who was away. */
const SPEC = {
  partitions: 1,
  compacted: true,
  deleteRetentionMs: 7 * 86_400_000,
  minCompactionLagMs: 0,
  retentionMs: -1,
};

export interface TopicLogOptions {
  readonly transport: Transport;
  readonly topic: string;
  readonly source: string;
  readonly allowWeakerTopic: boolean;
  /** A record that is not stored in this time is an error to its caller; default 10,000. */
  readonly answerMs?: number;
  readonly signal?: AbortSignal;
}

/** What the topic holds: key → value. */
type State = Map<string, string>;

/**
 * Keys and texts in a compacted topic of one partition, written by one publisher at a time.
 *
 * 1. Opening fences: the producer epoch rises, the record `owner` is stored, and only then the topic is read up to it. What a predecessor got
 *    in is seen, and nothing of it can follow.
 * 2. `owner` holds the producer's identity, so that a name which the brokers have forgotten is fenced all the same.
 * 3. A put of several keys is one batch where it fits; `put` resolves when all of it is durable. One that is not in time is an error to its
 *    caller, who tries again: what was sent may still be stored, but in the order in which it was sent.
 * 4. While such a one is open nothing is sent: however long the brokers are away, one try of each caller waits in the publisher, and what
 *    goes behind it is the newest.
 */
export class TopicLog {
  readonly #options: TopicLogOptions;
  readonly #publisher: Publisher;
  readonly #state: State;
  /** Sent, and not answered. */
  readonly #open = new Set<Promise<unknown>>();

  private constructor(options: TopicLogOptions, publisher: Publisher, state: State) {
    this.#options = options;
    this.#publisher = publisher;
    this.#state = state;
  }

  static async open(options: TopicLogOptions): Promise<TopicLog> {
    const { transport, topic, source, allowWeakerTopic, signal } = options;
    await transport.ensureTopic({ ...SPEC, name: topic, allowWeaker: allowWeakerTopic });
    const before = await readState(transport, topic, signal);
    const publisher = await transport.openPublisher({
      topic,
      producer: `mysync-checkpoint-${source}`,
      previous: readOwner(before),
      ...(signal === undefined ? {} : { signal }),
    });
    try {
      const log = new TopicLog(options, publisher, before);
      await log.#putOwner();
      const now = await readState(transport, topic, signal);
      before.clear();
      for (const [key, value] of now) before.set(key, value);
      return log;
    } catch (error) {
      await publisher.close(0);
      throw error;
    }
  }

  get where(): string {
    return `topic ${this.#options.topic}`;
  }

  get(key: string): string | undefined {
    return this.#state.get(key);
  }

  keys(): readonly string[] {
    return [...this.#state.keys()];
  }

  /** null removes a key. Throws CHECKPOINT_FENCED when a successor is active. */
  async put(changes: readonly (readonly [key: string, value: string | null])[]): Promise<void> {
    await this.#publish(changes.map(([key, value]) => record(key, value)));
    for (const [key, value] of changes) {
      if (value === null) this.#state.delete(key);
      else this.#state.set(key, value);
    }
  }

  async close(): Promise<void> {
    await this.#publisher.close(0);
  }

  async #putOwner(): Promise<void> {
    await this.#publish([record(OWNER, JSON.stringify(this.#publisher.identity))]);
  }

  async #publish(records: readonly OutgoingRecord[]): Promise<void> {
    for (;;) {
      try {
        for (const batch of batches(records, this.#publisher.maxBatchBytes)) {
          await this.#send(batch);
        }
        return;
      } catch (error) {
        if (isMysyncError(error, 'TRANSPORT_FENCED')) throw this.#fenced(error);
        if (!isMysyncError(error, 'TRANSPORT_RENUMBER')) throw error;
      }
      await this.#renumber();
    }
  }

  async #send(records: readonly OutgoingRecord[]): Promise<void> {
    if (this.#open.size > 0) await this.#inTime(Promise.allSettled(this.#open));
    const answer = this.#publisher.publish(PARTITION, records);
    this.#open.add(answer);
    const settled = (): void => void this.#open.delete(answer);
    answer.then(settled, settled);
    await this.#inTime(answer);
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const ms = this.#options.answerMs ?? 10_000;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const message = `no answer in ${ms} ms to a record for ${this.where}`;
      const where = { path: this.where };
      timer = setTimeout(() => reject(checkpointErrors.CHECKPOINT_UNREACHABLE({ message, where })), ms);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
      answer.catch(() => undefined);
    }
  }

  async #renumber(): Promise<void> {
    try {
      const identity = await this.#inTime(this.#publisher.renumber());
      await this.#send([record(OWNER, JSON.stringify(identity))]);
    } catch (error) {
      if (isMysyncError(error, 'TRANSPORT_FENCED')) throw this.#fenced(error);
      if (!isMysyncError(error, 'TRANSPORT_RENUMBER')) throw error;
    }
  }

  #fenced(cause: unknown): Error {
    return checkpointErrors.CHECKPOINT_FENCED({
      message: 'another reader of this source has taken over the topic of the checkpoint',
      where: { path: this.where },
      cause,
    });
  }
}

const OWNER = 'owner';

/** What is stored, for looking on; empty when there is no such topic. */
export async function readState(transport: Transport, topic: string, signal?: AbortSignal): Promise<State> {
  const state: State = new Map();
  if ((await transport.describeTopic(topic)) === null) return state;
  const range = (await transport.offsetRanges(topic))[PARTITION];
  if (range === undefined || range.earliest >= range.end) return state;
  const from = range.earliest;
  const options = { topic, partition: PARTITION, from, until: range.end, ...(signal === undefined ? {} : { signal }) };
  for await (const batch of transport.read(options)) {
    for (const { key, value } of batch.records) {
      const name = Buffer.from(key).toString('utf8');
      if (value === null) state.delete(name);
      else state.set(name, unpack(value));
    }
  }
  signal?.throwIfAborted();
  return state;
}

/** Cuts a text so that each piece fits into a record. */
export function pieces(text: string): readonly string[] {
  const found: string[] = [];
  let at = 0;
  do {
    let end = at + PIECE_UNITS;
    // never amid a character of two units: each half of it would be encoded as another one
    if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    found.push(text.slice(at, end));
    at = end;
  } while (at < text.length);
  return found;
}

function readOwner(state: State): Publisher['identity'] | null {
  const text = state.get(OWNER);
  if (text === undefined) return null;
  try {
    const { id, epoch } = JSON.parse(text) as Partial<Publisher['identity']>;
    return typeof id === 'string' && Number.isSafeInteger(epoch) ? { id, epoch: epoch as number } : null;
  } catch {
    return null;
  }
}

function record(key: string, value: string | null): OutgoingRecord {
  return { key: Buffer.from(key), value: value === null ? null : deflateRawSync(Buffer.from(value)), headers: [] };
}

/** What is not ours stays readable as what it is not: the texts' own checksums say so. */
function unpack(value: Uint8Array): string {
  try {
    return inflateRawSync(value).toString('utf8');
  } catch {
    return Buffer.from(value).toString('latin1');
  }
}

/** In order, each of at most `maxBytes` but for a single record that is larger. */
function batches(records: readonly OutgoingRecord[], maxBytes: number): OutgoingRecord[][] {
  const all: OutgoingRecord[][] = [];
  let bytes = 0;
  for (const each of records) {
    const size = each.key.length + (each.value?.length ?? 0) + RECORD_OVERHEAD;
    const last = all[all.length - 1];
    if (last === undefined || bytes + size > maxBytes) {
      all.push([each]);
      bytes = size;
    } else {
      last.push(each);
      bytes += size;
    }
  }
  return all;
}

const RECORD_OVERHEAD = 64;
