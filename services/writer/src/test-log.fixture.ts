import type { ChangeId, Column } from '@mysync/core';
import type { IncomingRecord, RecordBatch, Transport } from '@mysync/transport';
import {
  compileTable,
  encodeControl,
  encodeTableMessage,
  encodeTransaction,
  makeTableSchema,
  RowEncoder,
  type RowOperation,
  type RowValues,
  smallerRow,
  stampDelivery,
  toRecord,
} from '@mysync/wire';

const column = (name: string, kind: Column['kind'], keyPosition = 0): Column => ({
  name,
  type: kind === 'bytes' ? 'blob' : kind === 'int' ? 'int' : 'varchar(20)',
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: '',
  members: [],
});

export const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  columns: [column('id', 'int', 1), column('state', 'text'), column('raw', 'bytes')],
  keyRule: 'primary',
});
export const other = makeTableSchema({ ...schema, table: 'secret' });
export const NO_CHANGE: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };

/** A log of one partition: gives each message the next sequence and offset. */
export class TestLog {
  readonly records: IncomingRecord[] = [];
  /** Source commit time of the next messages; null: a thousand microseconds later for each. */
  commitTimeMicros: number | null = null;
  readonly #encoder = new RowEncoder();
  #sequence = 0;
  #transaction = 0;
  #offset = 0;

  get end(): number {
    return this.#offset;
  }

  row(operation: RowOperation, before: RowValues | null, after: RowValues | null, table = schema): this {
    const change = { operation, eventFile: '', eventOffset: 0, ordinal: 1, before, after };
    const { key, payload, deletes } = this.#encoder.encode(compileTable({ schema: table }), this.#block(), change);
    return this.#append(key, payload, deletes);
  }

  /** Inserts a row. */
  put(id: number, state: string, table = schema): this {
    return this.row('insert', null, [id, state, null], table);
  }

  /** A row that is too large for the log. */
  withhold(id: number, table = schema): this {
    const change = {
      operation: 'insert',
      eventFile: '',
      eventOffset: 0,
      ordinal: 1,
      before: null,
      after: [id, 'too large', null],
    } as const;
    const whole = this.#encoder.encode(compileTable({ schema: table }), this.#block(), change);
    const { key, payload, deletes } = smallerRow(whole) ?? whole;
    return this.#append(key, payload, deletes);
  }

  remove(id: number, table = schema): this {
    return this.row('delete', [id, '', null], null, table);
  }

  /** Reads as a transport does. */
  get reader(): Pick<Transport, 'read' | 'offsetRanges'> {
    return {
      offsetRanges: () => Promise.resolve([{ earliest: 0, end: this.end }]),
      read: ({ from, until = this.end }) => this.#read(from, until),
    };
  }

  async *#read(from: number, until: number): AsyncGenerator<RecordBatch> {
    await Promise.resolve();
    const records = this.records.filter(({ offset }) => offset >= from && offset < until);
    yield { partition: 0, records, nextOffset: until, endOffset: this.end };
  }

  truncate(table = schema): this {
    const options = {
      operation: 'truncate',
      transaction: this.#block(),
      ordinal: 1,
      statement: 'TRUNCATE x',
      table,
    } as const;
    const { key, payload } = encodeTableMessage(options);
    return this.#append(key, payload, false);
  }

  /** Of a snapshot that began with the transaction counter. */
  sweep(counter: number, table = schema): this {
    const options = { operation: 'sweep', transaction: this.#block(), ordinal: 1, statement: '', table } as const;
    const { key, payload } = encodeTableMessage(options);
    return this.#append(key, payload, false, ++this.#sequence, counter);
  }

  control(operation: 'heartbeat' | 'fence'): this {
    const { key, payload } = encodeControl({ operation, transaction: this.#block(), ordinal: 0 });
    return operation === 'fence' ? this.#append(key, payload, false, 0) : this.#append(key, payload, false);
  }

  /** A record that no reader wrote. */
  foreign(value: Uint8Array): this {
    this.records.push({ offset: this.#offset++, key: Buffer.from([1, 0, 0]), value, headers: [] });
    return this;
  }

  /** The newest record once more, at the next offset. */
  again(): this {
    const last = this.records[this.records.length - 1];
    if (last !== undefined) this.records.push({ ...last, offset: this.#offset++ });
    return this;
  }

  /** The record at an offset once more, at the next one. */
  againFrom(offset: number): this {
    const record = this.records.find((each) => each.offset === offset);
    if (record !== undefined) this.records.push({ ...record, offset: this.#offset++ });
    return this;
  }

  /** A sequence that was never stored. */
  lose(): this {
    this.#sequence += 1;
    return this;
  }

  /** A record that compaction removed: its sequence and its offset are gone. */
  compacted(): this {
    this.#offset += 1;
    return this.lose();
  }

  batch(): RecordBatch {
    return { partition: 0, records: this.records, nextOffset: this.#offset, endOffset: this.#offset };
  }

  #block() {
    this.#transaction += 1;
    const id = { file: 'bin.000001', offset: this.#transaction * 100, gtid: '', ordinal: 0 };
    const commitTimeMicros = this.commitTimeMicros ?? this.#transaction * 1_000;
    return encodeTransaction({ source: 's', serverUuid: 'u', id, commitTimeMicros });
  }

  #append(
    key: Uint8Array,
    payload: Uint8Array,
    deletes: boolean,
    sequence = ++this.#sequence,
    counter = this.#transaction,
  ): this {
    stampDelivery(payload, {
      epoch: 1,
      generation: 0,
      base: 1,
      sequence,
      transactionCounter: counter,
      ordinal: 1,
    });
    this.records.push({ offset: this.#offset++, ...toRecord(key, payload, deletes) });
    return this;
  }
}
