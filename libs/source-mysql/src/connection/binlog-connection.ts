/**
 * The log over a connection of our own: login, TLS and settings through mysql2, then its stream is ours, and what the server
 * sends is cut into events here.
 *
 *     login ──► register ──(OK)──► dump ──► events … ──► failure or close
 *
 * 1. Order: events come out of `take` exactly as the server sent them, none is left out.
 * 2. Nothing after a failure: as soon as anything goes wrong, no later event is queued.
 * 3. Bounded: above `queueBytes` the socket is paused, so at most one read of the socket (64 KiB) or one event is more than that.
 * 4. Events are pieces of what was received: their bytes are never written to again, so they stay valid while they are held.
 * 5. Silence: the server sends a heartbeat each `heartbeatMs`; `silenceMs` without a byte while the socket was not paused is a failure. Where this process
 *    itself stood still, what came meanwhile is read first.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, isMysyncError } from '@mysync/core';
import { type LogConnection, type LogEvent, MOST_EVENT_BYTES } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { connectError, formatHost } from '../server/session.ts';
import { type DumpStart, dumpRequest, registerReplica } from './commands.ts';
import { dumpError, type ServerRefusal } from './dump-error.ts';
import { EventFrames } from './event-frames.ts';
import { type LoginOptions, login, type ReplicaSession } from './login.ts';
import { PacketFramer } from './packet-framer.ts';

const PACKET = { OK: 0x00, END: 0xfe, ERROR: 0xff } as const;

export interface BinlogConnectionOptions extends LoginOptions {
  readonly serverId: number;
  /** How SHOW REPLICAS names us. */
  readonly hostName: string;
  readonly start: DumpStart;
  /** End where the log ends, in place of waiting for more: `wait` then rejects with SOURCE_CONNECTION_LOST, and `ended` is true. */
  readonly stopsAtEnd?: boolean;
  readonly queueBytes: number;
  /** Longest time without a byte. */
  readonly silenceMs: number;
  readonly clock: Clock;
}

export class BinlogConnection implements LogConnection {
  readonly #options: BinlogConnectionOptions;
  readonly #session: ReplicaSession;
  readonly #framer: PacketFramer;
  readonly #frames = new EventFrames();
  #events: LogEvent[] = [];
  #bytes = 0;
  #paused = false;
  #failure: unknown;
  #ended = false;
  #closed = false;
  #wake: (() => void) | undefined;
  /** Answers the register command; undefined once it is answered. */
  #registered: ((error?: unknown) => void) | undefined;
  #lastHeard: number;

  private constructor(options: BinlogConnectionOptions, session: ReplicaSession) {
    this.#options = options;
    this.#session = session;
    this.#lastHeard = options.clock.monotonic();
    this.#framer = new PacketFramer({
      maxBytes: MOST_EVENT_BYTES,
      onPacket: (buffer, start, end, inOrder) => this.#packet(buffer, start, end, inOrder),
    });
  }

  /** Resolves when the dump has been asked for. Errors of the dump itself come from `wait`. */
  static async open(options: BinlogConnectionOptions): Promise<BinlogConnection> {
    const { host, credentials } = options;
    // logging in has a time limit of its own, the questions after it have none
    const limitMs = credentials.connectionTimeoutMs * 2;
    let timer: NodeJS.Timeout | undefined;
    let late = false;
    let connection: BinlogConnection | undefined;
    const opening = login(options).then(async (session) => {
      if (late) session.destroy();
      connection = new BinlogConnection(options, session);
      await connection.#start();
    });
    try {
      await Promise.race([
        opening,
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => {
            late = true;
            reject(
              sourceErrors.SOURCE_UNREACHABLE({
                message: `${formatHost(host)} did not begin to send its log within ${limitMs} ms`,
                where: { host: formatHost(host) },
              }),
            );
          }, limitMs);
        }),
      ]);
      return connection as unknown as BinlogConnection;
    } catch (error) {
      opening.catch(() => undefined);
      await connection?.close();
      throw isMysyncError(error) ? error : connectError(error, host, credentials.user);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The server has sent everything up to its log's end (`stopsAtEnd`). */
  get ended(): boolean {
    return this.#ended;
  }

  /** The thread of the server that sends to us, while it surely does; undefined after a failure. */
  get threadId(): number | undefined {
    return this.#failure === undefined ? this.#session.threadId : undefined;
  }

  take(): readonly LogEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#bytes = 0;
    if (this.#paused) {
      this.#paused = false;
      this.#lastHeard = this.#options.clock.monotonic();
      this.#session.stream.resume();
    }
    return events;
  }

  async wait(signal: AbortSignal): Promise<void> {
    const { clock, silenceMs, host } = this.#options;
    let looked = false;
    while (this.#events.length === 0) {
      if (this.#failure !== undefined) throw this.#failure;
      signal.throwIfAborted();
      const left = this.#lastHeard + silenceMs - clock.monotonic();
      if (left > 0) {
        looked = false;
        await this.#news(left, signal);
      } else if (!looked) {
        looked = true;
        await nextTurn();
      } else {
        throw sourceErrors.SOURCE_CONNECTION_LOST({
          message: `${formatHost(host)} sent nothing for ${Math.round(silenceMs / 1000)} s, not even a heartbeat`,
          where: { host: formatHost(host) },
        });
      }
    }
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#fail(new Error('closed'));
      this.#session.stream.removeAllListeners('data');
      this.#session.destroy();
    }
    return Promise.resolve();
  }

  /** Until something arrives or fails, the time is over or the signal aborts. */
  async #news(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(finish, ms);
      this.#wake = finish;
      signal.addEventListener('abort', finish, { once: true });
    });
  }

  async #start(): Promise<void> {
    const { stream } = this.#session;
    const { serverId, hostName, start, stopsAtEnd } = this.#options;
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('error', (error) => this.#lost(error));
    stream.on('close', () => this.#lost(undefined));
    stream.on('end', () => this.#lost(undefined));
    await new Promise<void>((resolve, reject) => {
      this.#registered = (error) => (error === undefined ? resolve() : reject(error));
      this.#framer.expect(1);
      stream.write(registerReplica(serverId, hostName));
      if (stream.destroyed) this.#lost(undefined);
    });
    this.#framer.expect(1);
    stream.write(dumpRequest(start, serverId, stopsAtEnd ?? false));
    this.#lastHeard = this.#options.clock.monotonic();
  }

  #receive(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    this.#lastHeard = this.#options.clock.monotonic();
    try {
      this.#framer.push(chunk);
    } catch (error) {
      this.#fail(isMysyncError(error) ? error : this.#lostError(error));
      return;
    }
    if (this.#bytes >= this.#options.queueBytes && !this.#paused) {
      this.#paused = true;
      this.#session.stream.pause();
    }
    if (this.#events.length > 0) this.#wake?.();
  }

  #packet(buffer: Buffer, start: number, end: number, inOrder: boolean): void {
    if (this.#failure !== undefined) return;
    const kind = buffer[start];
    if (kind === PACKET.ERROR) {
      this.#fail(dumpError(readRefusal(buffer, start, end), this.#options));
      return;
    }
    // a server that shuts down says so outside of the order
    if (!inOrder) throw new RangeError('packets came out of order');
    if (this.#registered !== undefined) {
      const registered = this.#registered;
      this.#registered = undefined;
      registered();
      return;
    }
    if (kind === PACKET.OK) {
      const event = this.#frames.read(buffer, start + 1, end);
      this.#events.push(event);
      this.#bytes += event.length;
      return;
    }
    this.#ended = kind === PACKET.END;
    throw new RangeError(this.#ended ? 'the server has ended the dump' : `a packet that begins with ${kind}`);
  }

  #lost(error: unknown): void {
    this.#fail(this.#lostError(error));
  }

  #lostError(cause: unknown): Error {
    const host = formatHost(this.#options.host);
    return sourceErrors.SOURCE_CONNECTION_LOST({
      message: `the stream from ${host} ended`,
      where: { host },
      ...(cause === undefined ? {} : { cause }),
    });
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#registered?.(this.#failure);
    this.#registered = undefined;
    this.#wake?.();
  }
}

/** Error number, `#` and five characters of state, text. */
function readRefusal(buffer: Buffer, start: number, end: number): ServerRefusal {
  if (end - start < 3) return { errno: 0, text: '' };
  const from = buffer[start + 3] === 0x23 ? start + 9 : start + 3;
  return { errno: buffer.readUInt16LE(start + 1), text: buffer.toString('utf8', Math.min(from, end), end) };
}
