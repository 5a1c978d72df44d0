/**
 * The source port: committed changes of the captured tables, in commit order, as encoded base messages.
 *
 * A source hands over whole transactions only: nothing of a transaction whose end is not known, nothing that was rolled back
 * (also inside a logged group). What cannot be decoded exactly ends the stream with an error that names the table and position; nothing is skipped.
 */
import type { ChangeId, Finding, MysyncError, RowKey, SourcePosition, TableRef, TableSchema } from '@mysync/core';
import type { EncodedRow } from '@mysync/wire';

/**
 * One record for one partition: a row's change, its delivery numbers still zero. Owned by the receiver, which stamps it in place. The
 * partition is `partitionHash % partitions`; what deletes becomes a tombstone in the log.
 */
export type SourceRow = EncodedRow;

export interface SourceTransaction {
  readonly kind: 'begin';
  /** Ordinal 0: names the transaction. */
  readonly id: ChangeId;
  /** Microseconds since 1970, as exact as the server tells. */
  readonly commitTimeMicros: number;
}

/** A change of a whole table that the log shows as a statement: goes to every partition, in order with the rows. */
export interface SourceTableChange {
  readonly kind: 'truncate' | 'ddl' | 'sweep';
  readonly table: TableRef;
  readonly statement: string;
  readonly ordinal: number;
  /** Rows that stay as they are may look otherwise now: columns, types or the key changed. */
  readonly reshapes?: true;
}

/**
 * Why rows of a table may have changed without row events, or (`partial-row`) with ones that do not tell which, or (`versioning`) with ones that cannot be
 * told from the history of a table.
 */
export type UnseenCause = 'statement' | 'partition' | 'cascade' | 'rename' | 'partial-row' | 'versioning';

/**
 * Rows of a table may have changed in the transaction without row events: only reading the table again, behind the transaction,
 * tells. Comes last in its transaction, once per table and cause; counts as an ordinal, so that the transaction has a version of its own.
 */
export interface SourceUnseenChange {
  readonly kind: 'unseen';
  readonly table: TableRef;
  readonly cause: UnseenCause;
  /** The first one that did it; '' where none is at hand. */
  readonly statement: string;
  readonly ordinal: number;
}

export interface SourceCommit {
  readonly kind: 'commit';
  /** Where reading resumes once every message of the transaction is acked. */
  readonly position: SourcePosition;
  readonly ordinals: number;
}

/** Nothing for us, but the position moved (other tables, heartbeats of the server, rotation). */
export interface SourceKeepalive {
  readonly kind: 'keepalive';
  readonly position: SourcePosition;
  /** Time of the last event read, in microseconds; 0 when unknown. */
  readonly timeMicros: number;
}

export type SourceItem =
  | SourceTransaction
  | SourceRow
  | SourceTableChange
  | SourceUnseenChange
  | SourceCommit
  | SourceKeepalive;

export interface SnapshotProgress {
  readonly table: TableRef;
  readonly rows: number;
  /** The server's estimate; 0 when unknown. */
  readonly estimatedRows: number;
  readonly done: boolean;
}

export interface Snapshot {
  /** The point in the log that the rows are of: reading the log goes on from here. */
  readonly position: SourcePosition;
  readonly serverUuid: string;
  readonly tables: readonly TableRef[];
  /** Of those asked for with `only`: the server says that there is none. */
  readonly gone: readonly TableRef[];
  /**
   * Rows (`row` items, ordinal 0, their change named by `position`) of all tables in bounded memory, a `sweep` item after each table; last, a `truncate` of each that is gone. Pulling the next batch takes over the last.
   */
  readonly items: AsyncIterable<readonly SourceItem[]>;
  close(): Promise<void>;
}

/** Rows of one table as they are now, as `read` messages (ordinal 0): for comparing and mending, beside the stream. */
export interface TableReader {
  readonly table: TableRef;
  readonly schema: TableSchema;
  /** The server's guess; 0 when unknown. */
  readonly estimatedRows: number;
  /**
   * The whole table, in key order where its key can be cut, and then `after` a key only. Rows that come or go meanwhile may be in it or not; every
   * row that stays is, once. Throws SOURCE_SNAPSHOT_RESTART when DDL changes the table meanwhile.
   */
  chunks(after?: RowKey): AsyncIterable<readonly SourceRow[]>;
  /** Its key can be cut: chunks can go on after a key. */
  readonly isCut: boolean;
  /** Those of the rows with these keys that are there; not older than any position told before. */
  rows(keys: readonly RowKey[]): Promise<readonly SourceRow[]>;
  close(): Promise<void>;
}

export interface ServerIdentity {
  readonly uuid: string;
  readonly flavor: 'mysql' | 'mariadb';
  readonly version: string;
}

/** What a start would ask of the server, besides what every start asks. */
export interface StartIntent {
  /** A snapshot would be taken: what refuses one is an error. */
  readonly snapshot: boolean;
  /** Where reading would go on; `serverUuid` that of the checkpoint, null without one: on whichever server answers. */
  readonly resume: { readonly position: SourcePosition; readonly serverUuid: string | null } | null;
}

export interface SnapshotOptions {
  /**
   * Only these, as far as they are there; they keep their definitions until they are read (DDL on them waits meanwhile), and somebody's long transaction
   * is waited for but shortly (SOURCE_SNAPSHOT_RESTART). Left out: all captured tables, and none is an error.
   */
  readonly only?: readonly TableRef[];
  onProgress(progress: SnapshotProgress): void;
  readonly signal: AbortSignal;
}

/** Told how a stream fares with its server. It goes on by itself; but who looks at it must learn that nothing is read. Must not throw. */
export interface StreamObserver {
  /** The log is not read for now: the connection was lost, or could not be made again. `heardMs`: monotonic time at which the server was last heard on it, where it was. */
  brokeOff(error: MysyncError, heardMs: number | undefined): void;
  /** The server sends its log, for the first time or again. */
  reads(): void;
}

export interface StreamOptions {
  readonly from: SourcePosition;
  readonly signal: AbortSignal;
  readonly observer?: StreamObserver;
  /**
   * Tables that the consumer may hold rows of, also such as are no longer there: a statement that drops their database does not name
   * them. Those that are there when the stream begins need not be among them.
   */
  readonly knownTables?: readonly TableRef[];
}

/**
 * What became of a table that was captured once: `left` the configuration captures it no more, `there` it is there, or something else of its name is; `gone`
 * the server says that there is none; `uncertain` neither is known.
 */
export type TableFate =
  | { readonly table: TableRef; readonly fate: 'left' | 'there' | 'gone' }
  | { readonly table: TableRef; readonly fate: 'uncertain'; readonly error: MysyncError };

export interface BinlogSource {
  /**
   * Everything the doctor looks at; never throws for a finding (but for unreachable hosts and wrong credentials). Without an intent
   * nothing is said of positions, and a snapshot that would be refused is a warning.
   */
  check(intent?: StartIntent): Promise<readonly Finding[]>;

  /**
   * Connects to the first host that answers. Throws the first finding of level error as a catalogue error. `resumes`: reading goes on from a
   * checkpoint, so that the log is wanted also while no captured table is there.
   */
  identify(options?: { readonly resumes?: boolean }): Promise<ServerIdentity>;

  /** The captured tables as they are now, for checking mappings. Tables that cannot be captured are left out. */
  tableSchemas(): Promise<readonly TableSchema[]>;

  /** A table that is only hidden from the user is never taken for one that is gone. */
  fates(tables: readonly TableRef[]): Promise<readonly TableFate[]>;

  /** The newest position of the log, for `start: latest` and for the backlog. */
  currentPosition(): Promise<SourcePosition>;

  /** The position of the oldest event still there, for `start: earliest`. */
  earliestPosition(): Promise<SourcePosition>;

  /** One table as it is now; throws where its rows cannot be read exactly. */
  openTable(options: { table: TableRef; chunkRows: number; signal: AbortSignal }): Promise<TableReader>;

  /** Reads captured tables consistently at one position. `onProgress` is called a few times a second. */
  snapshot(options: SnapshotOptions): Promise<Snapshot>;

  /**
   * Follows the log from a transaction boundary; with '' as its file, behind its GTID set. Pulling the next batch takes over the last; while nothing is pulled the
   * socket is paused and memory stays bounded. Reconnects by itself after a lost connection (to the same server: another UUID is
   * an error), resuming at the last transaction boundary handed over. Throws on anything that cannot be read exactly.
   */
  stream(options: StreamOptions): AsyncIterable<readonly SourceItem[]>;

  /** A checkpoint of this place is stored: reading never begins before it any more, what was kept for that may be dropped. */
  settled(position: SourcePosition): Promise<void>;

  close(): Promise<void>;
}
