/** Messages that are not about one row, and their keys: truncate, ddl, sweep; heartbeat and fence. */
import { coreErrors, formatTableRef, type TableRef } from '@mysync/core';
import { ByteWriter } from './byte-writer.ts';
import { type DeliveryStamp, stampDelivery } from './delivery.ts';
import { type ControlKind, KEY_KINDS, KEY_VERSION } from './key-format.ts';
import { tableRefBlock } from './table-schema.ts';
import { type TransactionBlock, writeSource } from './transaction-block.ts';
import { EMPTY_DELIVERY, enumNumber, MESSAGE, OPERATIONS } from './wire-format.ts';

/** A record that goes into a partition as it is, whatever its key hashes to. */
export class EncodedControl {
  readonly key: Uint8Array;
  readonly payload: Uint8Array;
  readonly deletes = false;

  constructor(key: Uint8Array, payload: Uint8Array) {
    this.key = key;
    this.payload = payload;
  }

  /** Of message and key. */
  get bytes(): number {
    return this.payload.length + this.key.length;
  }

  stamp(stamp: DeliveryStamp): void {
    stampDelivery(this.payload, stamp);
  }

  /** As a row's: its bytes are its own. */
  giveBack(): void {}
}

export interface TableMessageOptions {
  readonly operation: 'truncate' | 'ddl' | 'sweep';
  readonly transaction: TransactionBlock;
  readonly ordinal: number;
  readonly table: TableRef;
  /** '' for a sweep. */
  readonly statement: string;
  readonly eventFile?: string;
  readonly eventOffset?: number;
}

export interface ControlMessageOptions {
  readonly operation: 'heartbeat' | 'fence';
  /** Of the last change put into the partition. */
  readonly transaction: TransactionBlock;
  readonly ordinal: number;
}

/**
 * The message of a change of a whole table. It goes to every partition and is stamped for each, so each needs a copy of the
 * payload of its own; the key may be shared.
 */
export function encodeTableMessage(options: TableMessageOptions): EncodedControl {
  const { operation, table, statement } = options;
  const payload = message(operation, options, options.eventFile ?? '', options.eventOffset ?? 0, (writer) => {
    writer.raw(tableRefBlock(table));
    if (statement === '') return;
    writer.byte(MESSAGE.statement);
    if (!writer.lengthAndText(statement)) {
      throw coreErrors.INTERNAL({
        message: 'the statement is not well-formed Unicode',
        where: { table: formatTableRef(table) },
      });
    }
  });
  return new EncodedControl(controlKey(operation, table), payload);
}

/** A heartbeat or a fence, for one partition. */
export function encodeControl(options: ControlMessageOptions): EncodedControl {
  const payload = message(options.operation, options, '', 0, () => {});
  return new EncodedControl(controlKey(options.operation), payload);
}

/** The key of all records of this kind (and table, for the kinds that have one). */
export function controlKey(kind: ControlKind, table?: TableRef): Uint8Array {
  const hasTable = kind !== 'heartbeat' && kind !== 'fence';
  if (hasTable !== (table !== undefined)) {
    throw coreErrors.INTERNAL({ message: `the key of a ${kind} ${hasTable ? 'needs a' : 'has no'} table` });
  }
  const writer = new ByteWriter(512);
  writer.byte(KEY_VERSION);
  writer.byte(KEY_KINDS.indexOf(kind));
  if (table !== undefined && !(writer.lengthAndText(table.database) && writer.lengthAndText(table.table))) {
    throw coreErrors.INTERNAL({ message: `the name of ${formatTableRef(table)} is not well-formed Unicode` });
  }
  return writer.take();
}

function message(
  operation: ControlKind,
  source: { readonly transaction: TransactionBlock; readonly ordinal: number },
  eventFile: string,
  eventOffset: number,
  writeRest: (writer: ByteWriter) => void,
): Uint8Array {
  const writer = new ByteWriter(512);
  writer.raw(EMPTY_DELIVERY);
  writer.byte(MESSAGE.operation);
  writer.byte(enumNumber(OPERATIONS, operation));
  writeSource(writer, source.transaction, eventFile, eventOffset, source.ordinal);
  writeRest(writer);
  writer.byte(MESSAGE.lastInTransaction);
  writer.byte(0);
  return writer.take();
}
