import {
  type BinlogPosition,
  type ChangeId,
  compareBinlogPositions,
  NO_CHANGE,
  nextTransactionCounter,
} from '@mysync/core';
import type { SourceItem, SourceRow, SourceTableChange } from '@mysync/source-mysql';
import { encodeTableMessage, encodeTransaction, type TransactionBlock } from '@mysync/wire';

/** What enters the ack window of a partition. */
export interface WindowEntry {
  readonly key: Uint8Array;
  readonly payload: Uint8Array;
  readonly deletes: boolean;
  readonly transactionCounter: number;
  readonly ordinal: number;
  readonly change: ChangeId;
  readonly commitTimeMicros: number;
}

/** How far a partition's log already holds what the source is about to be read again from. */
export interface Frontier {
  /** The change of the newest effective message in the partition. */
  readonly change: ChangeId;
  /**
   * It was published before the version counter jumped: its ordinals may be those of another configuration, so its transaction goes again
   * whole.
   */
  readonly whole: boolean;
}

export interface RouterOptions {
  readonly source: string;
  readonly serverUuid: string;
  readonly partitions: number;
  /** Counter of the last transaction before the position that reading begins at. */
  readonly transactionCounter: number;
  /** Per partition; null where nothing beyond the checkpoint was found. */
  readonly frontiers: readonly (Frontier | null)[];
}

/**
 * Decides for each item of the source where it goes and under which version, and drops what recovery found published.
 *
 * 1. A version is a function of the checkpoint's counter and the log's content alone: reading again gives the same.
 * 2. A change is dropped only when its partition's frontier names the same transaction and an equal or later ordinal, or a
 *    later transaction (same server, so positions compare).
 */
export class ChangeRouter {
  readonly #options: RouterOptions;
  readonly #frontiers: (Frontier | null)[];
  #waiting: number;
  #counter: number;
  #transaction: { id: ChangeId; commitTimeMicros: number; block: TransactionBlock } | null = null;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#counter = options.transactionCounter;
    this.#frontiers = [...options.frontiers];
    this.#waiting = this.#frontiers.filter((frontier) => frontier !== null).length;
  }

  /** Counter of the transaction that is open, else of the last one. */
  get transactionCounter(): number {
    return this.#counter;
  }

  begin(item: SourceItem & { kind: 'begin' }): void {
    this.#counter += 1;
    this.#beginAs(item.id, item.commitTimeMicros);
    if (this.#waiting > 0) this.#passFrontiers(item.id);
  }

  /** Rows of a snapshot follow: their version is the counter as it stands, below that of every later transaction. */
  beginSnapshot(timeMicros: number): void {
    this.#beginAs(NO_CHANGE, timeMicros);
  }

  /** The partition of a row, or -1 when recovery found it published. */
  route(row: SourceRow): number {
    const partition = row.partitionHash % this.#options.partitions;
    return this.#waiting > 0 && this.#published(partition, row.ordinal) ? -1 : partition;
  }

  rowEntry(row: SourceRow): WindowEntry {
    return this.#entry(row.key, row.payload, row.deletes, row.ordinal);
  }

  /** One entry per partition of a change of a whole table; null where it is already published. */
  tableEntries(item: SourceTableChange): (WindowEntry | null)[] {
    const { block } = this.#open();
    return this.#frontiers.map((_, partition) => {
      if (this.#waiting > 0 && this.#published(partition, item.ordinal)) return null;
      const { key, payload } = encodeTableMessage({
        operation: item.kind,
        transaction: block,
        table: item.table,
        statement: item.statement,
        ordinal: item.ordinal,
      });
      return this.#entry(key, payload, false, item.ordinal);
    });
  }

  /** The counter after the transaction: what the checkpoint at its end holds. */
  commit(item: { readonly ordinals: number }): number {
    this.#counter = nextTransactionCounter(this.#counter, item.ordinals) - 1;
    this.#transaction = null;
    return this.#counter;
  }

  #beginAs(id: ChangeId, commitTimeMicros: number): void {
    const { source, serverUuid } = this.#options;
    const block = encodeTransaction({ source, serverUuid, id, commitTimeMicros });
    this.#transaction = { id, commitTimeMicros, block };
  }

  #entry(key: Uint8Array, payload: Uint8Array, deletes: boolean, ordinal: number): WindowEntry {
    const { id, commitTimeMicros } = this.#open();
    return {
      key,
      payload,
      deletes,
      transactionCounter: this.#counter,
      ordinal,
      change: ordinal === 0 ? id : { file: id.file, offset: id.offset, gtid: id.gtid, ordinal },
      commitTimeMicros,
    };
  }

  #open(): { id: ChangeId; commitTimeMicros: number; block: TransactionBlock } {
    if (this.#transaction === null) throw new Error('a change outside of a transaction');
    return this.#transaction;
  }

  /** Forgets the frontiers that lie before the transaction that begins. */
  #passFrontiers(begin: BinlogPosition): void {
    for (const [partition, frontier] of this.#frontiers.entries()) {
      if (frontier !== null && compareBinlogPositions(frontier.change, begin) < 0) {
        this.#frontiers[partition] = null;
        this.#waiting -= 1;
      }
    }
  }

  #published(partition: number, ordinal: number): boolean {
    const frontier = this.#frontiers[partition];
    if (frontier === undefined || frontier === null) return false;
    const { id } = this.#open();
    // passed frontiers are forgotten at begin, so this one lies in this transaction or in a later one
    if (compareBinlogPositions(frontier.change, id) > 0) return true;
    return !frontier.whole && ordinal <= frontier.change.ordinal;
  }
}
