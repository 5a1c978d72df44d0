/** A message that a log cannot take, made smaller: cut out of its bytes, since this is rare and may be large. */
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { type EncodedRow, takeRow } from './encoded-row.ts';
import { decodeKey } from './key-decoder.ts';
import { SchemaDecoder } from './schema-decoder.ts';
import { DELIVERY_END, enumNumber, MESSAGE, OPERATIONS, ROW_VALUES } from './wire-format.ts';

/** Those seen: rows that are too large come in storms of one table. */
const schemas = new SchemaDecoder();

/** Where a field's content begins and ends in the message. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * The next smaller message of the same change, under the same key and ordinal: first the image before is left with the columns in
 * the record's key (a consumer needs no more of it, and a sink may name its record by each of them), then the row itself is withheld. null
 * where there is none: a deletion says no less than its key.
 *
 * Throws WIRE_MESSAGE_INVALID.
 */
export function smallerRow(row: EncodedRow): EncodedRow | null {
  const message = row.payload;
  const spans = spansOf(message);
  const before = spans.get(MESSAGE.before);
  const keyOnly = before === undefined ? null : keyColumns(row.key, message, spans, before);
  if (before !== undefined && keyOnly !== null && keyOnly.length < before.to - before.from) {
    return rewritten(row, (writer) => {
      for (const [tag, { from, to }] of spans) {
        if (tag === MESSAGE.before) framed(writer, tag, keyOnly);
        else framed(writer, tag, message.subarray(from, to));
      }
    });
  }
  if (row.deletes || row.operation === 'withheld') return null;
  const withheld = rewritten(row, (writer) => {
    for (const [tag, { from, to }] of spans) {
      if (tag !== MESSAGE.before && tag !== MESSAGE.after) framed(writer, tag, message.subarray(from, to));
    }
  });
  withheld.slab[withheld.start + DELIVERY_END + 1] = enumNumber(OPERATIONS, 'withheld');
  return withheld;
}

/** What is framed by its length, behind delivery and operation. */
function spansOf(message: Uint8Array): ReadonlyMap<number, Span> {
  const reader = new ByteReader();
  reader.open(message);
  reader.position = DELIVERY_END + 2;
  const end = message.length - 2;
  const spans = new Map<number, Span>();
  while (reader.position < end) {
    const tag = reader.varint(end);
    const to = reader.until(end);
    spans.set(tag, { from: reader.position, to });
    reader.position = to;
  }
  return spans;
}

/** The image's values with every column that is no part of the record's key absent. */
function keyColumns(key: Uint8Array, message: Uint8Array, spans: ReadonlyMap<number, Span>, image: Span): Uint8Array {
  const decoded = decodeKey(key);
  const kept = new Set(decoded.kind === 'row' ? decoded.row.columns : []);
  const reader = new ByteReader();
  reader.open(message);
  const schema = spans.get(MESSAGE.schema);
  if (schema === undefined) throw reader.fault('a row has no table schema');
  reader.position = schema.from;
  const { columns } = schemas.decode(reader, schema.to).schema;
  reader.position = image.from;
  const writer = new ByteWriter();
  writer.begin();
  for (const { name } of columns) {
    const from = reader.position;
    reader.varint(image.to);
    const to = reader.until(image.to);
    reader.position = to;
    if (kept.has(name)) writer.raw(message.subarray(from, to));
    else writer.few(ABSENT);
  }
  return writer.take();
}

const ABSENT = Uint8Array.of(ROW_VALUES, 0);

function rewritten(row: EncodedRow, body: (writer: ByteWriter) => void): EncodedRow {
  const message = row.payload;
  const writer = new ByteWriter();
  writer.begin();
  writer.raw(message.subarray(0, DELIVERY_END + 2));
  body(writer);
  writer.raw(message.subarray(-2));
  const length = writer.position - writer.start;
  writer.raw(row.key);
  return takeRow(writer, length, row.deletes, row.partitionHash, row.ordinal);
}

function framed(writer: ByteWriter, tag: number, content: Uint8Array): void {
  writer.byte(tag);
  writer.varint(content.length);
  writer.raw(content);
}
