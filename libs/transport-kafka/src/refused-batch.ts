/** Errors of batches that a broker will never take, with the record that is to blame. */
import { type OutgoingRecord, transportErrors } from '@mysync/transport';
import { kafkaErrors } from './errors.ts';
import { codeName } from './protocol/codes.ts';
import type { ProduceAnswer } from './protocol/produce-answer.ts';

export interface BatchPlace {
  readonly topic: string;
  readonly partition: number;
}

export function tooLarge(records: readonly OutgoingRecord[], place: BatchPlace, maxBytes: number): Error {
  let largest = 0;
  let size = 0;
  records.forEach((record, index) => {
    let bytes = record.key.length + (record.value?.length ?? 0);
    for (const header of record.headers) bytes += header.name.length + header.value.length;
    if (bytes > size) [largest, size] = [index, bytes];
  });
  return transportErrors.TRANSPORT_RECORD_TOO_LARGE({
    message: `a batch of ${records.length} record${records.length === 1 ? '' : 's'} is larger than the topic takes (${maxBytes} bytes)`,
    where: { ...place, record: largest, bytes: size, key: keyOf(records, largest) },
  });
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
