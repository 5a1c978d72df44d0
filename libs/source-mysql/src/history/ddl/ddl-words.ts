import { SqlWords } from '../../stream/sql-words.ts';

/** Why the effect of a statement on a definition is not surely known. Caught by whoever asked for it. */
export class Undecided extends Error {}

/** A cursor that gives up where a statement goes on otherwise than it knows. */
export class DdlWords extends SqlWords {
  /** A name, quoted or not. */
  identifier(): string {
    const token = this.token();
    if (token === undefined || (token.kind !== 'word' && token.kind !== 'name')) {
      throw this.unknown();
    }
    this.skip();
    return token.text;
  }

  /** Text of a literal; neighbouring ones are one. A charset's introducer in front changes its meaning: not known. */
  string(): string {
    if (!this.isString()) throw this.unknown();
    let text = '';
    while (this.isString()) {
      text += this.token()?.text;
      this.skip();
    }
    return text;
  }

  isString(): boolean {
    return this.token()?.kind === 'string';
  }

  isSymbol(text: string, ahead = 0): boolean {
    const token = this.token(ahead);
    return token?.kind === 'symbol' && token.text === text;
  }

  number(): number {
    const token = this.token();
    if (token?.kind !== 'word' || !/^\d+$/.test(token.text)) throw this.unknown();
    this.skip();
    return Number(token.text);
  }

  expectSymbol(text: string): void {
    if (!this.symbol(text)) throw this.unknown();
  }

  expect(...words: readonly string[]): void {
    if (!this.take(...words)) throw this.unknown();
  }

  /** One of several phrases, each of words with blanks between. */
  takeAny(...phrases: readonly string[]): boolean {
    return phrases.some((phrase) => this.take(...phrase.split(' ')));
  }

  /** Over what is in parentheses, with what is nested in it. */
  skipParens(): void {
    this.expectSymbol('(');
    for (let depth = 1; depth > 0; this.skip()) {
      if (this.done) throw this.unknown();
      if (this.isSymbol('(')) depth += 1;
      else if (this.isSymbol(')')) depth -= 1;
    }
  }

  /** `(n)` or `(n, m)` where it is there. */
  numbers(most: number): number[] {
    if (!this.symbol('(')) return [];
    const found = [this.number()];
    while (this.symbol(',')) found.push(this.number());
    this.expectSymbol(')');
    if (found.length > most) throw this.unknown();
    return found;
  }

  unknown(): Undecided {
    const token = this.token();
    return new Undecided(token === undefined ? 'it ends unexpectedly' : `near '${token.text}' it is not understood`);
  }
}
