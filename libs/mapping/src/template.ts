/**
 * Templates of target names: `{table}:{key}`.
 *
 * Placeholders: `{database}`, `{table}`, `{key}` (all key columns, joined by `:`), `{column:NAME}`, and `{NAME}` for a key
 * column. A name may stand in backticks (`` {column:`a}b`} ``). `{{` and `}}` are braces.
 *
 * Two rows never share a text (of one rule): (1) between two placeholders there is text; (2) where several values stand in a
 * template, `%` and the first and last character of each text between two placeholders is percent-encoded in every value,
 * so that the first such character ends the value; a single value stays as it is; (3) database and table names are
 * encoded alike; (4) NULL is `%null`, which no encoded value is.
 */
import { type ColumnValue, formatTableRef, type RowKey, type TableSchema } from '@mysync/core';
import { mappingErrors } from './errors.ts';
import { columnIndex } from './projection.ts';
import { closest, didYouMean } from './suggest.ts';
import { type BytesText, valueText } from './value.ts';

export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'database' | 'table' | 'key' }
  /** `explicit`: written as {column:NAME}; otherwise only key columns are meant. */
  | { readonly kind: 'column'; readonly name: string; readonly explicit: boolean };

export interface TemplateOptions {
  /**
   * `key`: names a row: must contain the whole key, and nothing that changes while the key stays.
   * `text`: anything else, any column.
   */
  readonly role: 'key' | 'text';
  /** Columns besides the key that a `key` may contain, since a change of them is sent as delete and insert. */
  readonly partitionBy?: readonly string[];
  /** Default hex: readable and safe in keys. */
  readonly bytes?: BytesText;
}

export interface RowTemplate {
  (row: readonly ColumnValue[], key: RowKey): string;
  /** Places in the row of the columns that are read from it (those of the key are read from the key). */
  readonly columns: readonly number[];
  /** The text with names filled in and a NUL for each value: equal shapes of two tables share their target names. */
  readonly shape: string;
}

const WORDS = ['database', 'table', 'key'] as const;

/** Syntax only, for `config check`. Throws `MAPPING_TEMPLATE_INVALID`. */
export function parseTemplate(template: string): readonly TemplatePart[] {
  const parts: TemplatePart[] = [];
  let text = '';
  const flush = (): void => {
    if (text !== '') parts.push({ kind: 'text', text });
    text = '';
  };
  for (let at = 0; at < template.length; at++) {
    const char = template.charAt(at);
    if ((char === '{' || char === '}') && template[at + 1] === char) {
      text += char;
      at++;
    } else if (char === '}') {
      throw invalid(template, at, "a '}' without '{' (write }} for a brace)");
    } else if (char === '{') {
      const end = placeholderEnd(template, at);
      flush();
      parts.push(placeholder(template, at, template.slice(at + 1, end)));
      at = end;
    } else {
      text += char;
    }
  }
  flush();
  if (parts.length === 0) throw invalid(template, 0, 'it is empty');
  parts.forEach((part, index) => {
    const before = parts[index - 1];
    if (part.kind !== 'text' && before !== undefined && before.kind !== 'text') {
      throw invalid(
        template,
        0,
        `nothing stands between placeholders ${index} and ${index + 1}, so values could run together`,
      );
    }
  });
  return parts;
}

function placeholderEnd(template: string, start: number): number {
  let quoted = false;
  for (let at = start + 1; at < template.length; at++) {
    if (template[at] === '`') quoted = !quoted;
    else if (template[at] === '}' && !quoted) return at;
    else if (template[at] === '{' && !quoted) break;
  }
  throw invalid(template, start, "a '{' that is not closed (write {{ for a brace)");
}

function placeholder(template: string, at: number, inner: string): TemplatePart {
  const word = WORDS.find((each) => each === inner);
  if (word !== undefined) return { kind: word };
  if (inner.startsWith('column:')) {
    return { kind: 'column', name: unquote(template, at, inner.slice(7)), explicit: true };
  }
  const colon = inner.startsWith('`') ? -1 : inner.indexOf(':');
  if (colon >= 0) {
    const hint = didYouMean(inner.slice(0, colon), ['column']);
    throw invalid(template, at, `{${inner}} is no placeholder${hint}`);
  }
  return { kind: 'column', name: unquote(template, at, inner), explicit: false };
}

function unquote(template: string, at: number, name: string): string {
  const bare = /^`(.*)`$/s.exec(name)?.[1]?.replaceAll('``', '`') ?? name;
  if (bare === '') throw invalid(template, at, 'a placeholder without a name');
  return bare;
}

function invalid(template: string, at: number, what: string): Error {
  return mappingErrors.MAPPING_TEMPLATE_INVALID({
    message: `template '${template}': ${what}${at > 0 ? ` at character ${at + 1}` : ''}`,
    where: { template, position: at + 1 },
  });
}

interface ValuePart {
  /** Place in the key's values, or −1: then place in the row. */
  readonly keyAt: number;
  readonly index: number;
}

/** Throws `MAPPING_TEMPLATE_INVALID`, `MAPPING_COLUMN_UNKNOWN`, `MAPPING_KEY_INCOMPLETE`, `MAPPING_KEY_UNSTABLE`. */
export function compileTemplate(template: string, schema: TableSchema, options: TemplateOptions): RowTemplate {
  const resolved = resolve(template, schema, parseTemplate(template));
  if (options.role === 'key') checkKey(template, schema, resolved, options.partitionBy ?? []);
  const between = separators(resolved);
  const values = resolved.filter((part): part is ValuePart => typeof part === 'object' && 'index' in part);
  if (values.length > 1 && between.has('%')) {
    throw invalid(template, 0, "a '%' beside a placeholder (it marks encoded characters)");
  }
  const escapes = new Set([...between, '%']);
  const constant = (part: ResolvedPart): string =>
    typeof part === 'string' ? part : 'index' in part ? '\0' : encode(part.constant, escapes);
  const shape = resolved.map(constant).join('');
  const texts = shape.split('\0');
  const bytes = options.bytes ?? 'hex';
  // A name behind a raw value is found from the end: then no separator may look like a part of an encoded character.
  const isLast = resolved.findLast((part) => typeof part !== 'string') === values[0];
  const single = values.length === 1 && (isLast || ![...between].some((char) => /[0-9A-F]/.test(char)));
  const escaped = single ? null : escaper(escapes);
  const columns = schema.columns;
  const inKey = options.role === 'key';
  const text = (part: ValuePart, row: readonly ColumnValue[], key: RowKey): string => {
    const value = part.keyAt >= 0 ? key.values[part.keyAt] : row[part.index];
    if (value === undefined && inKey) throw absent(template, schema, part.index);
    if (value === null || value === undefined) return '%null';
    const column = columns[part.index];
    const plain =
      typeof value === 'string'
        ? value
        : column === undefined
          ? rawText(value, bytes)
          : valueText(value, column, bytes);
    return escaped === null ? plain : escaped(plain);
  };
  const [first] = values;
  const [head = '', tail = ''] = texts;
  const render =
    single && first !== undefined
      ? (row: readonly ColumnValue[], key: RowKey) => head + text(first, row, key) + tail
      : (row: readonly ColumnValue[], key: RowKey) => {
          let result = head;
          for (let at = 0; at < values.length; at++) result += text(values[at] as ValuePart, row, key) + texts[at + 1];
          return result;
        };
  const read = values.filter((part) => part.keyAt < 0).map((part) => part.index);
  return Object.assign(render, { columns: read, shape });
}

/** A name made without the value would be another record's. */
function absent(template: string, schema: TableSchema, index: number): Error {
  const table = formatTableRef(schema);
  const column = schema.columns[index]?.name ?? '';
  return mappingErrors.MAPPING_KEY_ABSENT({
    message: `a change of ${table} does not hold '${column}', which target key '${template}' is made of`,
    where: { template, table, column },
  });
}

type ResolvedPart = string | { readonly constant: string } | ValuePart;

/** Key columns in the order of the key. */
function keyColumns(schema: TableSchema): readonly number[] {
  const indexes = schema.columns
    .map((_, index) => index)
    .filter((index) => (schema.columns[index]?.keyPosition ?? 0) > 0);
  return indexes.sort((a, b) => (schema.columns[a]?.keyPosition ?? 0) - (schema.columns[b]?.keyPosition ?? 0));
}

function resolve(template: string, schema: TableSchema, parts: readonly TemplatePart[]): readonly ResolvedPart[] {
  const key = keyColumns(schema);
  const resolved: ResolvedPart[] = [];
  for (const part of parts) {
    if (part.kind === 'text') resolved.push(part.text);
    else if (part.kind === 'database') resolved.push({ constant: schema.database });
    else if (part.kind === 'table') resolved.push({ constant: schema.table });
    else if (part.kind === 'column') resolved.push(columnPart(template, schema, key, part.name, part.explicit));
    else if (schema.keyRule === 'row-hash') resolved.push({ keyAt: 0, index: -1 });
    else {
      key.forEach((index, keyAt) => {
        if (keyAt > 0) resolved.push(':');
        resolved.push({ keyAt, index });
      });
    }
  }
  return resolved;
}

function columnPart(
  template: string,
  schema: TableSchema,
  key: readonly number[],
  name: string,
  explicit: boolean,
): ValuePart {
  const found = schema.columns.findIndex((column) => column.name === name);
  if (!explicit && !key.includes(found)) {
    const names = key.map((index) => schema.columns[index]?.name ?? '');
    const near = closest(name, [...WORDS, ...names]);
    const hint = found >= 0 ? `{column:${name}}` : near === undefined ? undefined : `{${near}}`;
    const what = `{${name}} is neither a placeholder nor a key column of ${formatTableRef(schema)}`;
    throw invalid(template, 0, hint === undefined ? what : `${what} (did you mean ${hint}?)`);
  }
  const index = columnIndex(schema, name, `template '${template}'`);
  return { keyAt: key.indexOf(index), index };
}

function checkKey(
  template: string,
  schema: TableSchema,
  parts: readonly ResolvedPart[],
  partitionBy: readonly string[],
): void {
  const table = formatTableRef(schema);
  const used = parts.filter((part): part is ValuePart => typeof part === 'object' && 'index' in part);
  const name = (index: number): string => schema.columns[index]?.name ?? '';
  const missing = keyColumns(schema).filter((index) => !used.some((part) => part.index === index));
  if (schema.keyRule === 'row-hash' ? !used.some((part) => part.index === -1) : missing.length > 0) {
    const what = missing.length > 0 ? `key column ${missing.map((index) => `'${name(index)}'`).join(', ')}` : '{key}';
    throw mappingErrors.MAPPING_KEY_INCOMPLETE({
      message: `target key '${template}' lacks ${what} of ${table}: two rows could share a key`,
      where: { template, table, column: missing.map(name).join(', ') },
    });
  }
  const unstable = used.find((part) => part.keyAt < 0 && !partitionBy.includes(name(part.index)));
  if (unstable !== undefined) {
    const column = name(unstable.index);
    throw mappingErrors.MAPPING_KEY_UNSTABLE({
      message: `target key '${template}' contains '${column}', which is no key column of ${table}: an update of it would leave a ghost`,
      where: { template, table, column },
    });
  }
}

/** The first and the last character of each text between two placeholders. */
function separators(parts: readonly ResolvedPart[]): Set<string> {
  const first = parts.findIndex((part) => typeof part !== 'string');
  const last = parts.findLastIndex((part) => typeof part !== 'string');
  const characters = new Set<string>();
  for (const part of parts.slice(Math.max(first, 0), last + 1)) {
    if (typeof part !== 'string') continue;
    const text = [...part];
    for (const char of [text[0], text.at(-1)]) if (char !== undefined) characters.add(char);
  }
  return characters;
}

function escaper(escapes: ReadonlySet<string>): (text: string) => string {
  const needed = new RegExp(
    `[${[...escapes].map((char) => `\\u{${char.codePointAt(0)?.toString(16)}}`).join('')}]`,
    'u',
  );
  return (text) => (needed.test(text) ? encode(text, escapes) : text);
}

function encode(text: string, escapes: ReadonlySet<string>): string {
  let encoded = '';
  for (const char of text) {
    if (!escapes.has(char)) encoded += char;
    else for (const byte of Buffer.from(char)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

function rawText(value: number | bigint | string | Uint8Array, bytes: BytesText): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString(bytes) : String(value);
}
