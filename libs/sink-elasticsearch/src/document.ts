/** Writes rows as the text of documents: by hand, so that every digit stays and nothing is serialised twice. */
import { type ColumnValue, numberText } from '@mysync/core';
import { bytesText, maskValue } from '@mysync/mapping';
import { isCalendarDate } from './dates.ts';
import type { Field } from './fields.ts';

interface FieldWriter {
  readonly index: number;
  /** `,"name":` */
  readonly prefix: string;
  /** `,"name_raw":`, or '' */
  readonly rawPrefix: string;
  readonly field: Field;
}

/**
 * The text of the fields, each with a comma before it, ready to follow a first field; absent columns are left out.
 * What cannot be written throws `RowRefusal`.
 */
export type FieldsWriter = (row: readonly ColumnValue[]) => string;

/** Thrown by a `FieldsWriter`; the caller makes a refusal of it. */
export class RowRefusal extends Error {
  readonly column: string;

  constructor(column: string, what: string) {
    super(what);
    this.name = 'RowRefusal';
    this.column = column;
  }
}

export function compileFieldsWriter(fields: readonly Field[], zeroDates: 'raw' | 'null' | 'refuse'): FieldsWriter {
  const writers: FieldWriter[] = fields.map((field) => ({
    index: field.projected.index,
    prefix: `,${JSON.stringify(field.name)}:`,
    rawPrefix: field.raw === null ? '' : `,${JSON.stringify(field.raw)}:`,
    field,
  }));
  return (row) => {
    let text = '';
    for (let at = 0; at < writers.length; at++) {
      const writer = writers[at] as FieldWriter;
      const value = row[writer.index];
      if (value === undefined) continue;
      text += writer.prefix;
      if (value === null) text += 'null';
      else if (typeof value === 'string') text += writeText(value, writer, zeroDates);
      else text += writeOther(value, writer.field);
    }
    return text;
  };
}

function writeText(value: string, writer: FieldWriter, zeroDates: 'raw' | 'null' | 'refuse'): string {
  switch (writer.field.encoding) {
    case 'quoted':
      return `"${value}"`;
    case 'date':
      if (isCalendarDate(value)) return `"${value}"`;
      if (zeroDates === 'refuse') throw new RowRefusal(columnOf(writer), `'${value}' is no day of the calendar`);
      return zeroDates === 'raw' ? `null${writer.rawPrefix}${JSON.stringify(value)}` : 'null';
    case 'set':
      return value === '' ? '[]' : `[${value.split(',').map(quote).join(',')}]`;
    case 'json':
      return embeddedJson(value, writer);
    case 'masked':
      return maskedText(value, writer.field);
    default:
      return quote(value);
  }
}

function writeOther(value: number | bigint | Uint8Array, field: Field): string {
  if (field.encoding === 'masked') return maskedText(value, field);
  if (typeof value === 'number') return numberText(value, field.projected.column.kind === 'float');
  if (typeof value === 'bigint') return value.toString();
  return `"${bytesText(value, 'base64')}"`;
}

function maskedText(value: ColumnValue, field: Field): string {
  const masked = maskValue(value, field.projected);
  return masked === null || masked === undefined ? 'null' : JSON.stringify(String(masked));
}

/** The document itself. A line break (only possible between its tokens) would end the line of a bulk request. */
function embeddedJson(value: string, writer: FieldWriter): string {
  try {
    JSON.parse(value);
  } catch {
    throw new RowRefusal(columnOf(writer), 'the text is not JSON');
  }
  return value.includes('\n') || value.includes('\r') ? value.replace(/[\r\n]/g, ' ') : value;
}

function columnOf(writer: FieldWriter): string {
  return writer.field.projected.column.name;
}

/** Text that needs an escape: quotes, backslashes, control characters, and surrogates that might stand alone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON must escape them.
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

export function quote(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`;
}
