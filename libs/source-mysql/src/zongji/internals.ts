/**
 * The inner parts of @vlasky/zongji 0.9.0 that the adapter hooks into. The version is pinned exactly; a test starts a real stream,
 * so an update that moves one of these cannot pass unnoticed.
 */
import type { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';

/** A packet of mysql2: valid during the call only. */
export interface Packet {
  readonly buffer: Buffer;
  readonly offset: number;
  end: number;
}

interface DumpCommandClass {
  readonly prototype: {
    binlogData(packet: Packet, connection: unknown): unknown;
  };
}

interface ClientConnection extends EventEmitter {
  readonly stream: Readable;
  query(sql: string, done: (error: Error | null) => void): void;
  addCommand(command: object): void;
}

/** What zongji emits as 'binlog'; which fields there are depends on the type. */
export interface ZongjiEvent {
  getTypeName(): string;
  readonly binlogName: string;
  readonly position: number | string;
  readonly query: string;
  readonly schema: string;
  readonly gtid: string;
  readonly gtidSet: string;
  readonly gtids: readonly { readonly gtid: string }[];
  readonly standalone: boolean;
  readonly preparedXa: boolean;
  readonly onePhase: boolean;
}

export interface ZongjiInternals extends EventEmitter {
  readonly connection: ClientConnection | null;
  /** Made for each start, just before 'ready'. */
  readonly BinlogClass: DumpCommandClass;
  /** Runs before the dump request; the answer says whether zongji is to expect checksums. */
  _isChecksumEnabled: (done: (error: unknown, enabled: boolean) => void) => void;
  start(options: { serverId: number; filename: string; position: number }): void;
  stop(): void;
}
