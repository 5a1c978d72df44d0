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

/**
 * How large a batch may be: as the topic says, where that can be seen, and as its broker shows by a refusal. What a broker refuses of
 * several records may be too large as a whole only: then smaller batches are asked for, until one record is alone.
 */
export class BatchLimit {
  /** max.message.bytes of the topic. */
  topicBytes: number;
  #mostBytes = MAX_BATCH_BYTES;

  constructor(topicBytes: number) {
    this.topicBytes = topicBytes;
  }

  /** Up to which batches are filled. */
  get batchBytes(): number {
    return Math.min(this.#mostBytes, Math.floor(this.topicBytes / 2));
  }

  /** A batch of so many bytes was refused: which record is to blame, or null where several are to go in smaller batches. */
  refused(records: readonly OutgoingRecord[], bytes: number, place: BatchPlace): Error | null {
    if (records.length === 1) return this.tooLarge(records, place);
    this.#mostBytes = Math.min(this.#mostBytes, Math.floor(bytes / 2));
    return null;
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
      message: `a batch of ${records.length} record${records.length === 1 ? '' : 's'} is larger than the topic takes (${this.topicBytes} bytes)`,
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
