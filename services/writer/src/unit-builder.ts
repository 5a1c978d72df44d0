import {
  type ChangeId,
  type ColumnValue,
  coreErrors,
  isMysyncError,
  MysyncError,
  type RowKey,
  type TableRef,
  type TableSchema,
} from '@mysync/core';
import type { GuardState, SequenceGuard } from '@mysync/flow';
import type { DeleteChange, PutChange, SinkChange } from '@mysync/sink';
import type { IncomingRecord, RecordBatch } from '@mysync/transport';
import { type BaseMessage, decodeKey, keyKind, type MessageDecoder, payloadOf, readNumbers } from '@mysync/wire';
import { CollapsingBatch } from './collapse.ts';

/** Where the loop stands once a unit is applied. */
export interface Progress {
  readonly nextOffset: number;
  readonly guard: GuardState;
  readonly version: bigint;
  readonly change: ChangeId;
}

/** A batch for the sink. */
export interface ApplyUnit {
  readonly changes: readonly SinkChange[];
  /** null: the marker stays where it is, since the guard has already seen a record that is not in this unit. */
  readonly progress: Progress | null;
  /** Messages accepted by the guard, before collapsing. */
  readonly messages: number;
  /** Source commit times of the oldest and the newest change in it, in microseconds; 0 when it holds none (heartbeats do not count). */
  readonly oldestMicros: number;
  readonly newestMicros: number;
  /** Schemas met for the first time: the sink prepares for them before the apply. */
  readonly newSchemas: readonly TableSchema[];
}

export interface UnitBuilderOptions {
  readonly guard: SequenceGuard;
  readonly decoder: MessageDecoder;
  readonly maxChanges: number;
  readonly accepts: (table: TableRef) => boolean;
  /** The first offset that will be asked for. */
  readonly nextOffset: number;
  /** Offsets from this one on are not in the log any more. May throw. */
  readonly onMissing: (offset: number) => void;
  readonly version: bigint;
  readonly change: ChangeId;
  /** Of the partition, for errors. */
  readonly where: Readonly<Record<string, string | number>>;
}

/**
 * Turns batches of the log into units for the sink: guard, decode, collapse. No I/O.
 *
 * 1. Units follow log order; a unit's progress covers every record before its `nextOffset`, accepted or not.
 * 2. A clear (truncate, drop, sweep) is a unit of its own, applied after all that came before it.
 * 3. Units are built lazily, so that the next is built while the last is applied.
 */
export class UnitBuilder {
  readonly #options: UnitBuilderOptions;
  readonly #collapsing = new CollapsingBatch();
  /** As long as the decoder keeps the schema. */
  readonly #plans = new WeakMap<TableSchema, SchemaPlan>();
  #lastSchema: TableSchema | null = null;
  #lastPlan: SchemaPlan | null = null;
  readonly #numbers = { epoch: 0, generation: 0, base: 0, sequence: 0 };
  #newSchemas: TableSchema[] = [];
  #messages = 0;
  #oldestMicros = 0;
  #newestMicros = 0;
  #nextOffset: number;
  #version: bigint;
  #change: ChangeId;

  constructor(options: UnitBuilderOptions) {
    this.#options = options;
    this.#nextOffset = options.nextOffset;
    this.#version = options.version;
    this.#change = options.change;
  }

  *units(batch: RecordBatch): Generator<ApplyUnit> {
    for (const record of batch.records) {
      if (record.offset > this.#nextOffset) this.#options.onMissing(this.#nextOffset);
      this.#nextOffset = record.offset + 1;
      const message = this.#accept(record);
      if (message === null) continue;
      this.#note(message);
      if (message.operation === 'truncate' || message.operation === 'sweep') {
        if (this.#collapsing.size > 0) yield this.#unit(null);
        const { table, delivery } = message;
        if (this.#options.accepts(table)) {
          const clear = { kind: 'clear', table, version: delivery.version, offset: record.offset } as const;
          yield this.#unit(record.offset + 1, [clear]);
        }
        continue;
      }
      const change = this.#changeOf(message, record);
      if (change === null) continue;
      const key = latin1(record.key);
      if (!this.#collapsing.add(key, change)) {
        yield this.#unit(null);
        this.#collapsing.add(key, change);
      }
      if (this.#collapsing.size >= this.#options.maxChanges) yield this.#unit(record.offset + 1);
    }
    if (batch.nextOffset > this.#nextOffset) this.#options.onMissing(this.#nextOffset);
    this.#nextOffset = batch.nextOffset;
    yield this.#unit(batch.nextOffset);
  }

  /** The decoded message, or null when the guard drops the record. */
  #accept(record: IncomingRecord): BaseMessage | null {
    try {
      return this.#judge(record);
    } catch (error) {
      throw this.#placed(error, record.offset);
    }
  }

  #judge(record: IncomingRecord): BaseMessage | null {
    const { guard, decoder } = this.#options;
    if (keyKind(record.key) === 'fence') {
      guard.skip(record.offset);
      return null;
    }
    const payload = payloadOf(record);
    if (payload === null) {
      guard.skip(record.offset);
      return null;
    }
    const numbers = this.#numbers;
    readNumbers(payload, numbers);
    const verdict = guard.offer(record.offset, numbers.epoch, numbers.generation, numbers.base, numbers.sequence);
    return verdict === 'accept' ? decoder.decode(payload) : null;
  }

  /** The same error, with the record's place in the log. */
  #placed(error: unknown, offset: number): unknown {
    if (!isMysyncError(error)) return error;
    const where = { ...this.#options.where, offset, ...error.where };
    return new MysyncError(error.code, error, { message: error.message, where, cause: error.cause });
  }

  #note(message: BaseMessage): void {
    this.#messages += 1;
    if (message.operation !== 'heartbeat') {
      this.#newestMicros = message.source.commitTimeMicros;
      if (this.#oldestMicros === 0) this.#oldestMicros = this.#newestMicros;
    }
    if (message.delivery.version > this.#version) this.#version = message.delivery.version;
    this.#change = message.source.change;
  }

  #changeOf(message: BaseMessage, record: IncomingRecord): PutChange | DeleteChange | null {
    if (!('schema' in message)) return null;
    const { schema } = message;
    const plan = this.#planOf(schema);
    if (!plan.accepted) return null;
    const deletes = message.operation === 'delete';
    const image = deletes ? message.before : message.after;
    if (image === null) return null;
    if (plan.byteIndexes.length > 0) copyBytes(image as ColumnValue[], plan.byteIndexes);
    const row = image;
    const { version } = message.delivery;
    const key = schema.keyRule === 'row-hash' ? rowKeyOf(record) : keyFromRow(schema, plan, row);
    return { kind: deletes ? 'delete' : 'put', schema, key, row, version, offset: record.offset };
  }

  #planOf(schema: TableSchema): SchemaPlan {
    if (schema === this.#lastSchema && this.#lastPlan !== null) return this.#lastPlan;
    let plan = this.#plans.get(schema);
    if (plan === undefined) {
      plan = planOf(schema, this.#options.accepts(schema));
      this.#plans.set(schema, plan);
      if (plan.accepted) this.#newSchemas.push(schema);
    }
    this.#lastSchema = schema;
    this.#lastPlan = plan;
    return plan;
  }

  #unit(nextOffset: number | null, changes: readonly SinkChange[] = this.#collapsing.take()): ApplyUnit {
    const unit: ApplyUnit = {
      changes,
      progress:
        nextOffset === null
          ? null
          : { nextOffset, guard: this.#options.guard.state(), version: this.#version, change: this.#change },
      messages: this.#messages,
      oldestMicros: this.#oldestMicros,
      newestMicros: this.#newestMicros,
      newSchemas: this.#newSchemas,
    };
    this.#newSchemas = [];
    this.#messages = 0;
    this.#oldestMicros = 0;
    this.#newestMicros = 0;
    return unit;
  }
}

interface SchemaPlan {
  readonly accepted: boolean;
  readonly keyNames: readonly string[];
  readonly keyIndexes: readonly number[];
  readonly byteIndexes: readonly number[];
}

function planOf(schema: TableSchema, accepted: boolean): SchemaPlan {
  const keys = schema.columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => column.keyPosition > 0)
    .sort((a, b) => a.column.keyPosition - b.column.keyPosition);
  const byteIndexes = schema.columns.flatMap((column, index) => (column.kind === 'bytes' ? [index] : []));
  return {
    accepted,
    keyNames: keys.map((key) => key.column.name),
    keyIndexes: keys.map((key) => key.index),
    byteIndexes,
  };
}

/**
 * Bytes are views into the batch, which is gone once the next one is asked for, while its changes are still applied. In place: the decoder
 * made the image for this one message.
 */
function copyBytes(image: ColumnValue[], byteIndexes: readonly number[]): void {
  for (const index of byteIndexes) {
    const value = image[index];
    if (value instanceof Uint8Array) image[index] = Buffer.from(value);
  }
}

/** The same as decoding the record's key, but cheaper: an image always holds the key's columns. */
function keyFromRow(schema: TableSchema, plan: SchemaPlan, row: readonly ColumnValue[]): RowKey {
  const values: ColumnValue[] = [];
  for (const index of plan.keyIndexes) values.push(row[index]);
  return { database: schema.database, table: schema.table, columns: plan.keyNames, values };
}

function rowKeyOf(record: IncomingRecord): RowKey {
  const key = decodeKey(record.key);
  if (key.kind !== 'row') {
    throw coreErrors.INTERNAL({
      message: `a row's message has a key of kind ${key.kind}`,
      where: { offset: record.offset },
    });
  }
  return key.row;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
