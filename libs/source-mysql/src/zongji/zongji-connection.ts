/**
 * The log over @vlasky/zongji: it logs in, asks for the dump and parses the control events. Table maps and rows
 * are handed over as bytes: zongji's row values are not exact for every type (JSON, YEAR, ENUM, VECTOR, GEOMETRY).
 *
 * 1. Order: events come out of `take` exactly as the server sent them, none is left out.
 * 2. Nothing after a failure: as soon as anything goes wrong (also an event that zongji cannot parse), no later event is queued.
 * 3. Bounded: above `queueBytes` the socket is paused, so at most one read of the socket (64 KiB) or one event is more than that.
 * 4. Checksums are checked and cut off here, as the format description of each file says; zongji, which believes the
 *    server's setting of the moment, is told that there are none.
 * 5. Silence: the server sends a heartbeat each `heartbeatMs`; three times that without a byte while the socket was not paused is a failure.
 */
import { crc32 } from 'node:zlib';
import { type BinlogPosition, type Clock, isMysyncError } from '@mysync/core';
import ZongJi from '@vlasky/zongji';
import { EVENT } from '../binlog/column-types.ts';
import { type ControlEvent, EVENT_FLAG, type LogConnection, type LogEvent } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import type { HostAddress, ResolvedOptions } from '../options.ts';
import { mysqlErrorFields, SERVER_ERRORS } from '../server/mysql-error.ts';
import { connectError, connectionOptions, formatHost } from '../server/session.ts';
import type { Packet, ZongjiEvent, ZongjiInternals } from './internals.ts';
import { RegisterReplica } from './register-replica.ts';

/** Fits any pause of a consumer: the largest value of net_write_timeout that both flavours accept on Linux. */
const YEAR_SECONDS = 31_536_000;
const CHECKSUM_BYTES = 4;
const HEADER_BYTES = 19;
const NONE: ControlEvent = { kind: 'none' };

export interface ZongjiConnectionOptions {
  readonly host: HostAddress;
  readonly credentials: Pick<ResolvedOptions, 'user' | 'password' | 'tls' | 'connectionTimeoutMs'>;
  readonly serverId: number;
  /** How SHOW REPLICAS names us. */
  readonly hostName: string;
  /** Identity towards the server, so that it ends a former connection of ours and of nobody else. */
  readonly replicaUuid: string;
  readonly from: BinlogPosition;
  readonly heartbeatMs: number;
  readonly queueBytes: number;
  readonly clock: Clock;
}

export class ZongjiConnection implements LogConnection {
  readonly #options: ZongjiConnectionOptions;
  readonly #zongji: ZongjiInternals;
  #events: LogEvent[] = [];
  #bytes = 0;
  #paused = false;
  #failure: unknown;
  #closed = false;
  #wake: (() => void) | undefined;
  #lastHeard = 0;
  /** Of the file that is being sent; undefined before its format description. */
  #checksums: boolean | undefined;
  #control: ControlEvent = NONE;

  private constructor(options: ZongjiConnectionOptions) {
    this.#options = options;
    this.#zongji = new ZongJi(
      connectionOptions(options.credentials, options.host) as never,
    ) as unknown as ZongjiInternals;
  }

  /** Resolves when the dump has been asked for. Errors of the dump itself come from `wait`. */
  static async open(options: ZongjiConnectionOptions): Promise<ZongjiConnection> {
    const connection = new ZongjiConnection(options);
    try {
      await connection.#start();
      return connection;
    } catch (error) {
      await connection.close();
      throw isMysyncError(error) ? error : connectError(error, options.host, options.credentials.user);
    }
  }

  take(): readonly LogEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#bytes = 0;
    if (this.#paused) {
      this.#paused = false;
      this.#lastHeard = this.#options.clock.monotonic();
      this.#zongji.connection?.stream.resume();
    }
    return events;
  }

  async wait(signal: AbortSignal): Promise<void> {
    const { clock, heartbeatMs, host } = this.#options;
    const silenceMs = heartbeatMs * 3;
    while (this.#events.length === 0) {
      if (this.#failure !== undefined) throw this.#failure;
      signal.throwIfAborted();
      const left = this.#lastHeard + silenceMs - clock.monotonic();
      if (left <= 0) {
        throw sourceErrors.SOURCE_CONNECTION_LOST({
          message: `${formatHost(host)} sent nothing for ${Math.round(silenceMs / 1000)} s, not even a heartbeat`,
          where: { host: formatHost(host) },
        });
      }
      await this.#news(left, signal);
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#failure ??= new Error('closed');
    this.#wake?.();
    const stopped = new Promise<void>((resolve) => this.#zongji.once('stopped', resolve));
    this.#zongji.stop();
    await stopped;
    this.#zongji.removeAllListeners();
    this.#zongji.on('error', () => undefined);
  }

  /** Until something arrives or fails, the time is over or the signal aborts. */
  async #news(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(finish, ms);
      const self = this;
      function finish(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        self.#wake = undefined;
        resolve();
      }
      this.#wake = finish;
      signal.addEventListener('abort', finish, { once: true });
    });
  }

  async #start(): Promise<void> {
    const zongji = this.#zongji;
    const { serverId, from, clock, host, credentials } = this.#options;
    zongji._isChecksumEnabled = (done) => {
      this.#prepare().then(
        () => done(null, false),
        (error: unknown) => done(error, false),
      );
    };
    zongji.on('binlog', (event: ZongjiEvent) => {
      this.#control = controlOf(event);
    });
    // logging in has a time limit of its own, the questions after it have none
    const limitMs = credentials.connectionTimeoutMs * 2;
    const late = sourceErrors.SOURCE_UNREACHABLE({
      message: `${formatHost(host)} did not begin to send its log within ${limitMs} ms`,
      where: { host: formatHost(host) },
    });
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(late), limitMs);
      zongji.on('error', (error: unknown) => {
        reject(error);
        this.#fail(this.#translate(error));
      });
      zongji.once('ready', () => {
        this.#hook();
        resolve();
      });
      zongji.start({ serverId, filename: from.file, position: from.offset });
    }).finally(() => clearTimeout(timer));
    this.#lastHeard = clock.monotonic();
  }

  /** What the session must know before the dump request. */
  async #prepare(): Promise<void> {
    const { serverId, hostName, replicaUuid, heartbeatMs } = this.#options;
    const connection = this.#zongji.connection;
    if (connection === null) throw new Error('closed');
    const period = heartbeatMs * 1_000_000;
    const settings = [
      '@master_binlog_checksum = @@GLOBAL.binlog_checksum',
      '@source_binlog_checksum = @@GLOBAL.binlog_checksum',
      `@master_heartbeat_period = ${period}`,
      `@source_heartbeat_period = ${period}`,
      `@slave_uuid = '${replicaUuid}'`,
      `@replica_uuid = '${replicaUuid}'`,
      `SESSION net_write_timeout = ${YEAR_SECONDS}`,
    ];
    await new Promise<void>((resolve, reject) => {
      connection.query(`SET ${settings.join(', ')}`, (error) => (error === null ? resolve() : reject(error)));
    });
    await new Promise<void>((resolve, reject) => {
      const done = (error?: unknown): void => (error === undefined ? resolve() : reject(this.#translate(error)));
      connection.addCommand(new RegisterReplica({ serverId, hostName, done }));
    });
  }

  /** Puts our eyes before zongji's: each packet passes here first. */
  #hook(): void {
    const prototype = this.#zongji.BinlogClass.prototype;
    const inner = prototype.binlogData;
    const self = this;
    prototype.binlogData = function binlogData(packet: Packet, connection: unknown): unknown {
      // 0 begins an event; 0xff an error and 0xfe the end, which are zongji's to read
      if (packet.buffer[packet.offset] !== 0 || self.#failure !== undefined) {
        const next = inner.call(this, packet, connection);
        if (next === null) self.#fail(self.#translate(undefined));
        return next;
      }
      try {
        self.#receive(packet, () => inner.call(this, packet, connection));
      } catch (error) {
        self.#fail(error);
      }
      return prototype.binlogData;
    };
  }

  #receive(packet: Packet, parse: () => void): void {
    const { buffer } = packet;
    const header = packet.offset + 1;
    const type = buffer.readUInt8(header + 4);
    const length = buffer.readUInt32LE(header + 9);
    const flags = buffer.readUInt16LE(header + 17);
    if (header + length !== packet.end)
      throw unreadable(`an event says ${length} bytes, but ${packet.end - header} came`);
    if (type === EVENT.FORMAT_DESCRIPTION) this.#checksums = buffer.readUInt8(packet.end - CHECKSUM_BYTES - 1) === 1;
    if (this.#hasChecksum(type, flags, buffer, header, packet.end)) {
      packet.end -= CHECKSUM_BYTES;
      buffer.writeUInt32LE(length - CHECKSUM_BYTES, header + 9);
    }
    const start = header + HEADER_BYTES;
    const end = packet.end;
    const seconds = buffer.readUInt32LE(header);
    const nextOffset = buffer.readUInt32LE(header + 13);
    this.#control = NONE;
    if (isControl(type)) {
      parse();
      if (this.#failure !== undefined) return;
    }
    const control =
      type === EVENT.GTID || type === EVENT.ANONYMOUS_GTID ? timed(this.#control, buffer, start, end) : this.#control;
    this.#lastHeard = this.#options.clock.monotonic();
    this.#events.push({ type, seconds, flags, length, nextOffset, buffer, start, end, control });
    this.#bytes += length;
    if (this.#bytes >= this.#options.queueBytes && !this.#paused) {
      this.#paused = true;
      this.#zongji.connection?.stream.pause();
    }
    this.#wake?.();
  }

  /**
   * What a file holds is checked; what the server makes up for us is too, but may come with or without a checksum, whatever the
   * file has, so there the sum itself decides.
   */
  #hasChecksum(type: number, flags: number, buffer: Buffer, header: number, end: number): boolean {
    if (type === EVENT.FORMAT_DESCRIPTION) return true; // its sum does not cover the "in use" flag: not checked
    const matches = (): boolean =>
      end - header >= HEADER_BYTES + CHECKSUM_BYTES &&
      crc32(buffer.subarray(header, end - CHECKSUM_BYTES)) === buffer.readUInt32LE(end - CHECKSUM_BYTES);
    const madeUp =
      (flags & EVENT_FLAG.ARTIFICIAL) !== 0 ||
      type === EVENT.HEARTBEAT ||
      type === EVENT.HEARTBEAT_V2 ||
      type === EVENT.ROTATE;
    if (madeUp || this.#checksums === undefined) return matches();
    if (this.#checksums && !matches()) throw unreadable(`the checksum of an event of type ${type} is wrong`);
    return this.#checksums;
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  /** Of what ended the stream. */
  #translate(error: unknown): unknown {
    const { host, credentials } = this.#options;
    if (isMysyncError(error)) return error;
    const { errno, code } = mysqlErrorFields(error);
    const where = { host: formatHost(host) };
    if (errno === SERVER_ERRORS.SLAVE_SAME_ID) {
      return sourceErrors.SOURCE_SERVER_ID_IN_USE({
        message: `another replica with the server id ${this.#options.serverId} has connected to ${formatHost(host)}`,
        where: { ...where, serverId: this.#options.serverId },
        cause: error,
      });
    }
    if (errno === SERVER_ERRORS.MASTER_FATAL_ERROR_READING_BINLOG) {
      return sourceErrors.SOURCE_LOG_REFUSED({
        message: 'the server refuses to send the log',
        where,
        cause: error,
      });
    }
    // after the login, "access denied" is a missing grant
    if (errno === SERVER_ERRORS.SPECIFIC_ACCESS_DENIED || errno === SERVER_ERRORS.ACCESS_DENIED) {
      return sourceErrors.SOURCE_GRANT_MISSING({
        message: `user '${credentials.user}' may not read the log`,
        where,
        remedy: `GRANT REPLICATION SLAVE ON *.* TO '${credentials.user}'@'%';`,
        cause: error,
      });
    }
    if (error !== undefined && errno === 0 && code === '') {
      return sourceErrors.SOURCE_EVENT_UNREADABLE({
        message: 'an event of the log cannot be read',
        where,
        cause: error,
      });
    }
    return sourceErrors.SOURCE_CONNECTION_LOST({
      message: `the stream from ${formatHost(host)} ended`,
      where,
      cause: error,
    });
  }
}

function unreadable(message: string): Error {
  return sourceErrors.SOURCE_EVENT_UNREADABLE({ message });
}

/** The types that zongji parses for us. */
function isControl(type: number): boolean {
  switch (type) {
    case EVENT.QUERY:
    case EVENT.QUERY_COMPRESSED:
    case EVENT.ROTATE:
    case EVENT.XID:
    case EVENT.GTID:
    case EVENT.GTID_TAGGED:
    case EVENT.ANONYMOUS_GTID:
    case EVENT.PREVIOUS_GTIDS:
    case EVENT.XA_PREPARE:
    case EVENT.MARIADB_GTID:
    case EVENT.MARIADB_GTID_LIST:
      return true;
    default:
      return false;
  }
}

function controlOf(event: ZongjiEvent): ControlEvent {
  switch (event.getTypeName()) {
    case 'Rotate':
      return { kind: 'rotate', file: event.binlogName, offset: Number(event.position) };
    case 'Query':
      return { kind: 'query', database: event.schema, statement: event.query };
    case 'Gtid':
      return { kind: 'gtid', gtid: event.gtid, commitTimeMicros: 0 };
    case 'AnonymousGtid':
      return { kind: 'gtid', gtid: '', commitTimeMicros: 0 };
    case 'MariadbGtid':
      return { kind: 'mariadb-gtid', gtid: event.gtid, standalone: event.standalone, preparedXa: event.preparedXa };
    case 'PreviousGtids':
      return { kind: 'gtid-set', gtidSet: event.gtidSet };
    case 'MariadbGtidList':
      return { kind: 'gtid-set', gtidSet: event.gtids.map((entry) => entry.gtid).join(',') };
    case 'Xid':
      return { kind: 'xid' };
    case 'XaPrepare':
      return { kind: 'xa-prepare', onePhase: event.onePhase };
    default:
      return NONE;
  }
}

/**
 * The commit time, which zongji skips: behind flags, UUID, number, logical clock (MySQL, control_events.h, Gtid_event): seven bytes of the time
 * on this server; its first bit set means that the original server's follows.
 */
function timed(control: ControlEvent, buffer: Buffer, start: number, end: number): ControlEvent {
  const at = start + 1 + 16 + 8 + 1 + 16;
  if (control.kind !== 'gtid' || at + 7 > end) return control;
  const high = buffer.readUInt8(at + 6);
  const original = (high & 0x80) !== 0 && at + 14 <= end;
  const from = original ? at + 7 : at;
  const micros = buffer.readUIntLE(from, 6) + (buffer.readUInt8(from + 6) & 0x7f) * 2 ** 48;
  return { ...control, commitTimeMicros: Number.isSafeInteger(micros) ? micros : 0 };
}
