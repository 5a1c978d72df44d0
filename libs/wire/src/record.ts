/** Between messages and records of a log. The types are structural: this package knows no transport. */

/** Header of a tombstone that carries the message. */
export const MESSAGE_HEADER = 'mysync';

export interface RecordHeader {
  readonly name: string;
  readonly value: Uint8Array;
}

export interface MessageRecord {
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
}

const NO_HEADERS: readonly RecordHeader[] = [];

/** A delete becomes a record with a null value and the message in a header, so that compaction can forget the row. */
export function toRecord(key: Uint8Array, payload: Uint8Array, deletes: boolean): MessageRecord {
  if (!deletes) return { key, value: payload, headers: NO_HEADERS };
  return { key, value: null, headers: [{ name: MESSAGE_HEADER, value: payload }] };
}

/** The message of a record; null for a bare tombstone, of which only the key speaks. */
export function payloadOf(record: Pick<MessageRecord, 'value' | 'headers'>): Uint8Array | null {
  if (record.value !== null) return record.value;
  for (const header of record.headers) if (header.name === MESSAGE_HEADER) return header.value;
  return null;
}
