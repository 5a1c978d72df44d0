/**
 * Messages of rows from values that a caller writes as bytes (`value-writer.ts`): what `RowEncoder` is for JavaScript values.
 *
 *     open(…) per event ──► begin(operation, ordinal) ──► openImage ─ at(column), value … ─ closeImage ──► finish
 *
 * 1. The bytes are those of `RowEncoder` for the same values (held together by tests of the source).
 * 2. What `finish` returns belongs to its receiver; nobody writes to those bytes again.
 * 3. `begin` drops what was begun and not finished: an error leaves nothing behind.
 *
 * All that is equal for the rows of an event stands ready in `#head`, but for the operation and the ordinal, which are written over: a row
 * costs one copy and its values.
 */
import { ByteWriter, varintSize } from './byte-writer.ts';
import { type EncodedRow, takeRow } from './encoded-row.ts';
import { type EncodedImage, sameKeyOfImages, writeKeyOfImage } from './key-of-image.ts';
import { OPERATION_NUMBERS, type RowOperation } from './row-encoder.ts';
import { closeRow, openRow } from './row-frame.ts';
import type { TablePlan } from './table-plan.ts';
import { type TransactionBlock, writeSource } from './transaction-block.ts';
import { DELIVERY_END, EMPTY_DELIVERY, MESSAGE } from './wire-format.ts';

export type ImageName = 'before' | 'after';

const NO_BYTES = new Uint8Array(0);

export class RowWriter {
  readonly bytes = new ByteWriter();
  readonly #scratch = new ByteWriter(1024);
  readonly #before: EncodedImage = { body: 0, places: new Uint32Array(64) };
  readonly #after: EncodedImage = { body: 0, places: new Uint32Array(64) };
  #plan: TablePlan | undefined;
  #transaction: TransactionBlock | undefined;
  #eventFile = '';
  #eventOffset = 0;
  /** Delivery, operation, source and schema, for ordinals of `#ordinalSize` bytes, which begin at `#ordinalAt`. */
  #head: Uint8Array = NO_BYTES;
  #ordinalAt = 0;
  #ordinalSize = 0;
  #operation: RowOperation = 'insert';
  #ordinal = 0;
  #mark = 0;
  #image: EncodedImage = this.#after;

  /** What all messages of an event share. `eventFile` is '' where it is the transaction's, `eventOffset` 0 where there is none. */
  open(plan: TablePlan, transaction: TransactionBlock, eventFile: string, eventOffset: number): void {
    this.#plan = plan;
    this.#transaction = transaction;
    this.#eventFile = eventFile;
    this.#eventOffset = eventOffset;
    this.#ordinalSize = 0;
    const columns = plan.kinds.length;
    if (columns > this.#before.places.length) {
      this.#before.places = new Uint32Array(columns);
      this.#after.places = new Uint32Array(columns);
    }
  }

  /** `ordinal` is at least 1. */
  begin(operation: RowOperation, ordinal: number): void {
    const { bytes } = this;
    const size = varintSize(ordinal);
    if (size !== this.#ordinalSize) this.#makeHead(ordinal, size);
    const head = this.#head;
    this.#operation = operation;
    this.#ordinal = ordinal;
    bytes.begin();
    bytes.ensure(head.length + 16);
    const { buffer, position } = bytes;
    buffer.set(head, position);
    buffer[position + DELIVERY_END + 1] = OPERATION_NUMBERS[operation];
    bytes.position = position + this.#ordinalAt;
    bytes.varint(ordinal);
    bytes.position = position + head.length;
  }

  openImage(name: ImageName): void {
    this.#image = name === 'before' ? this.#before : this.#after;
    this.#mark = openRow(this.bytes, name === 'before' ? MESSAGE.before : MESSAGE.after);
  }

  /** The value of this column comes next. Every column of the table has one, in order. */
  at(column: number): void {
    this.#image.places[column] = this.bytes.position - this.bytes.start - this.#mark;
  }

  closeImage(): void {
    this.#image.body = closeRow(this.bytes, this.#mark);
  }

  /** Of an update, with both images closed: whether it is one message, or a delete of the old and an insert of the new row. */
  keepsKey(): boolean {
    return sameKeyOfImages(this.bytes, this.#plan as TablePlan, this.#before, this.#after);
  }

  finish(): EncodedRow {
    const { bytes } = this;
    const deletes = this.#operation === 'delete';
    bytes.ensure(2);
    bytes.buffer[bytes.position] = MESSAGE.lastInTransaction;
    bytes.buffer[bytes.position + 1] = 0;
    bytes.position += 2;
    const length = bytes.position - bytes.start;
    const partitionHash = writeKeyOfImage(bytes, this.#plan as TablePlan, deletes ? this.#before : this.#after);
    return takeRow(bytes, length, deletes, partitionHash, this.#ordinal);
  }

  #makeHead(ordinal: number, size: number): void {
    const scratch = this.#scratch;
    scratch.begin();
    scratch.raw(EMPTY_DELIVERY);
    scratch.byte(MESSAGE.operation);
    scratch.byte(0);
    writeSource(scratch, this.#transaction as TransactionBlock, this.#eventFile, this.#eventOffset, ordinal);
    this.#ordinalAt = scratch.position - scratch.start - size;
    this.#ordinalSize = size;
    scratch.raw((this.#plan as TablePlan).block);
    // a view: it is copied out before the next head is made
    this.#head = scratch.buffer.subarray(scratch.start, scratch.position);
  }
}
