/** Keys among the columns of a CREATE, or behind ADD in an ALTER. */
import type { KeyPart, TableKey } from '../definition.ts';
import { skipReferences } from './column-definition.ts';
import type { DdlWords } from './ddl-words.ts';

export interface ReadKey {
  /** '' where the server makes one up. */
  readonly name: string;
  readonly kind: TableKey['kind'];
  readonly parts: readonly KeyPart[];
  readonly ifNotExists: boolean;
}

/** A key; null for what is no key of rows (a check, a period); undefined when none begins here. */
export function readKeyDefinition(words: DdlWords): ReadKey | null | undefined {
  let constraint = '';
  const start = words.place;
  if (words.take('CONSTRAINT')) {
    words.take('IF', 'NOT', 'EXISTS');
    if (!words.is('PRIMARY') && !words.is('UNIQUE') && !words.is('FOREIGN') && !words.is('CHECK'))
      constraint = words.identifier();
  }
  if (words.take('PRIMARY', 'KEY')) {
    const ifNotExists = takeName(words).ifNotExists;
    return { name: 'PRIMARY', kind: 'primary', parts: readParts(words), ifNotExists, ...keyEnd(words) };
  }
  if (words.take('UNIQUE')) {
    words.takeAny('INDEX', 'KEY');
    const { name, ifNotExists } = takeName(words);
    return { name: name || constraint, kind: 'unique', parts: readParts(words), ifNotExists, ...keyEnd(words) };
  }
  if (words.take('FOREIGN', 'KEY')) {
    const { name, ifNotExists } = takeName(words);
    const parts = readParts(words);
    words.expect('REFERENCES');
    skipReferences(words);
    return { name: constraint || name, kind: 'other', parts, ifNotExists };
  }
  if (words.take('CHECK')) {
    words.skipParens();
    words.takeAny('NOT ENFORCED', 'ENFORCED');
    return null;
  }
  const special = words.takeAny('FULLTEXT', 'SPATIAL', 'VECTOR');
  if (words.takeAny('INDEX', 'KEY') || special) {
    const { name, ifNotExists } = takeName(words);
    return { name, kind: 'other', parts: readParts(words), ifNotExists, ...keyEnd(words) };
  }
  words.back(start);
  return undefined;
}

function takeName(words: DdlWords): { name: string; ifNotExists: boolean } {
  const ifNotExists = words.take('IF', 'NOT', 'EXISTS');
  let name = '';
  if (!words.isSymbol('(') && !words.is('USING') && !words.is('TYPE')) name = words.identifier();
  if (words.takeAny('USING', 'TYPE')) words.identifier();
  return { name, ifNotExists };
}

export function readParts(words: DdlWords): KeyPart[] {
  words.expectSymbol('(');
  const parts: KeyPart[] = [];
  do {
    if (words.isSymbol('(')) {
      words.skipParens();
      parts.push({ column: '', prefix: 0 });
    } else {
      const column = words.identifier();
      parts.push({ column, prefix: words.numbers(1)[0] ?? 0 });
    }
    words.takeAny('ASC', 'DESC', 'WITHOUT OVERLAPS');
  } while (words.symbol(','));
  words.expectSymbol(')');
  return parts;
}

/** Options of the key, which change nothing here. */
export function keyEnd(words: DdlWords): object {
  for (;;) {
    if (words.takeAny('USING', 'WITH PARSER')) words.identifier();
    else if (words.takeAny('VISIBLE', 'INVISIBLE', 'IGNORED', 'NOT IGNORED')) continue;
    else if (words.takeAny('COMMENT', 'ENGINE_ATTRIBUTE', 'SECONDARY_ENGINE_ATTRIBUTE')) {
      words.symbol('=');
      words.string();
    } else if (words.takeAny('KEY_BLOCK_SIZE', 'CLUSTERING', 'ALGORITHM', 'LOCK')) {
      words.symbol('=');
      words.identifier();
    } else return {};
  }
}
