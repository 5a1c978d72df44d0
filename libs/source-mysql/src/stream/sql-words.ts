import type { TableRef } from '@mysync/core';
import type { SqlToken } from './sql-tokens.ts';

/** Reserved words of both flavours that a statement on rows is made of: no table has such a name without quotes. */
const RESERVED = new Set(
  'INSERT REPLACE UPDATE DELETE LOAD WITH CALL SELECT INTO FROM SET VALUES WHERE AND OR XOR NOT NULL IS IN LIKE BETWEEN EXISTS ON USING AS JOIN INNER LEFT RIGHT CROSS NATURAL STRAIGHT_JOIN ORDER GROUP BY HAVING LIMIT ASC DESC IGNORE LOW_PRIORITY HIGH_PRIORITY DELAYED DUPLICATE KEY UNION ALL DISTINCT CASE WHEN THEN ELSE INTERVAL DATA INFILE TRUE FALSE DEFAULT FOR TABLE RETURNING REGEXP RLIKE DIV MOD COLLATE BINARY CONVERT'.split(
    ' ',
  ),
);

/** A cursor over the words of a statement. */
export class SqlWords {
  readonly #tokens: readonly SqlToken[];
  readonly #database: string;
  #at = 0;

  constructor(tokens: readonly SqlToken[], database: string) {
    this.#tokens = tokens;
    this.#database = database;
  }

  /** Where the cursor stands: for `back`. */
  get place(): number {
    return this.#at;
  }

  back(place: number): void {
    this.#at = place;
  }

  /** The token so far ahead; undefined past the end. */
  token(ahead = 0): SqlToken | undefined {
    return this.#tokens[this.#at + ahead];
  }

  get done(): boolean {
    return this.#at >= this.#tokens.length;
  }

  peek(): string {
    return this.#tokens[this.#at]?.text.toUpperCase() ?? '';
  }

  is(...words: readonly string[]): boolean {
    return words.every((word, i) => {
      const token = this.#tokens[this.#at + i];
      return token?.kind === 'word' && token.text.toUpperCase() === word;
    });
  }

  take(...words: readonly string[]): boolean {
    const found = this.is(...words);
    if (found) this.#at += words.length;
    return found;
  }

  symbol(text: string): boolean {
    const token = this.#tokens[this.#at];
    const found = token?.kind === 'symbol' && token.text === text;
    if (found) this.#at += 1;
    return found;
  }

  skip(): void {
    this.#at += 1;
  }

  /** Behind the word, when it comes within so many tokens. */
  skipTo(within: number, word: string): boolean {
    for (let i = 0; i <= within && this.#at + i < this.#tokens.length; i += 1) {
      const token = this.#tokens[this.#at + i];
      if (token?.kind === 'word' && token.text.toUpperCase() === word) {
        this.#at += i + 1;
        return true;
      }
    }
    return false;
  }

  /** Whether one of the words is among those that are left. */
  mention(...words: readonly string[]): boolean {
    return this.#tokens.slice(this.#at).some(({ kind, text }) => kind === 'word' && words.includes(text.toUpperCase()));
  }

  /** Whether the word stands before a parenthesis, among those that are left. */
  mentionCall(word: string): boolean {
    return this.#tokens.some(({ kind, text }, at) => {
      const next = this.#tokens[at + 1];
      return (
        at >= this.#at && kind === 'word' && text.toUpperCase() === word && next?.kind === 'symbol' && next.text === '('
      );
    });
  }

  /** The first two words of each clause that is left. */
  clauseHeads(): string[] {
    const heads: string[] = [];
    let depth = 0;
    let begins = true;
    for (let at = this.#at; at < this.#tokens.length; at += 1) {
      const { kind, text } = this.#tokens[at] as SqlToken;
      if (begins) heads.push(`${text} ${this.#tokens[at + 1]?.text ?? ''}`.toUpperCase());
      if (kind === 'symbol' && text === '(') depth += 1;
      if (kind === 'symbol' && text === ')') depth -= 1;
      begins = kind === 'symbol' && text === ',' && depth === 0;
    }
    return heads;
  }

  name(): string {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    return token?.text ?? '';
  }

  table(): TableRef {
    const first = this.name();
    if (!this.symbol('.')) return { database: this.#database, table: first };
    return { database: first, table: this.name() };
  }

  tableList(): TableRef[] {
    const tables = [this.table()];
    while (this.symbol(',')) tables.push(this.table());
    return tables;
  }

  /** Everything that may be a table's name, with and without a database in front. */
  everyTable(): TableRef[] {
    const tables: TableRef[] = [];
    for (const [i, token] of this.#tokens.entries()) {
      if (token.kind !== 'word' && token.kind !== 'name') continue;
      const dot = this.#tokens[i + 1];
      const behind = this.#tokens[i + 2];
      if (dot?.kind === 'symbol' && dot.text === '.' && behind !== undefined) {
        tables.push({ database: token.text, table: behind.text });
      }
      const isReserved = token.kind === 'word' && (RESERVED.has(token.text.toUpperCase()) || /^[\d@]/.test(token.text));
      const isFunction =
        token.kind === 'word' &&
        dot?.kind === 'symbol' &&
        dot.text === '(' &&
        this.#tokens[i - 1]?.text.toUpperCase() !== 'INTO';
      if (!isReserved && !isFunction) tables.push({ database: this.#database, table: token.text });
    }
    return tables;
  }
}
