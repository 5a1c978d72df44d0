/**
 * A statement of the log cut into words, as far as needed to see what it does: comments are dropped, the text of
 * version comments (`/*!50100 … *\/`, `/*M! … *\/`) is part of the statement, since the server ran it.
 */
export interface SqlToken {
  /** word: as it stands; name: quoted, the quotes undone; string: a literal; symbol: one character. */
  readonly kind: 'word' | 'name' | 'string' | 'symbol';
  readonly text: string;
}

const WORD = /[\p{L}\p{N}_$@]/u;

export function tokenize(sql: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  let at = 0;
  while (at < sql.length) {
    const character = sql[at] as string;
    const next = sql[at + 1];
    if (/\s/.test(character)) at += 1;
    else if (character === '#' || (character === '-' && next === '-' && /^\s?$/.test(sql[at + 2] ?? '')))
      at = lineEnd(sql, at);
    else if (character === '/' && next === '*') at = comment(sql, at);
    else if (character === '*' && next === '/')
      at += 2; // the end of a version comment
    else if (character === '`' || character === '"' || character === "'") {
      const [text, end] = quoted(sql, at, character);
      tokens.push({ kind: character === '`' ? 'name' : character === '"' ? 'name' : 'string', text });
      at = end;
    } else if (WORD.test(character) || character > '\u007f') {
      let end = at + 1;
      while (end < sql.length && (WORD.test(sql[end] as string) || (sql[end] as string) > '\u007f')) end += 1;
      tokens.push({ kind: 'word', text: sql.slice(at, end) });
      at = end;
    } else {
      tokens.push({ kind: 'symbol', text: character });
      at += 1;
    }
  }
  return tokens;
}

function lineEnd(sql: string, at: number): number {
  const end = sql.indexOf('\n', at);
  return end < 0 ? sql.length : end + 1;
}

/** Where reading goes on: behind the comment, or inside a version comment. */
function comment(sql: string, at: number): number {
  const version = /^\/\*M?!\d*/.exec(sql.slice(at, at + 12));
  if (version !== null) return at + version[0].length;
  const end = sql.indexOf('*/', at + 2);
  return end < 0 ? sql.length : end + 2;
}

/** A doubled quote stands for itself; a backslash escapes in strings, not in back-ticked names. */
function quoted(sql: string, start: number, quote: string): [string, number] {
  let text = '';
  let at = start + 1;
  while (at < sql.length) {
    const character = sql[at] as string;
    if (character === quote) {
      if (sql[at + 1] !== quote) return [text, at + 1];
      at += 1;
    } else if (character === '\\' && quote !== '`') {
      at += 1;
      text += sql[at] ?? '';
      at += 1;
      continue;
    }
    text += character;
    at += 1;
  }
  return [text, at];
}
