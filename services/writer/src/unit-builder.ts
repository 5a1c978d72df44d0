import { type ChangeId, isMysyncError, MysyncError, type TableRef, type TableSchema } from '@mysync/core';
import type { GuardState, SequenceGuard } from '@mysync/flow';
import type { ClearChange } from '@mysync/sink';
import type { IncomingRecord, RecordBatch } from '@mysync/transport';
import { type BaseMessage, keyKind, type MessageDecoder, payloadOf, readNumbers } from '@mysync/wire';
import { CollapsingBatch } from './collapse.ts';
import { latin1, planOf, type RowStateChange, rowChange, type SchemaPlan } from './row-change.ts';

/** Where the loop stands once a unit is applied. */
export interface Progress {
  readonly nextOffset: number;
  readonly guard: GuardState;
  readonly version: bigint;
  readonly change: ChangeId;
}

/** A batch for the sink. */
export interface ApplyUnit {
  readonly changes: readonly (RowStateChange | ClearChange)[];
  /** Of each row's change, its record's key bytes as a latin1 string; none for a clear. */
  readonly keys: readonly string[];
  /** Of changes that were merged out of several: the offset of the first of them, by key. */
  readonly mergedFrom: ReadonlyMap<string, number>;
  /** It is a clear after the table was read (again): rows that it does not show are gone, and no others. */
  readonly isSweep: boolean;
  /** null: the marker stays where it is, since the guard has already seen a record that is not in this unit. */
  readonly progress: Progress | null;
  /** Deletions may be among what is missing before `progress`: the marker says so in the step that passes it. */
  readonly passesLost: boolean;
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
  /** Offsets from this one on are not in the log any more. True when deletions may be among them, and it is passed nevertheless. May throw. */
  readonly onMissing: (offset: number) => boolean;
  readonly version: bigint;
  readonly change: ChangeId;
  /** Of the partition, for errors. */
  readonly where: Readonly<Record<string, string | number>>;
}

interface AcceptedPlan extends SchemaPlan {
  readonly accepted: boolean;
}

const NOTHING_MERGED: ReadonlyMap<string, number> = new Map();

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
  readonly #plans = new WeakMap<TableSchema, AcceptedPlan>();
  #lastSchema: TableSchema | null = null;
  #lastPlan: AcceptedPlan | null = null;
  readonly #numbers = { epoch: 0, generation: 0, base: 0, sequence: 0 };
  #newSchemas: TableSchema[] = [];
  #messages = 0;
  #oldestMicros = 0;
  #newestMicros = 0;
  #passesLost = false;
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
      if (record.offset > this.#nextOffset) this.#onMissing();
      this.#nextOffset = record.offset + 1;
      const message = this.#accept(record);
      if (message === null) continue;
      this.#note(message);
      if (message.operation === 'truncate' || message.operation === 'sweep') {
        if (this.#collapsing.size > 0) yield this.#unit(null);
        const { table, delivery } = message;
        if (this.#options.accepts(table)) {
          const clear = { kind: 'clear', table, version: delivery.version, offset: record.offset } as const;
          const isSweep = message.operation === 'sweep';
          yield this.#unit(record.offset + 1, { changes: [clear], keys: [], mergedFrom: NOTHING_MERGED }, isSweep);
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
    if (batch.nextOffset > this.#nextOffset) this.#onMissing();
    this.#nextOffset = batch.nextOffset;
    yield this.#unit(batch.nextOffset);
  }

  #onMissing(): void {
    if (this.#options.onMissing(this.#nextOffset)) this.#passesLost = true;
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
    // A pair, also when older changes are read again: what a recovery of a lost log goes by.
    this.#version = message.delivery.version;
    this.#change = message.source.change;
  }

  #changeOf(message: BaseMessage, record: IncomingRecord): RowStateChange | null {
    if (!('schema' in message)) return null;
    const { schema } = message;
    const plan = this.#planOf(schema);
    return plan.accepted ? rowChange(message, record, plan) : null;
  }

  #planOf(schema: TableSchema): AcceptedPlan {
    if (schema === this.#lastSchema && this.#lastPlan !== null) return this.#lastPlan;
    let plan = this.#plans.get(schema);
    if (plan === undefined) {
      plan = { ...planOf(schema), accepted: this.#options.accepts(schema) };
      this.#plans.set(schema, plan);
      if (plan.accepted) this.#newSchemas.push(schema);
    }
    this.#lastSchema = schema;
    this.#lastPlan = plan;
    return plan;
  }

  #unit(
    nextOffset: number | null,
    collapsed: Pick<ApplyUnit, 'changes' | 'keys' | 'mergedFrom'> = this.#collapsing.take(),
    isSweep = false,
  ): ApplyUnit {
    const unit: ApplyUnit = {
      ...collapsed,
      isSweep,
      progress:
        nextOffset === null
          ? null
          : { nextOffset, guard: this.#options.guard.state(), version: this.#version, change: this.#change },
      passesLost: this.#passesLost && nextOffset !== null,
      messages: this.#messages,
      oldestMicros: this.#oldestMicros,
      newestMicros: this.#newestMicros,
      newSchemas: this.#newSchemas,
    };
    if (unit.passesLost) this.#passesLost = false;
    this.#newSchemas = [];
    this.#messages = 0;
    this.#oldestMicros = 0;
    this.#newestMicros = 0;
    return unit;
  }
}
