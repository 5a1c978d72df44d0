import { type ChangeId, type TableRef, tableRefKey } from '@mysync/core';
import { encodeTransaction, type TransactionBlock, type TransactionOptions } from '@mysync/wire';
import type { SourceItem, SourceUnseenChange, UnseenCause } from '../port.ts';
import type { RowsOwner } from './mapped-rows.ts';

/** Characters of a statement that are kept for whoever is told of it. */
const STATEMENT_LENGTH = 300;

export interface OpenTransactionOptions extends TransactionOptions, Pick<OpenTransaction, 'standalone' | 'inBlock'> {}

/** The transaction under way, but for its rows. */
export class OpenTransaction implements RowsOwner {
  readonly id: ChangeId;
  readonly commitTimeMicros: number;
  /** The one statement that follows is the whole of it. */
  readonly standalone: boolean;
  /** BEGIN was seen, or is implied. */
  inBlock: boolean;
  isXa = false;
  /** Its statement changes nothing. */
  isIdle = false;
  ordinals = 0;
  readonly #options: OpenTransactionOptions;
  #block: TransactionBlock | undefined;
  /** By table and cause; made when there is one. */
  #unseen: Map<string, Omit<SourceUnseenChange, 'ordinal'>> | undefined;

  constructor(options: OpenTransactionOptions) {
    this.#options = options;
    this.id = options.id;
    this.commitTimeMicros = options.commitTimeMicros;
    this.standalone = options.standalone;
    this.inBlock = options.inBlock;
  }

  /** What its messages share; made for the first of them. */
  get block(): TransactionBlock {
    this.#block ??= encodeTransaction(this.#options);
    return this.#block;
  }

  get hasUnseen(): boolean {
    return this.#unseen !== undefined;
  }

  unseen(table: TableRef, cause: UnseenCause, statement = ''): void {
    this.#unseen ??= new Map();
    const key = `${tableRefKey(table)}\0${cause}`;
    if (this.#unseen.has(key)) return;
    const short = statement.length > STATEMENT_LENGTH ? `${statement.slice(0, STATEMENT_LENGTH)}…` : statement;
    this.#unseen.set(key, { kind: 'unseen', table, cause, statement: short });
  }

  /** Appends what was noted, with the ordinals that follow. */
  tellUnseen(items: SourceItem[]): void {
    if (this.#unseen === undefined) return;
    for (const unseen of this.#unseen.values()) {
      this.ordinals += 1;
      items.push({ ...unseen, ordinal: this.ordinals });
    }
  }
}
