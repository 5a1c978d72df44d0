/** `name type attributes`, as CREATE and ALTER have it. */
import type { DefinedColumn, TableKey } from '../definition.ts';
import { type ColumnType, collationCharset, readColumnType, type TypeSetting, withCharset } from './column-type.ts';
import type { DdlWords } from './ddl-words.ts';

export interface ReadColumn {
  readonly column: DefinedColumn;
  /** Of a key that the definition itself asks for. */
  readonly key: TableKey['kind'] | undefined;
  /** It makes its table a versioned one. */
  readonly isVersioned: boolean;
}

export function readColumnDefinition(words: DdlWords, setting: TypeSetting): ReadColumn {
  const name = words.identifier();
  let type: ColumnType = readColumnType(words, setting);
  let nullable: boolean | undefined = type.serial ? false : undefined;
  let bound: DefinedColumn['bound'];
  let isVersioned = false;
  let isComputed = false;
  let isStored = false;
  let key: TableKey['kind'] | undefined = type.serial ? 'unique' : undefined;
  for (;;) {
    if (words.take('NOT', 'NULL')) nullable = false;
    else if (words.take('NULL')) nullable = true;
    else if (words.take('DEFAULT')) skipDefault(words);
    else if (words.take('ON', 'UPDATE')) skipNow(words);
    else if (words.takeAny('PRIMARY KEY', 'PRIMARY', 'KEY')) key = 'primary';
    else if (words.take('UNIQUE')) {
      words.take('KEY');
      key = 'unique';
    } else if (words.take('COLLATE')) {
      const charset = collationCharset(words, setting.names);
      if (charset !== null) type = withCharset(type, charset);
    } else if (words.take('REFERENCES')) skipReferences(words);
    else if (words.takeAny('GENERATED ALWAYS AS ROW START', 'AS ROW START')) bound = 'start';
    else if (words.takeAny('GENERATED ALWAYS AS ROW END', 'AS ROW END')) bound = 'end';
    else if (words.takeAny('WITH SYSTEM VERSIONING')) isVersioned = true;
    else if (words.takeAny('GENERATED ALWAYS AS', 'AS')) {
      words.skipParens();
      isComputed = true;
    } else if (words.takeAny('STORED', 'PERSISTENT')) isStored = true;
    else if (!skipAttribute(words)) break;
  }
  // a TIMESTAMP without a word is NOT NULL on servers without explicit_defaults_for_timestamp: its table map says
  const { serial: _, ...shape } = type;
  const column = { ...shape, name, nullable: nullable ?? (type.base === 'timestamp' ? null : true) };
  const virtual = isComputed && !isStored && setting.flavor === 'mariadb' ? ({ virtual: true } as const) : {};
  const bounding = bound === undefined ? { ...column, ...virtual } : { ...column, bound, nullable: false };
  return { column: key === 'primary' ? { ...bounding, nullable: false } : bounding, key, isVersioned };
}

/** What changes neither the row nor its key. False at the end of the definition. */
function skipAttribute(words: DdlWords): boolean {
  if (words.takeAny('AUTO_INCREMENT', 'VISIBLE', 'INVISIBLE', 'NOT SECONDARY')) return true;
  if (words.takeAny('WITHOUT SYSTEM VERSIONING', 'VIRTUAL')) return true;
  if (words.takeAny('NOT ENFORCED', 'ENFORCED')) return true;
  if (words.takeAny('COMMENT', 'ENGINE_ATTRIBUTE', 'SECONDARY_ENGINE_ATTRIBUTE')) {
    words.symbol('=');
    words.string();
    return true;
  }
  if (words.takeAny('COLUMN_FORMAT', 'STORAGE')) {
    words.symbol('=');
    words.identifier();
    return true;
  }
  if (words.takeAny('SRID', 'REF_SYSTEM_ID')) {
    words.symbol('=');
    words.number();
    return true;
  }
  if (words.take('CONSTRAINT')) {
    if (!words.is('CHECK')) words.identifier();
    words.expect('CHECK');
    words.skipParens();
    return true;
  }
  if (words.take('CHECK')) {
    words.skipParens();
    return true;
  }
  return false;
}

/** A literal, an expression in parentheses, a function of the time, or (MariaDB) any function. */
export function skipDefault(words: DdlWords): void {
  if (words.isSymbol('(')) {
    words.skipParens();
    return;
  }
  while (words.symbol('-') || words.symbol('+'));
  if (words.isString()) {
    words.string();
    return;
  }
  if (words.takeAny('NEXT VALUE FOR', 'PREVIOUS VALUE FOR')) {
    words.table();
    return;
  }
  if (words.symbol('.')) {
    exponent(words, words.identifier());
    return;
  }
  const first = words.identifier();
  // an introducer or a prefix of the literal: _utf8mb4'…', x'…', b'…', n'…'
  if (words.isString()) {
    words.string();
    return;
  }
  if (/^\d/.test(first)) {
    const digits = words.symbol('.') && /^\d/.test(words.token()?.text ?? '') ? words.identifier() : first;
    exponent(words, digits);
    return;
  }
  while (words.symbol('.')) words.identifier();
  if (words.isSymbol('(')) words.skipParens();
}

/** The sign behind `1e`. */
function exponent(words: DdlWords, digits: string): void {
  if (!/^\d+e$/i.test(digits)) return;
  if (words.symbol('-') || words.symbol('+')) words.number();
}

function skipNow(words: DdlWords): void {
  words.identifier();
  if (words.isSymbol('(')) words.skipParens();
}

export function skipReferences(words: DdlWords): void {
  words.table();
  if (words.isSymbol('(')) words.skipParens();
  for (;;) {
    if (words.take('MATCH')) words.identifier();
    else if (words.take('ON', 'DELETE') || words.take('ON', 'UPDATE')) {
      if (!words.takeAny('SET NULL', 'SET DEFAULT', 'NO ACTION', 'RESTRICT', 'CASCADE')) throw words.unknown();
    } else return;
  }
}
