/** Events of the log as the connection hands them over: whoever reads the socket, the rest of the room sees these. */
import type { BinlogPosition } from '@mysync/core';
import { EVENT } from './column-types.ts';

/** The largest event that a server can make: its limit of max_allowed_packet (1 GiB), and what stands around it. */
export const MOST_EVENT_BYTES = (1 << 30) + (16 << 20);

/** What an event means where it is no row data. */
export type ControlEvent =
  | { readonly kind: 'rotate'; readonly file: string; readonly offset: number }
  | {
      readonly kind: 'query';
      readonly database: string;
      /** Read as UTF-8. */
      readonly statement: string;
      /** The statement's bytes, where it is not ASCII: they are in the charset of the client (`readQueryContext`). Valid while the event is. */
      readonly bytes: Buffer | null;
    }
  | {
      readonly kind: 'gtid';
      /** '' for an anonymous transaction. */
      readonly gtid: string;
      /** 0 when the event does not tell. */
      readonly commitTimeMicros: number;
    }
  | {
      readonly kind: 'mariadb-gtid';
      readonly gtid: string;
      /** The group is the one statement that follows; otherwise it replaces BEGIN. */
      readonly standalone: boolean;
      readonly preparedXa: boolean;
      /** The statement that follows changed nothing: an ALTER of two phases that begins, or that was given up (binlog_alter_two_phase). */
      readonly idle: boolean;
      /** Of the XA transaction that is prepared or ended; '' for all others. */
      readonly xid: string;
    }
  | { readonly kind: 'gtid-set'; readonly gtidSet: string }
  | { readonly kind: 'xid' }
  | { readonly kind: 'xa-prepare'; readonly onePhase: boolean; readonly xid: string }
  /** Offset 0 when only the header tells (its low 32 bits). */
  | { readonly kind: 'heartbeat'; readonly file: string; readonly offset: number }
  | { readonly kind: 'incident'; readonly number: number; readonly text: string }
  | { readonly kind: 'none' };

export interface LogEvent {
  /** Type code. */
  readonly type: number;
  /** Seconds since 1970; 0 on events that the server made up for us. */
  readonly seconds: number;
  readonly flags: number;
  /** Bytes in the log, checksum included. */
  readonly length: number;
  /** Low 32 bits of the offset behind the event; 0 when the event does not tell. */
  readonly nextOffset: number;
  /** The event's body without header and checksum is `buffer[start, end)`. */
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  readonly control: ControlEvent;
  /**
   * Where it stands in the log, when it was taken out of another event or was held back: then it does not move the place of
   * reading, and `length` and `nextOffset` mean nothing.
   */
  readonly place: BinlogPosition | undefined;
}

/** Event header flags (MySQL, binlog_event.h). */
export const EVENT_FLAG = {
  /** Made up by the server for this connection: not in the log. */
  ARTIFICIAL: 0x20,
  /** A reader that does not know the type may skip it. */
  IGNORABLE: 0x80,
} as const;

/**
 * The event was made up by the server for this connection and does not stand in the log: it moves no place. So is the format description with which
 * reading inside of a file begins, which tells no offset (MySQL, sql/rpl_binlog_sender.cc; MariaDB, sql/sql_repl.cc).
 */
export function isMadeUp(event: LogEvent): boolean {
  const { type, flags, nextOffset } = event;
  return (
    (flags & EVENT_FLAG.ARTIFICIAL) !== 0 ||
    type === EVENT.HEARTBEAT ||
    type === EVENT.HEARTBEAT_V2 ||
    (type === EVENT.FORMAT_DESCRIPTION && nextOffset === 0)
  );
}

/** A connection that delivers the log from one position on. */
export interface LogConnection {
  /** The next event that has arrived, in order; undefined when there is none. It is valid until the next call, and so are its bytes. Resumes the socket when less waits than half of its limit. */
  next(): LogEvent | undefined;
  /** Resolves when there may be a next one. Rejects when the connection ended (after the last one) or went silent. */
  wait(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
