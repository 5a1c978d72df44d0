/** Errors of batches that a broker will never take, with the record that is to blame. */
import { type OutgoingRecord, transportErrors } from '@mysync/transport';
import { kafkaErrors } from './errors.ts';
import { codeName } from './protocol/codes.ts';
import type { ProduceAnswer } from './protocol/produce-answer.ts';

export interface BatchPlace {
  readonly topic: string;
  readonly partition: number;
}

const MAX_BATCH_BYTES = 2 ** 20;
/** A limit that records are measured by is asked for again after this: it may have been raised. */
const FORGET_MS = 60_000;

/**
 * How large a batch may be: as the topic says, where that can be seen, and as its broker shows by a refusal. What a broker refuses of
 * several records may be too large as a whole only: then smaller batches are asked for, until one record is alone.
 */
export class BatchLimit {
  #topicBytes: number;
  #mostBytes = MAX_BATCH_BYTES;
  /** The smallest batch of one record that the broker refused, less one. */
  #shownBytes = Number.POSITIVE_INFINITY;
  #shownAtMs = 0;
  #askedAtMs = Number.NEGATIVE_INFINITY;

  constructor(topicBytes: number) {
    this.#topicBytes = topicBytes;
  }

  /** max.message.bytes of the topic. */
  get topicBytes(): number {
    return this.#topicBytes;
  }

  /** As read anew: what a broker showed under another one counts no more. */
  set topicBytes(bytes: number) {
    if (bytes !== this.#topicBytes) this.#shownBytes = Number.POSITIVE_INFINITY;
    this.#topicBytes = bytes;
  }

  /** How large a batch may be, as far as is known. `nowMs` is monotonic. */
  recordBytes(nowMs: number): number {
    if (nowMs - this.#shownAtMs > FORGET_MS) this.#shownBytes = Number.POSITIVE_INFINITY;
    return Math.min(this.#topicBytes, this.#shownBytes);
  }

  /** Up to which batches are filled. */
  get batchBytes(): number {
    return Math.min(this.#mostBytes, Math.floor(this.#topicBytes / 2));
  }

  /** True once in a while: the topic's limit is to be read again, as records are measured by it and nothing else would notice another. */
  isToBeAsked(nowMs: number): boolean {
    if (nowMs - this.#askedAtMs <= FORGET_MS) return false;
    this.#askedAtMs = nowMs;
    return true;
  }

  /** The broker refused a batch of so many bytes: the error names the record that is to blame, or none where several are to go in smaller batches. */
  refused(records: readonly OutgoingRecord[], bytes: number, place: BatchPlace, nowMs: number): Error {
    if (records.length === 1) {
      this.#shownBytes = Math.min(this.#shownBytes, bytes - 1);
      this.#shownAtMs = nowMs;
      return this.tooLarge(records, place);
    }
    this.#mostBytes = Math.min(this.#mostBytes, Math.floor(bytes / 2));
    return transportErrors.TRANSPORT_RECORD_TOO_LARGE({
      message: `a batch of ${records.length} records is larger than the broker takes (${bytes} bytes)`,
      where: { ...place, bytes },
    });
  }

  tooLarge(records: readonly OutgoingRecord[], place: BatchPlace): Error {
    let largest = 0;
    let size = 0;
    records.forEach((record, index) => {
      let bytes = record.key.length + (record.value?.length ?? 0);
      for (const header of record.headers) bytes += header.name.length + header.value.length;
      if (bytes > size) [largest, size] = [index, bytes];
    });
    return transportErrors.TRANSPORT_RECORD_TOO_LARGE({
      message: `a batch of ${records.length} record${records.length === 1 ? '' : 's'} is larger than the topic takes (${Math.min(this.#topicBytes, this.#shownBytes)} bytes)`,
      where: { ...place, record: largest, bytes: size, key: keyOf(records, largest) },
    });
  }
}

export function badRecord(records: readonly OutgoingRecord[], place: BatchPlace, answer: ProduceAnswer): Error {
  const record = answer.refusedRecord ?? 0;
  return kafkaErrors.KAFKA_RECORD_REFUSED({
    message: `the broker answers ${codeName(answer.error)}${answer.message === '' ? '' : `: ${answer.message}`}`,
    where: { ...place, record, key: keyOf(records, record) },
  });
}

function keyOf(records: readonly OutgoingRecord[], index: number): string {
  return Buffer.from(records[index]?.key ?? []).toString('hex');
}
