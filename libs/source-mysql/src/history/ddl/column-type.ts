/** The type of a column as a statement spells it, to the same shape that the catalogue gives. */
import type { BaseType } from '../../schema/column-shape.ts';
import type { DefinedColumn } from '../definition.ts';
import type { CharsetNames } from './charset-names.ts';
import { type DdlWords, Undecided } from './ddl-words.ts';

/** What the text needs of its surroundings. */
export interface TypeSetting {
  readonly names: CharsetNames;
  readonly flavor: 'mysql' | 'mariadb';
  /** Of text that names no charset; null: not known. */
  readonly charset: string | null;
  /** sql_mode REAL_AS_FLOAT. */
  readonly realIsFloat: boolean;
}

export type ColumnType = Omit<DefinedColumn, 'name' | 'nullable'> & {
  /** SERIAL: NOT NULL, and a unique key. */
  readonly serial: boolean;
};

const INTEGERS: Readonly<Record<string, BaseType>> = {
  TINYINT: 'tinyint',
  INT1: 'tinyint',
  BOOL: 'tinyint',
  BOOLEAN: 'tinyint',
  SMALLINT: 'smallint',
  INT2: 'smallint',
  MEDIUMINT: 'mediumint',
  MIDDLEINT: 'mediumint',
  INT3: 'mediumint',
  INT: 'int',
  INTEGER: 'int',
  INT4: 'int',
  BIGINT: 'bigint',
  INT8: 'bigint',
};
const PLAIN: Readonly<Record<string, BaseType>> = {
  DATE: 'date',
  TINYBLOB: 'tinyblob',
  MEDIUMBLOB: 'mediumblob',
  LONGBLOB: 'longblob',
  GEOMETRY: 'geometry',
  POINT: 'point',
  LINESTRING: 'linestring',
  POLYGON: 'polygon',
  MULTIPOINT: 'multipoint',
  MULTILINESTRING: 'multilinestring',
  MULTIPOLYGON: 'multipolygon',
  GEOMETRYCOLLECTION: 'geometrycollection',
  GEOMCOLLECTION: 'geometrycollection',
};
const TEXTS: Readonly<Record<string, BaseType>> = {
  TINYTEXT: 'tinytext',
  MEDIUMTEXT: 'mediumtext',
  LONGTEXT: 'longtext',
};
const LOGICAL: Readonly<Record<string, BaseType>> = { UUID: 'uuid', INET4: 'inet4', INET6: 'inet6' };
const BLOB_OF_TEXT: Readonly<Record<string, BaseType>> = {
  char: 'binary',
  varchar: 'varbinary',
  tinytext: 'tinyblob',
  text: 'blob',
  mediumtext: 'mediumblob',
  longtext: 'longblob',
};
/** Longest VARCHAR; beyond it a server that is not strict makes a TEXT of it. */
const VARCHAR_BYTES = 65_535;
const MYSQL_VECTOR_DIMENSIONS = 2048;

const NONE = { unsigned: false, length: 0, precision: 0, scale: 0, charset: '', members: [], serial: false } as const;

export function readColumnType(words: DdlWords, setting: TypeSetting): ColumnType {
  const word = words.peek();
  const start = words.place;
  if (words.token()?.kind !== 'word') throw words.unknown();
  words.skip();
  const integer = INTEGERS[word];
  if (integer !== undefined) {
    words.numbers(1);
    return { ...NONE, base: integer, unsigned: readUnsigned(words) };
  }
  const plain = PLAIN[word];
  if (plain !== undefined) {
    if (plain.endsWith('blob')) takeCompressed(words);
    return { ...NONE, base: plain };
  }
  switch (word) {
    case 'SERIAL':
      return { ...NONE, base: 'bigint', unsigned: true, serial: true };
    case 'BIT':
      return { ...NONE, base: 'bit', length: words.numbers(1)[0] ?? 1 };
    case 'DECIMAL':
    case 'DEC':
    case 'NUMERIC':
    case 'FIXED': {
      const [precision = 10, scale = 0] = words.numbers(2);
      // 0 digits are the default as well
      return { ...NONE, base: 'decimal', precision: precision || 10, scale, unsigned: readUnsigned(words) };
    }
    case 'FLOAT':
    case 'FLOAT4': {
      const [digits = 0, scale] = words.numbers(2);
      const base = word === 'FLOAT' && scale === undefined && digits > 24 ? 'double' : 'float';
      return { ...NONE, base, unsigned: readUnsigned(words) };
    }
    case 'DOUBLE':
    case 'FLOAT8':
    case 'REAL': {
      words.take('PRECISION');
      words.numbers(2);
      const base = word === 'REAL' && setting.realIsFloat ? 'float' : 'double';
      return { ...NONE, base, unsigned: readUnsigned(words) };
    }
    case 'YEAR':
      words.numbers(1);
      words.takeAny('UNSIGNED', 'ZEROFILL');
      return { ...NONE, base: 'year' };
    case 'TIME':
    case 'DATETIME':
    case 'TIMESTAMP':
      return { ...NONE, base: word.toLowerCase() as BaseType, length: words.numbers(1)[0] ?? 0 };
    case 'BINARY':
    case 'VARBINARY': {
      const [length = 1] = words.numbers(1);
      if (word === 'VARBINARY') takeCompressed(words);
      return { ...NONE, base: word.toLowerCase() as BaseType, length };
    }
    case 'BLOB': {
      const [bytes] = words.numbers(1);
      takeCompressed(words);
      return { ...NONE, base: bytes === undefined ? 'blob' : blobOf(bytes) };
    }
    case 'JSON':
      // MariaDB's is a LONGTEXT with a check
      if (setting.flavor === 'mysql') return { ...NONE, base: 'json', charset: 'utf8mb4' };
      return { ...NONE, base: 'longtext', charset: 'utf8mb4' };
    case 'ENUM':
    case 'SET': {
      const spelled = readMembers(words);
      const charset = readCharset(words, setting);
      // blanks at the end of a member are kept where it is bytes
      const members = charset === 'binary' ? spelled : spelled.map((member) => member.replace(/ +$/, ''));
      return { ...NONE, base: word.toLowerCase() as BaseType, charset, members };
    }
    case 'VECTOR': {
      const [length = MYSQL_VECTOR_DIMENSIONS] = words.numbers(1);
      // as in its log
      if (setting.flavor !== 'mysql') return { ...NONE, base: 'varbinary', length: 4 * length };
      return { ...NONE, base: 'vector', length };
    }
    default: {
      const logical = setting.flavor === 'mariadb' ? LOGICAL[word] : undefined;
      if (logical !== undefined) return { ...NONE, base: logical, charset: 'ascii' };
      words.back(start);
      return readText(words, setting);
    }
  }
}

function readText(words: DdlWords, setting: TypeSetting): ColumnType {
  const national = words.take('NATIONAL');
  const nameless = words.takeAny('NVARCHAR') ? 'NVARCHAR' : words.takeAny('NCHAR') ? 'NCHAR' : '';
  const isNational = national || nameless !== '';
  const inner: TypeSetting = isNational ? { ...setting, charset: setting.names.charset('utf8') ?? 'utf8' } : setting;
  if (nameless === 'NVARCHAR' || (nameless === 'NCHAR' && words.takeAny('VARCHAR', 'VARYING', 'VARCHARACTER')))
    return varchar(words, inner);
  if (nameless === 'NCHAR') return char(words, inner);
  if (words.takeAny('VARCHAR', 'VARCHARACTER', 'CHAR VARYING', 'CHARACTER VARYING')) return varchar(words, inner);
  if (words.takeAny('CHAR', 'CHARACTER')) return char(words, inner);
  if (words.takeAny('LONG VARBINARY')) return { ...NONE, base: 'mediumblob' };
  if (words.takeAny('LONG VARCHAR', 'LONG CHAR VARYING', 'LONG CHARACTER VARYING', 'LONG'))
    return textOf('mediumtext', words, inner);
  if (words.take('TEXT')) {
    const [characters] = words.numbers(1);
    takeCompressed(words);
    const charset = readCharset(words, inner);
    if (characters === undefined) return settle('text', 0, charset);
    if (charset === null) throw new Undecided('the charset of a TEXT of a length of its own is not known');
    const base = blobOf(characters * (charset === 'binary' ? 1 : inner.names.maxLength(charset)));
    return settle(base.replace('blob', 'text') as BaseType, 0, charset);
  }
  const text = TEXTS[words.peek()];
  if (text === undefined) throw words.unknown();
  words.skip();
  return textOf(text, words, inner);
}

function textOf(base: BaseType, words: DdlWords, setting: TypeSetting): ColumnType {
  takeCompressed(words);
  return settle(base, 0, readCharset(words, setting));
}

function char(words: DdlWords, setting: TypeSetting): ColumnType {
  const [length = 1] = words.numbers(1);
  return settle('char', length, readCharset(words, setting));
}

function varchar(words: DdlWords, setting: TypeSetting): ColumnType {
  const [length] = words.numbers(1);
  if (length === undefined) throw words.unknown();
  takeCompressed(words);
  const charset = readCharset(words, setting);
  if (length * setting.names.maxLength(charset ?? '') > VARCHAR_BYTES)
    throw new Undecided('a VARCHAR is too long for one');
  return settle('varchar', length, charset);
}

function settle(base: BaseType, length: number, charset: string | null): ColumnType {
  if (charset === 'binary') return { ...NONE, base: BLOB_OF_TEXT[base] ?? base, length };
  return { ...NONE, base, length, charset };
}

function readUnsigned(words: DdlWords): boolean {
  let unsigned = false;
  for (;;) {
    if (words.takeAny('UNSIGNED', 'ZEROFILL')) unsigned = true;
    else if (!words.take('SIGNED')) return unsigned;
  }
}

function readMembers(words: DdlWords): string[] {
  words.expectSymbol('(');
  const members = [words.string()];
  while (words.symbol(',')) members.push(words.string());
  words.expectSymbol(')');
  return members;
}

/** MariaDB's column compression, which the table map shows by itself. */
function takeCompressed(words: DdlWords): void {
  if (!words.take('COMPRESSED')) return;
  if (words.symbol('=')) words.identifier();
}

/** What follows a type of text: its charset. A collation may also come later, among the attributes. */
function readCharset(words: DdlWords, setting: TypeSetting): string | null {
  let charset: string | null = setting.charset;
  for (;;) {
    if (words.take('BINARY')) continue; // the binary collation of the same charset
    if (words.take('ASCII')) charset = 'latin1';
    else if (words.take('UNICODE')) charset = 'ucs2';
    else if (words.take('BYTE')) charset = 'binary';
    else if (words.takeAny('CHARACTER SET', 'CHARSET', 'CHAR SET')) {
      words.symbol('=');
      charset = charsetName(words, setting.names) ?? setting.charset;
    } else if (words.take('COLLATE')) charset = collationCharset(words, setting.names) ?? charset;
    else return charset;
  }
}

/** A text with another charset. */
export function withCharset(type: ColumnType, charset: string): ColumnType {
  if (type.base === 'enum' || type.base === 'set') return { ...type, charset };
  return type.charset === '' ? type : settle(type.base, type.length, charset);
}

/** null for DEFAULT. */
export function charsetName(words: DdlWords, names: CharsetNames): string | null {
  if (words.take('DEFAULT')) return null;
  const name = words.isString() ? words.string() : words.take('BINARY') ? 'binary' : words.identifier();
  const charset = names.charset(name);
  if (charset === undefined) throw new Undecided(`the charset '${name}' is not known`);
  return charset;
}

/** null for DEFAULT, and for a collation that goes with every charset. */
export function collationCharset(words: DdlWords, names: CharsetNames): string | null {
  words.symbol('=');
  if (words.take('DEFAULT')) return null;
  const name = words.isString() ? words.string() : words.take('BINARY') ? 'binary' : words.identifier();
  const charset = names.charsetOfCollation(name);
  if (charset === undefined) throw new Undecided(`the collation '${name}' is not known`);
  return charset;
}

/** The smallest type for so many bytes. */
export function blobOf(bytes: number): BaseType {
  if (bytes < 256) return 'tinyblob';
  if (bytes < 65_536) return 'blob';
  return bytes < 16_777_216 ? 'mediumblob' : 'longblob';
}
