/** Rows of the source as the sink's side sees them: decoded from the very messages that the stream would send. */
import { createHash } from 'node:crypto';
import { isMysyncError, type RowKey } from '@mysync/core';
import type { InspectedRow, SinkInspector } from '@mysync/sink';
import type { SourceRow } from '@mysync/source-mysql';
import { decodeKey, MessageDecoder } from '@mysync/wire';

export interface SourceRecord extends InspectedRow {
  readonly key: RowKey;
  /** The record's key bytes. */
  readonly keyBytes: Uint8Array;
  /** Its name in the sink. */
  readonly target: string;
  readonly partitionHash: number;
}

/** A row that the sink can store nowhere: no name can be made for it. */
export interface UnstorableRow {
  /** The record's key bytes. */
  readonly key: Uint8Array;
  readonly error: Error;
}

/** `prepare` is called for each new schema, before a row of it is looked up. */
export class RowDecoder {
  readonly #decoder = new MessageDecoder();
  readonly #inspector: SinkInspector;
  readonly #prepare: (row: InspectedRow) => Promise<void>;
  #prepared = '';

  constructor(inspector: SinkInspector, prepare: (row: InspectedRow) => Promise<void>) {
    this.#inspector = inspector;
    this.#prepare = prepare;
  }

  /** Without rows that can be stored nowhere: those are handed to `onUnstorable`. */
  async decode(rows: readonly SourceRow[], onUnstorable?: (row: UnstorableRow) => void): Promise<SourceRecord[]> {
    const records: SourceRecord[] = [];
    for (const { key, payload, partitionHash } of rows) {
      const message = this.#decoder.decode(payload);
      const named = decodeKey(key);
      if (!('after' in message) || message.after === null || named.kind !== 'row') {
        throw new TypeError('a row of a table is no row');
      }
      const row = { schema: message.schema, key: named.row, row: message.after };
      if (row.schema.fingerprint !== this.#prepared) {
        await this.#prepare(row);
        this.#prepared = row.schema.fingerprint;
      }
      const target = this.#targetOf(row);
      if (typeof target === 'string') records.push({ ...row, keyBytes: key, target, partitionHash });
      else onUnstorable?.({ key, error: target });
    }
    return records;
  }

  #targetOf(row: InspectedRow): string | Error {
    try {
      return this.#inspector.targetOf(row);
    } catch (error) {
      if (isMysyncError(error) && !error.retriable) return error;
      throw error;
    }
  }
}

/** Two rows with the same text are the same row. */
export function rowText({ schema, row }: InspectedRow): string {
  const hash = createHash('sha1').update(schema.fingerprint);
  for (const value of row) {
    if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value);
    else hash.update(`${typeof value}${String(value).length}:${value}`);
  }
  return hash.digest('hex');
}
