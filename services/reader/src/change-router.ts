import type { CounterFloor } from '@mysync/checkpoint';
import { type BinlogPosition, type ChangeId, compareBinlogPositions, nextTransactionCounter } from '@mysync/core';
import type { SourceItem, SourceRow, SourceTableChange } from '@mysync/source-mysql';
import {
  type EncodedControl,
  type EncodedRow,
  encodeTableMessage,
  encodeTransaction,
  type TransactionBlock,
} from '@mysync/wire';

/** A transaction as its messages are published: one for all of them. */
export interface RoutedTransaction {
  readonly id: ChangeId;
  readonly commitTimeMicros: number;
  /** Its place among all transactions: the high part of its messages' versions. */
  readonly counter: number;
}

/** What enters the ack window of a partition. */
export interface WindowEntry {
  /** A smaller one takes its place when the transport refuses it for its size. */
  message: EncodedRow | EncodedControl;
  readonly transaction: RoutedTransaction;
  /** Of the change that the message names. */
  readonly ordinal: number;
  /** The low part of its version. */
  readonly versionOrdinal: number;
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
  /** Places from which on the counter is at least so high, in the order of the log. */
  readonly floors?: readonly CounterFloor[];
  /** Per partition; null where nothing beyond the checkpoint was found. */
  readonly frontiers: readonly (Frontier | null)[];
}

/**
 * Decides for each item of the source where it goes and under which version, and drops what recovery found published.
 *
 * 1. A version is a function of the checkpoint's counter and floors and the log's content alone: reading again gives the same.
 * 2. A change is dropped only when its partition's frontier names the same transaction and an equal or later ordinal, or a
 *    later transaction (same server, so positions compare).
 * 3. Rows of a view are never dropped: their version lies above that of everything before the view's place and below that of everything
 *    behind it, and uses no counter up.
 */
export class ChangeRouter {
  readonly #options: RouterOptions;
  readonly #frontiers: (Frontier | null)[];
  #waiting: number;
  #floors: readonly CounterFloor[];
  #counter: number;
  #transaction: RoutedTransaction | null = null;
  /** Of a transaction that changed a table. */
  #block: TransactionBlock | null = null;
  /** The open transaction is a view. */
  #inView = false;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#counter = options.transactionCounter;
    this.#floors = options.floors ?? [];
    this.#frontiers = [...options.frontiers];
    this.#waiting = this.#frontiers.filter((frontier) => frontier !== null).length;
  }

  /** The newest change found published that reading has not come to yet; null when there is none. */
  get ahead(): ChangeId | null {
    let newest: ChangeId | null = null;
    for (const frontier of this.#frontiers) {
      if (frontier === null) continue;
      if (newest === null || isLater(frontier.change, newest)) newest = frontier.change;
    }
    return newest;
  }

  /** Counter of the transaction that is open, else of the last one. */
  get transactionCounter(): number {
    return this.#counter;
  }

  /** The transaction that is open. */
  get openTransaction(): ChangeId {
    return this.#open().id;
  }

  /** Reading stands there, between transactions. */
  passTo(place: BinlogPosition): void {
    if (this.#floors.length > 0) this.#passFloors(place);
  }

  begin(item: SourceItem & { kind: 'begin' }): void {
    this.passTo(item.id);
    this.#counter += 1;
    this.#beginAs(item.id, item.commitTimeMicros);
    if (this.#waiting > 0) this.#passFrontiers(item.id);
  }

  /**
   * Rows of tables as of a place that reading has come to follow, until `endView`. With the ordinal 0 their version is the one just before
   * that of the next transaction's first change.
   */
  beginView(place: BinlogPosition, commitTimeMicros: number): void {
    this.passTo(place);
    const id = { file: place.file, offset: place.offset, gtid: '', ordinal: 0 };
    this.#transaction = { id, commitTimeMicros, counter: this.#counter + 1 };
    this.#block = null;
    this.#inView = true;
  }

  endView(): void {
    this.#inView = false;
    this.#transaction = null;
  }

  /** The partition of a row, or -1 when recovery found it published. */
  route(row: SourceRow): number {
    const partition = row.partitionHash % this.#options.partitions;
    return this.#waiting > 0 && this.#published(partition, row.ordinal) ? -1 : partition;
  }

  rowEntry(row: SourceRow): WindowEntry {
    return this.#entry(row, row.ordinal);
  }

  /** One entry per partition of a change of a whole table; null where it is already published. */
  tableEntries(item: SourceTableChange): (WindowEntry | null)[] {
    const transaction = this.#tableBlock();
    return this.#frontiers.map((_, partition) => {
      if (this.#waiting > 0 && this.#published(partition, item.ordinal)) return null;
      const { table, statement, ordinal } = item;
      const message = encodeTableMessage({ operation: item.kind, transaction, table, statement, ordinal });
      return this.#entry(message, ordinal);
    });
  }

  /** The counter after the transaction: what the checkpoint at its end holds. */
  commit(item: { readonly ordinals: number }): number {
    this.#counter = nextTransactionCounter(this.#counter, item.ordinals) - 1;
    this.#transaction = null;
    return this.#counter;
  }

  #beginAs(id: ChangeId, commitTimeMicros: number): void {
    this.#transaction = { id, commitTimeMicros, counter: this.#counter };
    this.#block = null;
  }

  #entry(message: EncodedRow | EncodedControl, ordinal: number): WindowEntry {
    return { message, transaction: this.#open(), ordinal, versionOrdinal: ordinal };
  }

  #open(): RoutedTransaction {
    if (this.#transaction === null) throw new Error('a change outside of a transaction');
    return this.#transaction;
  }

  #tableBlock(): TransactionBlock {
    const { source, serverUuid } = this.#options;
    const { id, commitTimeMicros } = this.#open();
    this.#block ??= encodeTransaction({ source, serverUuid, id, commitTimeMicros });
    return this.#block;
  }

  #passFloors(place: BinlogPosition): void {
    const passed = this.#floors.filter((floor) => compareBinlogPositions(floor, place) <= 0);
    this.#counter = Math.max(this.#counter, ...passed.map((floor) => floor.transactionCounter));
    this.#floors = this.#floors.filter((floor) => !passed.includes(floor));
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
    if (this.#inView || frontier === undefined || frontier === null) return false;
    const { id } = this.#open();
    // passed frontiers are forgotten at begin, so this one lies in this transaction or in a later one
    if (compareBinlogPositions(frontier.change, id) > 0) return true;
    return !frontier.whole && ordinal <= frontier.change.ordinal;
  }
}

function isLater(a: ChangeId, b: ChangeId): boolean {
  const distance = compareBinlogPositions(a, b);
  return distance > 0 || (distance === 0 && a.ordinal > b.ordinal);
}
