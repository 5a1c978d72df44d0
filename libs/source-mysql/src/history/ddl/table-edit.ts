/**
 * A definition under change: what the server does with the parts of one CREATE or ALTER, in its order.
 *
 * 1. Columns: those dropped go, those changed take the place of the old; then new ones and those with a place of their own are put in, in
 *    the order of the statement, FIRST and AFTER seen among the new names.
 * 2. Keys: of the old, parts whose column went go, renamed ones follow; then come the new ones, named after their first column where they have no name.
 * 3. Columns of the primary key are NOT NULL.
 * 4. Unique keys too long for an index (MariaDB keeps a hash for them) stand behind the other unique keys.
 */
import { type DefinedColumn, isWhole, type KeyPart, type TableDefinition, type TableKey } from '../definition.ts';
import { blobOf, type TypeSetting, withCharset } from './column-type.ts';
import { Undecided } from './ddl-words.ts';
import type { ReadKey } from './key-definition.ts';

/** undefined: at the end, or where it was. '': first. Else: behind that column. */
export type ColumnPlace = string | undefined;

interface ColumnEdit {
  /** Folded; undefined for a new column. */
  readonly old: string | undefined;
  readonly column: DefinedColumn;
  readonly place: ColumnPlace;
}

export class TableEdit {
  readonly #names: TypeSetting['names'];
  readonly #before: TableDefinition;
  readonly #dropped = new Set<string>();
  /** In the order of the statement. */
  readonly #edits: ColumnEdit[] = [];
  readonly #droppedKeys = new Set<string>();
  readonly #renamedKeys = new Map<string, string>();
  readonly #newKeys: ReadKey[] = [];
  #convertTo: string | undefined;
  #retyped = false;
  charset: string | null;
  versioned: boolean;

  constructor(before: TableDefinition, { names }: Pick<TypeSetting, 'names'>) {
    this.#before = before;
    this.#names = names;
    this.charset = before.charset;
    this.versioned = before.versioned;
  }

  has(column: string): boolean {
    return this.#find(column) !== undefined;
  }

  add(column: DefinedColumn, place: ColumnPlace): void {
    this.#retyped = true;
    this.#edits.push({ old: undefined, column, place });
  }

  drop(column: string): void {
    this.#existing(column);
    this.#dropped.add(fold(column));
  }

  change(old: string, column: DefinedColumn, place: ColumnPlace): void {
    this.#existing(old);
    this.#retyped = true;
    this.#edits.push({ old: fold(old), column, place });
  }

  rename(old: string, name: string): void {
    this.#edits.push({ old: fold(old), column: { ...this.#existing(old), name }, place: undefined });
  }

  convertTo(charset: string): void {
    this.#convertTo = charset;
    this.charset = charset;
  }

  addKey(key: ReadKey): void {
    if (key.ifNotExists && this.#before.keys.some((known) => same(known.name, key.name))) return;
    this.#newKeys.push(key);
  }

  hasKey(name: string): boolean {
    return this.#before.keys.some((key) => same(key.name, name));
  }

  dropKey(name: string): void {
    if (!this.hasKey(name)) throw new Undecided(`there is no key ${name}`);
    this.#droppedKeys.add(fold(name));
  }

  renameKey(old: string, name: string): void {
    if (!this.hasKey(old)) throw new Undecided(`there is no key ${old}`);
    this.#renamedKeys.set(fold(old), name);
  }

  done(): TableDefinition {
    if (this.#convertTo !== undefined && this.#retyped) {
      throw new Undecided('it converts the charset and changes columns at once');
    }
    const columns = this.#columns();
    const keys = this.#keys(columns);
    const primary = new Set(keys.find((key) => key.kind === 'primary')?.parts.map((part) => fold(part.column)));
    return {
      columns: columns.map((column) => (primary.has(fold(column.name)) ? { ...column, nullable: false } : column)),
      keys,
      charset: this.charset,
      versioned: this.versioned,
      sequence: false,
    };
  }

  #columns(): DefinedColumn[] {
    const columns: DefinedColumn[] = [];
    for (const column of this.#before.columns) {
      if (this.#dropped.has(fold(column.name))) continue;
      const edit = this.#editOf(column.name);
      if (edit === undefined) columns.push(this.#converted(column));
      else if (edit.place === undefined) columns.push(this.#converted(edit.column));
    }
    for (const { old, column, place } of this.#edits) {
      if (old === undefined || place !== undefined) put(columns, column, place);
    }
    const names = new Set(columns.map((column) => fold(column.name)));
    if (names.size < columns.length) throw new Undecided('two columns would have the same name');
    if (columns.length === 0) throw new Undecided('no column would be left');
    return columns;
  }

  #editOf(column: string): ColumnEdit | undefined {
    return this.#edits.find((edit) => edit.old === fold(column));
  }

  #converted(column: DefinedColumn): DefinedColumn {
    const charset = this.#convertTo;
    if (charset === undefined || column.charset === '' || column.charset === 'binary') return column;
    if (column.base === 'json') return column;
    if (column.base === 'uuid' || column.base === 'inet4' || column.base === 'inet6') return column;
    // MariaDB 10.11 takes the members' old bytes for some of the new charset, MySQL 9.7 loses some
    const plain = column.members.every((member) => /^[ -~]*$/.test(member));
    const spoils = isList(column) && charset !== column.charset;
    if (spoils && !(plain && isAscii(charset) && isAscii(column.charset ?? ''))) {
      throw new Undecided(`it converts members of ${column.name} that are not plain ASCII before and after`);
    }
    const { serial: _, ...type } = withCharset({ ...column, serial: false }, charset);
    const virtual = column.virtual === undefined ? {} : { virtual: column.virtual };
    const converted = { ...type, name: column.name, nullable: column.nullable, ...virtual };
    const bytes = TEXT_BYTES[column.base];
    if (bytes === undefined || charset === 'binary') return converted;
    if (column.charset === null) throw new Undecided(`the charset of ${column.name} is not known`);
    // room for as many characters as before
    const grows = this.#names.maxLength(charset) > this.#names.maxLength(column.charset);
    if (!grows) return converted;
    const wanted = Math.floor(bytes / this.#names.maxLength(column.charset)) * this.#names.maxLength(charset);
    return { ...converted, base: blobOf(wanted).replace('blob', 'text') as DefinedColumn['base'] };
  }

  #keys(columns: readonly DefinedColumn[]): TableKey[] {
    const keys: TableKey[] = [];
    for (const key of this.#before.keys) {
      if (this.#droppedKeys.has(fold(key.name))) continue;
      const parts = key.parts.flatMap((part) => this.#followed(part, key)).map((part) => partOf(part, columns));
      if (parts.length === 0) continue;
      keys.push({ ...key, name: this.#renamedKeys.get(fold(key.name)) ?? key.name, parts });
    }
    for (const key of this.#newKeys) {
      if (key.kind === 'primary' && keys.some((other) => other.kind === 'primary')) {
        throw new Undecided('there is a primary key already');
      }
      keys.push({
        name: key.name === '' ? freeName(keys, this.#newKeys, key) : key.name,
        kind: key.kind,
        parts: key.parts.map((part) => partOf(part, columns)),
      });
    }
    const hashed = keys.filter((key) => this.#isHashed(key, columns));
    return hashed.length === 0 ? keys : [...keys.filter((key) => !hashed.includes(key)), ...hashed];
  }

  #isHashed(key: TableKey, columns: readonly DefinedColumn[]): boolean {
    if (key.kind !== 'unique') return false;
    let bytes = 0;
    for (const part of key.parts.filter(isWhole)) {
      const column = columns.find((other) => same(other.name, part.column));
      if (column === undefined) continue;
      if (/(text|blob)$/.test(column.base)) return true;
      bytes += column.length * (column.charset === null ? 4 : this.#names.maxLength(column.charset));
    }
    return bytes > INDEX_BYTES;
  }

  /** An old key's part under the new names; none when its column is gone. */
  #followed(part: KeyPart, key: TableKey): KeyPart[] {
    if (part.column === '') return [part];
    if (this.#dropped.has(fold(part.column))) return [];
    const edit = this.#editOf(part.column);
    if (
      key.kind !== 'other' &&
      edit !== undefined &&
      isLong(edit.column) &&
      edit.column.base !== this.#existing(part.column).base
    ) {
      throw new Undecided(`a key over ${part.column} gets a prefix that the server makes up`);
    }
    return [edit === undefined ? part : { ...part, column: edit.column.name }];
  }

  #find(column: string): DefinedColumn | undefined {
    return this.#before.columns.find((known) => same(known.name, column));
  }

  #existing(column: string): DefinedColumn {
    const found = this.#find(column);
    if (found === undefined) throw new Undecided(`there is no column ${column}`);
    return found;
  }
}

function isList({ base }: DefinedColumn): boolean {
  return base === 'enum' || base === 'set';
}

/** Whether ASCII stands for itself in the charset. */
function isAscii(charset: string): boolean {
  return !/^(ucs2|utf16|utf16le|utf32|swe7)$/.test(charset);
}

/** Longest key of InnoDB. */
const INDEX_BYTES = 3072;
const POINT_BYTES = 25;
const TEXT_BYTES: Readonly<Record<string, number>> = { tinytext: 255, text: 65_535, mediumtext: 16_777_215 };

function put(columns: DefinedColumn[], column: DefinedColumn, place: ColumnPlace): void {
  if (place === undefined) columns.push(column);
  else if (place === '') columns.unshift(column);
  else {
    const at = columns.findIndex((other) => same(other.name, place));
    if (at < 0) throw new Undecided(`there is no column ${place} to come after`);
    columns.splice(at + 1, 0, column);
  }
}

/** No key holds such a column whole. */
function isLong(column: DefinedColumn): boolean {
  return /(text|blob)$/.test(column.base) || isGeometry(column);
}

function isGeometry(column: DefinedColumn): boolean {
  return /^(geometry|point|multi|polygon|linestring)/.test(column.base);
}

/** The part as it is kept: a prefix as long as the column, or of a number or date, is none. */
function partOf(part: KeyPart, columns: readonly DefinedColumn[]): KeyPart {
  if (part.column === '') return part;
  const column = columns.find((other) => same(other.name, part.column));
  if (column === undefined) throw new Undecided(`there is no column ${part.column} for a key`);
  const isText = isLong(column) || /(char|binary)$/.test(column.base);
  const isPrefix = part.prefix > 0 && isText && !(column.length > 0 && part.prefix >= column.length);
  // MariaDB makes one up where none is given; which does not matter, such a key names no row
  const made = isGeometry(column) ? POINT_BYTES : 0;
  return { column: column.name, prefix: isPrefix ? part.prefix : made };
}

/** The first column's name, with _2, _3 … where it is taken. */
function freeName(keys: readonly TableKey[], all: readonly ReadKey[], key: ReadKey): string {
  const first = key.parts[0]?.column || 'functional_index';
  const taken = new Set([...keys.map((other) => fold(other.name)), ...all.map((other) => fold(other.name))]);
  if (!taken.has(fold(first)) && fold(first) !== 'primary') return first;
  for (let n = 2; ; n += 1) if (!taken.has(fold(`${first}_${n}`))) return `${first}_${n}`;
}

export function fold(name: string): string {
  return name.toLowerCase();
}

function same(a: string, b: string): boolean {
  return fold(a) === fold(b);
}
