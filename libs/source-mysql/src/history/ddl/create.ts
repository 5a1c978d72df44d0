/** What stands behind the name in CREATE TABLE: columns, keys, options. */
import type { TableDefinition } from '../definition.ts';
import { type ReadColumn, readColumnDefinition } from './column-definition.ts';
import { charsetName, collationCharset, type TypeSetting } from './column-type.ts';
import { type DdlWords, Undecided } from './ddl-words.ts';
import { type ReadKey, readKeyDefinition } from './key-definition.ts';
import { TableEdit } from './table-edit.ts';

const EMPTY: TableDefinition = { columns: [], keys: [], charset: null, versioned: false, sequence: false };

/** `fallback` is the database's charset. */
export function readTableBody(
  words: DdlWords,
  setting: (charset: string | null) => TypeSetting,
  fallback: string | null,
): TableDefinition {
  // the options come behind the columns that they are the default of: they are read first
  const start = words.place;
  words.skipParens();
  const options = readOptions(words, setting(null));
  words.back(start);
  const charset = options.charset ?? fallback;
  const types = setting(charset);
  const edit = new TableEdit({ ...EMPTY, charset }, types);
  edit.versioned = options.versioned;
  words.expectSymbol('(');
  do {
    if (words.takeAny('PERIOD FOR')) {
      words.identifier();
      words.skipParens();
      continue;
    }
    const key = readKeyDefinition(words);
    if (key === null) continue;
    if (key !== undefined) edit.addKey(key);
    else addColumn(edit, readColumnDefinition(words, types), undefined);
  } while (words.symbol(','));
  words.expectSymbol(')');
  return edit.done();
}

export function addColumn(edit: TableEdit, { column, key, isVersioned }: ReadColumn, place: string | undefined): void {
  edit.add(column, place);
  if (isVersioned) edit.versioned = true;
  if (key !== undefined) edit.addKey(inlineKey(column.name, key));
}

export function inlineKey(column: string, kind: ReadKey['kind']): ReadKey {
  return { name: kind === 'primary' ? 'PRIMARY' : '', kind, parts: [{ column, prefix: 0 }], ifNotExists: false };
}

function readOptions(words: DdlWords, setting: TypeSetting): { charset: string | null; versioned: boolean } {
  let charset: string | null = null;
  let versioned = false;
  while (!words.done) {
    if (words.takeAny('DEFAULT CHARACTER SET', 'CHARACTER SET', 'DEFAULT CHARSET', 'CHARSET')) {
      words.symbol('=');
      charset = charsetName(words, setting.names) ?? charset;
    } else if (words.takeAny('DEFAULT COLLATE', 'COLLATE')) charset = collationCharset(words, setting.names) ?? charset;
    else if (words.takeAny('WITH SYSTEM VERSIONING')) versioned = true;
    else if (words.take('PARTITION', 'BY')) break;
    else if (words.takeAny('SELECT', 'AS', 'VALUES', 'TABLE', 'WITH')) {
      throw new Undecided('its columns are those of a query');
    } else words.skip();
  }
  return { charset, versioned };
}
