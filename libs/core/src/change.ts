/** What happens to rows, and the numbers that every message carries (design: delivery). */

export type Operation =
  | 'insert'
  | 'update'
  | 'delete'
  | 'read'
  | 'withheld'
  | 'sweep'
  | 'truncate'
  | 'ddl'
  | 'heartbeat'
  | 'fence';

/**
 * The numbers of a message. All but `version` fit a JavaScript number: epochs and generations are 32 bits, sequences
 * and offsets stay below 2^53 (at a million messages a second that lasts 285 years).
 */
export interface Delivery {
  /** Rises with every reader start. */
  readonly epoch: number;
  /** Rises when the window goes back under new numbers. */
  readonly generation: number;
  /** First sequence of this generation in this partition. */
  readonly base: number;
  /** Contiguous per partition, from 1, continued across epochs. 0 on a fence: it has none. */
  readonly sequence: number;
  /** Place of the change in the source's order: transaction counter × 2^20 + ordinal. 63 bits. */
  readonly version: bigint;
}

/** Names a change where a position cannot: the transaction, and the number of the captured change within it. */
export interface ChangeId {
  /** Where the transaction begins: the same on every re-read of the same server. */
  readonly file: string;
  readonly offset: number;
  /** GTID, or '' where GTIDs are off. */
  readonly gtid: string;
  /** From 1 in log order over captured rows; 0 for a snapshot row and before the first change. */
  readonly ordinal: number;
}

/** Before the first change: of snapshot rows, and of partitions into which nothing was put. */
export const NO_CHANGE: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };

/** Bits of a version that hold the ordinal. */
export const ORDINAL_BITS = 20;

export function changeVersion(transactionCounter: number, ordinal: number): bigint {
  return (BigInt(transactionCounter) << BigInt(ORDINAL_BITS)) + BigInt(ordinal);
}

/** The counter of the transaction after one that held `ordinals` changes: by more than one past 2^20 rows. */
export function nextTransactionCounter(counter: number, ordinals: number): number {
  return counter + 1 + Math.floor(ordinals / 2 ** ORDINAL_BITS);
}
