/**
 * The log over a connection of our own: login, TLS and settings through mysql2, then its stream is ours, and what the server
 * sends is cut into events here.
 *
 *     login ──► register ──(OK)──► dump ──► events … ──► failure or close
 *
 * 1. Order: events come out of `next` exactly as the server sent them, none is left out.
 * 2. Nothing after a failure: what was received before it comes out, then `wait` rejects with it.
 * 3. What waits is bytes as they were received: an event is made when it is asked for, so that none is kept while others are read.
 * 4. Bounded: above `queueBytes` the socket is paused, so at most one read of the socket (64 KiB) or one event is more than that.
 * 5. Events are pieces of what was received: their bytes are valid until the next one is asked for, then that memory is read into again.
 * 6. Silence: the server sends a heartbeat each `heartbeatMs`; `silenceMs` without a byte while the socket was not paused is a failure. Where this process
 *    itself stood still, what came meanwhile is read first.
 */
import { type Clock, isMysyncError } from '@mysync/core';
import { type LogConnection, type LogEvent, MOST_EVENT_BYTES } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { connectError, formatHost } from '../server/session.ts';
import { type DumpStart, dumpRequest, registerReplica } from './commands.ts';
import { dumpError, type ServerRefusal } from './dump-error.ts';
import { EventFrames } from './event-frames.ts';
import { FARTHEST_OFFSET, FarPlace, FIRST_OFFSET } from './far-place.ts';
import { type LoginOptions, login, type ReplicaSession } from './login.ts';
import { PacketFramer } from './packet-framer.ts';

const PACKET = { OK: 0x00, END: 0xfe, ERROR: 0xff } as const;

export interface BinlogConnectionOptions extends LoginOptions {
  readonly serverId: number;
  /** How SHOW REPLICAS names us. */
  readonly hostName: string;
  readonly start: DumpStart;
  /** Places behind it are looked for from the beginning of their file. Default: what a request can say. */
  readonly farthestOffset?: number;
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
  /** While the place to begin at has not come. */
  #far: FarPlace | undefined;
  #paused = false;
  #failure: unknown;
  #ended = false;
  #closed = false;
  #wake: (() => void) | undefined;
  /** Looks out for silence. */
  #watch: NodeJS.Timeout | undefined;
  /** Wakes whoever waits when it aborts. */
  #signal: AbortSignal | undefined;
  /** Answers the register command; undefined once it is answered. */
  #registered: ((error?: unknown) => void) | undefined;
  #lastHeard: number;

  private constructor(options: BinlogConnectionOptions, session: ReplicaSession) {
    this.#options = options;
    this.#session = session;
    this.#framer = new PacketFramer({ maxBytes: MOST_EVENT_BYTES, giveBack: (buffer) => session.giveBack(buffer) });
    this.#lastHeard = options.clock.monotonic();
    const { start, farthestOffset = FARTHEST_OFFSET } = options;
    if (start.kind === 'place' && start.offset > farthestOffset) this.#far = new FarPlace(start);
  }

  /** Resolves when the dump has been asked for. Errors of the dump itself come from `wait`. */
  static async open(options: BinlogConnectionOptions): Promise<BinlogConnection> {
    const { host, credentials } = options;
    // logging in has a time limit of its own, the questions after it have none
    const limitMs = credentials.connectionTimeoutMs * 2;
    let timer: NodeJS.Timeout | undefined;
    const late = new AbortController();
    let connection: BinlogConnection | undefined;
    const opening = login(options, late.signal).then(async (session) => {
      if (late.signal.aborted) session.destroy();
      connection = new BinlogConnection(options, session);
      await connection.#start();
    });
    try {
      await Promise.race([
        opening,
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => {
            late.abort();
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
      throw isMysyncError(error) ? error : connectError(error, host, credentials);
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

  /** Monotonic time of the last byte, or of what was asked for last. */
  get heardMs(): number {
    return this.#lastHeard;
  }

  next(): LogEvent | undefined {
    const far = this.#far;
    if (far === undefined) return this.#next();
    for (let event = this.#next(); event !== undefined; event = this.#next()) {
      try {
        const passed = far.pass(event);
        if (far.isReached) this.#far = undefined;
        if (passed !== undefined) return passed;
        if (far.isReached) return this.#next();
      } catch (error) {
        this.#failHere(error);
      }
    }
    return undefined;
  }

  #next(): LogEvent | undefined {
    const framer = this.#framer;
    if (!framer.next()) return undefined;
    if (this.#paused && framer.bytes < this.#options.queueBytes / 2) {
      this.#paused = false;
      this.#lastHeard = this.#options.clock.monotonic();
      this.#session.stream.resume();
    }
    const { buffer, start, end } = framer;
    try {
      if (buffer[start] === PACKET.OK && framer.inOrder) return this.#frames.read(buffer, start + 1, end);
      throw this.#endOf(buffer, start, end);
    } catch (error) {
      this.#failHere(error);
      return undefined;
    }
  }

  /** What was read last cannot be gone on from. Whatever happened to the connection since: this came first. */
  #failHere(error: unknown): void {
    this.#framer.clear();
    this.#failure = undefined;
    this.#fail(isMysyncError(error) ? error : this.#lostError(error));
  }

  async wait(signal: AbortSignal): Promise<void> {
    while (this.#framer.isEmpty) {
      if (this.#failure !== undefined) throw this.#failure;
      signal.throwIfAborted();
      if (this.#signal !== signal) this.#listenTo(signal);
      this.#watch ??= this.#watchFor(this.#silenceMs());
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#fail(new Error('closed'));
      this.#framer.clear();
      clearTimeout(this.#watch);
      this.#signal?.removeEventListener('abort', this.#wakeUp);
      this.#session.stream.removeAllListeners('data');
      this.#session.destroy();
    }
    return Promise.resolve();
  }

  readonly #wakeUp = (): void => this.#wake?.();

  #listenTo(signal: AbortSignal): void {
    this.#signal?.removeEventListener('abort', this.#wakeUp);
    this.#signal = signal;
    signal.addEventListener('abort', this.#wakeUp);
  }

  #silenceMs(): number {
    return this.#lastHeard + this.#options.silenceMs - this.#options.clock.monotonic();
  }

  /** One timer for the whole connection: what is received only moves the time that it looks at. */
  #watchFor(ms: number): NodeJS.Timeout {
    return setTimeout(
      () => {
        // after what came meanwhile
        setImmediate(() => {
          if (this.#failure !== undefined) return;
          const left = this.#paused ? this.#options.silenceMs : this.#silenceMs();
          if (left > 0) this.#watch = this.#watchFor(left);
          else this.#fail(this.#silent());
        });
      },
      Math.max(1, ms),
    );
  }

  #silent(): Error {
    const { silenceMs, host } = this.#options;
    return sourceErrors.SOURCE_CONNECTION_LOST({
      message: `${formatHost(host)} sent nothing for ${Math.round(silenceMs / 1000)} s, not even a heartbeat`,
      where: { host: formatHost(host) },
    });
  }

  async #start(): Promise<void> {
    const { stream } = this.#session;
    const { serverId, hostName, start, stopsAtEnd } = this.#options;
    this.#session.receive((buffer, length, isLent) => this.#receive(buffer, length, isLent));
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
    const asked = this.#far === undefined ? start : { ...start, offset: FIRST_OFFSET };
    stream.write(dumpRequest(asked, serverId, stopsAtEnd ?? false));
    this.#lastHeard = this.#options.clock.monotonic();
  }

  #receive(buffer: Buffer, length: number, isLent: boolean): void {
    if (this.#failure !== undefined) return;
    this.#lastHeard = this.#options.clock.monotonic();
    try {
      this.#framer.push(buffer, length, isLent);
    } catch (error) {
      this.#fail(isMysyncError(error) ? error : this.#lostError(error));
      return;
    }
    if (this.#registered !== undefined) this.#answer();
    if (this.#framer.bytes >= this.#options.queueBytes && !this.#paused) {
      this.#paused = true;
      this.#session.stream.pause();
    }
    this.#wake?.();
  }

  /** To the register command. */
  #answer(): void {
    const framer = this.#framer;
    if (!framer.next()) return;
    const { buffer, start, end } = framer;
    if (buffer[start] === PACKET.ERROR) {
      this.#fail(dumpError(readRefusal(buffer, start, end), this.#options));
      return;
    }
    if (!framer.inOrder) {
      this.#lost(new RangeError('packets came out of order'));
      return;
    }
    this.#registered?.();
    this.#registered = undefined;
  }

  /** What a packet that holds no event says. */
  #endOf(buffer: Buffer, start: number, end: number): Error {
    const kind = buffer[start];
    if (kind === PACKET.ERROR) return dumpError(readRefusal(buffer, start, end), this.#options);
    // a server that shuts down says so outside of the order
    if (!this.#framer.inOrder) return new RangeError('packets came out of order');
    this.#ended = kind === PACKET.END;
    return new RangeError(this.#ended ? 'the server has ended the dump' : `a packet that begins with ${kind}`);
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
