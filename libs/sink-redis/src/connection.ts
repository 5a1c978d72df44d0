import { causeText, systemClock } from '@mysync/core';
import { sinkErrors } from '@mysync/sink';
import { Redis } from 'ioredis';
import { EncodedCommand } from './encoded-command.ts';
import { isReply, noDatabase, openingFailure, redisFailure } from './failure.ts';
import type { RedisAddress, RedisSettings } from './options.ts';

export type Argument = string | Buffer;

const DEFAULT_MAX_ARGUMENT_BYTES = 512 * 2 ** 20;

/**
 * One connection, from its opening to its end.
 *
 * 1. It is never repaired: a failure, or `commandTimeoutMs` without an answer while one is owed, ends it and rejects all calls; the owner opens another one. (ioredis's
 *    own reconnecting either sends commands again by itself, out of our order, or leaves them without an answer.)
 * 2. Nothing is queued for later: a call on an ended connection rejects at once.
 */
export class RedisConnection {
  readonly address: RedisAddress;
  readonly name: string;
  readonly #redis: Redis;
  readonly settings: RedisSettings;
  /** Longer arguments make the server end the connection (its proto-max-bulk-len). */
  maxArgumentBytes = DEFAULT_MAX_ARGUMENT_BYTES;
  #failure: Error | null = null;
  /** When the server said something last, by the monotonic clock. */
  #heardMs = 0;
  #destroyed = false;
  readonly #closed: Promise<void>;

  private constructor(redis: Redis, address: RedisAddress, settings: RedisSettings) {
    this.#redis = redis;
    this.address = address;
    this.name = `${address.host}:${address.port}`;
    this.settings = settings;
    redis.on('error', (error: Error) => {
      // A reply that no call waits for belongs to the handshake.
      this.#failure ??= openingFailure(error, this.name);
    });
    this.#closed = new Promise((resolve) => redis.once('end', resolve));
  }

  /** Rejects with a catalogue error; takes `connectTimeoutMs` at most, handshake included. */
  static async open(address: RedisAddress, settings: RedisSettings): Promise<RedisConnection> {
    const { username, password, tls, connectTimeoutMs } = settings;
    const redis = new Redis({
      host: address.host,
      port: address.port,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(tls === undefined ? {} : { tls }),
      connectionName: 'mysync',
      disableClientInfo: true,
      lazyConnect: true,
      connectTimeout: connectTimeoutMs,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      autoResendUnfulfilledCommands: false,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
    });
    const connection = new RedisConnection(redis, address, settings);
    const deadline = setTimeout(() => connection.destroy('no answer to the handshake'), connectTimeoutMs);
    try {
      await redis.connect();
      redis.stream.on('data', () => {
        connection.#heardMs = systemClock.monotonic();
      });
      await connection.#select();
      await connection.#askLimits();
    } catch (error) {
      connection.destroy('not connected');
      throw connection.#failure ?? openingFailure(error, connection.name);
    } finally {
      clearTimeout(deadline);
    }
    return connection;
  }

  /** Not ioredis's own SELECT: of that one only a text is told, with no command. */
  async #select(): Promise<void> {
    const { db } = this.settings;
    if (db === 0) return;
    const [reply] = await this.callAll([['SELECT', String(db)]]);
    if (!(reply instanceof Error)) return;
    this.#failure ??= noDatabase(reply, this.name, this.settings);
    throw this.#failure;
  }

  async #askLimits(): Promise<void> {
    const [reply] = await this.callAll([['CONFIG', 'GET', 'proto-max-bulk-len']]);
    // Who may not ask has Redis's own default.
    const bytes = Array.isArray(reply) ? Number(reply[1]) : 0;
    if (bytes > 0) this.maxArgumentBytes = bytes;
  }

  get isOpen(): boolean {
    return this.#failure === null && this.#redis.status === 'ready';
  }

  /** Resolves when the connection has ended, for whatever reason. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  /** Sends all commands at once. Replies in order; an error that Redis replied takes the place of its reply. */
  async callAll(commands: readonly (readonly Argument[])[], signal?: AbortSignal): Promise<unknown[]> {
    signal?.throwIfAborted();
    if (!this.isOpen) throw this.#ended();
    const stop = (): void => this.destroy('given up');
    const answered = this.#limitSilence();
    signal?.addEventListener('abort', stop, { once: true });
    const { stream } = this.#redis;
    const answers: Promise<unknown>[] = [];
    stream.cork();
    for (const parts of commands) {
      const command = new EncodedCommand(parts);
      this.#redis.sendCommand(command);
      answers.push(command.promise);
    }
    stream.uncork();
    const results = await Promise.allSettled(answers);
    answered();
    signal?.removeEventListener('abort', stop);
    if (signal?.aborted && !this.isOpen) throw signal.reason;
    return results.map((result) => {
      if (result.status === 'fulfilled') return result.value;
      if (isReply(result.reason)) return result.reason;
      throw this.#ended(result.reason);
    });
  }

  /** Until the answers are there: the end of the connection when it is silent for too long. Many answers may take longer in all, over a slow way. */
  #limitSilence(): () => void {
    const { commandTimeoutMs } = this.settings;
    const begun = systemClock.monotonic();
    const look = (): void => {
      const leftMs = Math.max(begun, this.#heardMs) + commandTimeoutMs - systemClock.monotonic();
      if (leftMs > 0) timer = setTimeout(look, leftMs);
      else this.destroy(`no answer in ${commandTimeoutMs} ms`);
    };
    let timer = setTimeout(look, commandTimeoutMs);
    return () => clearTimeout(timer);
  }

  /** One command. An error that Redis replied is thrown as a catalogue error. */
  async call(command: readonly Argument[], signal?: AbortSignal): Promise<unknown> {
    const [reply] = await this.callAll([command], signal);
    if (reply instanceof Error) throw redisFailure(reply, this.name);
    return reply;
  }

  /** Ends the connection at once: nothing more is sent, calls without an answer reject. */
  destroy(reason: string): void {
    this.#failure ??= sinkErrors.SINK_UNREACHABLE({
      message: `Redis at ${this.name}: ${reason}`,
      where: { server: this.name },
    });
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#redis.disconnect();
    // Declared as always there; before the first connect it is not.
    const stream: { destroy(): unknown } | undefined = this.#redis.stream;
    stream?.destroy();
  }

  #ended(cause?: unknown): Error {
    const text = cause === undefined ? 'the connection has ended' : causeText(cause);
    this.#failure ??= redisFailure(new Error(text), this.name);
    return this.#failure;
  }
}
