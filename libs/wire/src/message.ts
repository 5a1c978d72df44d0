import type { ChangeId, ColumnValue, Delivery, TableRef, TableSchema } from '@mysync/core';
import type { RowOperation } from './row-encoder.ts';

/** Where a change comes from. */
export interface MessageSource {
  /** Name of the source in the configuration. */
  readonly name: string;
  readonly serverUuid: string;
  /** Microseconds since 1970; 0 when unknown. */
  readonly commitTimeMicros: number;
  /** Names the change. */
  readonly change: ChangeId;
  /** Of the event that holds the row; 0 where there is none. */
  readonly eventFile: string;
  readonly eventOffset: number;
}

interface MessageBase {
  readonly delivery: Delivery;
  readonly source: MessageSource;
  readonly lastInTransaction: boolean;
}

export interface RowMessage extends MessageBase {
  /** `withheld`: the row changed and is larger than the log takes; the record's key names it, and there are no images. */
  readonly operation: RowOperation | 'withheld';
  readonly schema: TableSchema;
  /** In the order of `schema.columns`; of updates and deletes. Bytes are views into the payload. */
  readonly before: readonly ColumnValue[] | null;
  /** Of inserts, updates and reads. */
  readonly after: readonly ColumnValue[] | null;
}

export interface TableMessage extends MessageBase {
  readonly operation: 'truncate' | 'ddl' | 'sweep';
  readonly table: TableRef;
  readonly statement: string;
}

export interface ControlMessage extends MessageBase {
  readonly operation: 'heartbeat' | 'fence';
}

/** A decoded message: what it has beside delivery and source follows from its operation. */
export type BaseMessage = RowMessage | TableMessage | ControlMessage;
