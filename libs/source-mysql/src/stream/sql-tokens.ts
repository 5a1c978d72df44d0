/**
 * A statement of the log cut into words, as far as needed to see what it does: comments are dropped, the text of
 * version comments (`/*!50100 … *\/`, `/*M! … *\/`) is part of the statement, since the server ran it.
 */
export interface SqlToken {
  /** word: as it stands; name: quoted, the quotes undone; string: a literal; symbol: one character. */
  readonly kind: 'word' | 'name' | 'string' | 'symbol';
  readonly text: string;
}

/** How a session's sql_mode and the server's version have a text read. */
export interface TokenRules {
  /** `"` encloses a name (ANSI_QUOTES); else a string. */
  readonly ansiQuotes: boolean;
  /** `\\` escapes in strings (unless NO_BACKSLASH_ESCAPES). */
  readonly backslashEscapes: boolean;
  /** Whether the server runs the text of a version comment: `mariadb` for `/*M!`, version 0 without a number. */
  runs(mariadb: boolean, version: number): boolean;
}

/** Where the session is not known: names are seen wherever they may stand. */
const ANY_SESSION: TokenRules = { ansiQuotes: true, backslashEscapes: true, runs: () => true };

const WORD = /[\p{L}\p{N}_$@]/u;

export function tokenize(sql: string, rules: TokenRules = ANY_SESSION): SqlToken[] {
  const tokens: SqlToken[] = [];
  let at = 0;
  while (at < sql.length) {
    const character = sql[at] as string;
    const next = sql[at + 1];
    if (/\s/.test(character)) at += 1;
    else if (character === '#' || (character === '-' && next === '-' && /^\s?$/.test(sql[at + 2] ?? '')))
      at = lineEnd(sql, at);
    else if (character === '/' && next === '*') at = comment(sql, at, rules);
    else if (character === '*' && next === '/')
      at += 2; // the end of a version comment
    else if (character === '`' || character === '"' || character === "'") {
      const isName = character === '`' || (character === '"' && rules.ansiQuotes);
      const [text, end] = quoted(sql, at, character, escapes(character, isName, rules), isName);
      tokens.push({ kind: isName ? 'name' : 'string', text });
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

/** In names nothing escapes; a double quote of a session that we do not know may enclose a string as well. */
function escapes(quote: string, isName: boolean, rules: TokenRules): boolean {
  if (quote === '`') return false;
  return rules.backslashEscapes && (!isName || rules === ANY_SESSION);
}

function lineEnd(sql: string, at: number): number {
  const end = sql.indexOf('\n', at);
  return end < 0 ? sql.length : end + 1;
}

/** Where reading goes on: behind the comment, or inside a version comment. */
function comment(sql: string, at: number, rules: TokenRules): number {
  const version = /^\/\*(M?)!(\d{5,6})?/.exec(sql.slice(at, at + 12));
  if (version !== null && rules.runs(version[1] === 'M', Number(version[2] ?? 0))) return at + version[0].length;
  const end = sql.indexOf('*/', at + 2);
  return end < 0 ? sql.length : end + 2;
}

/** A doubled quote stands for itself; a backslash escapes in strings. In what may be a name it is itself, and a quote behind it does not end it. */
function quoted(sql: string, start: number, quote: string, escapes: boolean, isName: boolean): [string, number] {
  let text = '';
  let at = start + 1;
  while (at < sql.length) {
    const character = sql[at] as string;
    if (character === quote) {
      if (sql[at + 1] !== quote) return [text, at + 1];
      at += 1;
    } else if (character === '\\' && escapes) {
      text += isName ? sql.slice(at, at + 2) : escaped(sql[at + 1] ?? '');
      at += 2;
      continue;
    }
    text += character;
    at += 1;
  }
  return [text, at];
}

function escaped(character: string): string {
  return ESCAPES[character] ?? character;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '0': '\0',
  b: '\b',
  n: '\n',
  r: '\r',
  t: '\t',
  Z: '\u001a',
  // kept with their backslash outside of patterns, too
  '%': '\\%',
  _: '\\_',
};
