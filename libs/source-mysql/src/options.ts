import { tmpdir } from 'node:os';
import type { SchemaHistoryStore } from '@mysync/checkpoint';
import { type Clock, type Logger, silentLogger, systemClock, type TableRef } from '@mysync/core';
import { Admission } from './server/admission.ts';

export interface HostAddress {
  readonly host: string;
  readonly port: number;
}

/** TLS towards the server; undefined fields are Node's defaults. */
export interface SourceTls {
  /** PEM text. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** false accepts any certificate. */
  readonly verify?: boolean;
  /** false accepts a certificate of the authorities for whatever name. */
  readonly verifyName?: boolean;
}

export interface TableRule {
  /** What to do with a table that has neither a primary key nor a NOT NULL unique key. */
  readonly noKey: 'row-hash' | 'refuse';
  /** Columns whose values choose the partition; the key's columns when omitted. */
  readonly partitionBy?: readonly string[];
  /** A row that the log does not hold whole (binlog_row_image is not FULL): read it again (default), or halt. */
  readonly onPartialRow?: 'reread' | 'halt';
}

/** Told of what is worth counting. */
export interface SourceObserver {
  /** Rows of a table that the log did not hold whole were read again. */
  rowsReread?(table: TableRef, rows: number): void;
}

export interface MysqlSourceOptions {
  /** Name of the source, as every message carries it. */
  readonly name: string;
  /** Tried in order. */
  readonly hosts: readonly HostAddress[];
  readonly user: string;
  readonly password: string;
  readonly tls?: SourceTls;
  /** Our id as a replica. Default: a random one that no connected replica uses. */
  readonly serverId?: number;
  captures(ref: TableRef): boolean;
  tableRule(ref: TableRef): TableRule;
  /** The server sends something at least this often; three times this without a byte and the connection is replaced. Default 2000. */
  readonly heartbeatMs?: number;
  /** Default 10000. */
  readonly connectionTimeoutMs?: number;
  /** Received and not yet decoded bytes of the log at which the socket is paused. Default 8 MiB. */
  readonly queueBytes?: number;
  /** Encoded bytes of one open transaction that stay in memory; beyond, it goes to a file. Default 16 MiB. */
  readonly spoolBytes?: number;
  /** Default: the system's folder for temporary files. */
  readonly spoolFolder?: string;
  /**
   * What table maps without full metadata (binlog_row_metadata other than FULL) are: an error ('full', default), or read with the
   * schema history. With full metadata the table map itself is the truth, in either case, but for MariaDB's UUID, INET4 and INET6, which no map tells.
   */
  readonly rowMetadata?: 'full' | 'history';
  /** Where definitions by position, open questions and their answers are kept. 'history' cannot stream without it; what 'full' needs of it on MariaDB then lives as long as the stream. */
  readonly schemaHistory?: SchemaHistoryStore;
  readonly observer?: SourceObserver;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/** The options with every default filled in. */
export interface ResolvedOptions extends Omit<MysqlSourceOptions, 'tls' | 'serverId'> {
  readonly tls: SourceTls | undefined;
  readonly serverId: number | undefined;
  readonly heartbeatMs: number;
  readonly connectionTimeoutMs: number;
  readonly queueBytes: number;
  readonly spoolBytes: number;
  readonly spoolFolder: string;
  readonly rowMetadata: 'full' | 'history';
  readonly observer: SourceObserver;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: Admission;
}

export function resolveOptions(options: MysqlSourceOptions): ResolvedOptions {
  return {
    ...options,
    tls: options.tls,
    serverId: options.serverId,
    heartbeatMs: options.heartbeatMs ?? 2000,
    connectionTimeoutMs: options.connectionTimeoutMs ?? 10_000,
    queueBytes: options.queueBytes ?? 8 << 20,
    spoolBytes: options.spoolBytes ?? 16 << 20,
    spoolFolder: options.spoolFolder ?? tmpdir(),
    rowMetadata: options.rowMetadata ?? 'full',
    observer: options.observer ?? {},
    clock: options.clock ?? systemClock,
    admission: new Admission(),
    logger: (options.logger ?? silentLogger).child({ component: 'source', source: options.name }),
  };
}
