import { type Finding, isMysyncError } from '@mysync/core';
import { type ApplyOutcome, type ClearChange, type Refusal, type StreamRef, sinkErrors } from '@mysync/sink';
import { argumentLengths } from './argument-lengths.ts';
import {
  type BackendOptions,
  type ClearBatch,
  type KeyedCommand,
  type RedisBackend,
  type RowBatch,
  type RowEncoder,
  versionText,
} from './backend.ts';
import { checkServer, unreachable } from './check.ts';
import { ChunkSender, newChunk, refusedRows } from './chunk-sender.ts';
import { RedisConnection } from './connection.ts';
import { redisErrors } from './errors.ts';
import { noErrors, noMarker, redisFailure, replyCode } from './failure.ts';
import { takeBack } from './mapper.ts';
import { type RedisNames, recordId, redisNames } from './names.ts';
import type { RedisSettings } from './options.ts';
import { scanKeys } from './scan.ts';
import { applyScript, clearScript } from './script.ts';

/** Replies that mean: this is not the server to write to, look for another one. */
const LEAVE = new Set(['READONLY', 'MASTERDOWN', 'LOADING']);
const MAX_CHUNK_BYTES = 1 << 20;
const MAX_OPEN_BYTES = 8 << 20;

/**
 * One Redis server.
 *
 * 1. A batch goes out as chunks of rows, one script call each, in order, on one connection, without waiting for the one before; the
 *    last one moves the marker in the same atomic step. Each checks the marker, and that the chunk before it was applied whole.
 * 2. So whatever is lost on the way (connection, answers, script cache), sending the batch again is right.
 * 3. A connection that was lost is replaced at the next call; then the store may have lost what it had confirmed: doubt.
 */
export class SingleServer implements RedisBackend {
  readonly #settings: RedisSettings;
  readonly #names: RedisNames;
  readonly #onDoubt: (reason: string) => void;
  #opening: Promise<RedisConnection> | null = null;
  /** The last connection that was fit for use; it may have ended since. */
  #open: RedisConnection | null = null;
  #closed = false;

  constructor(settings: RedisSettings, options: BackendOptions) {
    this.#settings = settings;
    this.#names = redisNames(settings.prefix);
    this.#onDoubt = options.onDoubt;
  }

  async readMarker(stream: StreamRef): Promise<string | null> {
    const connection = await this.#get();
    const key = this.#names.marker(stream, 0);
    const [reply] = await connection.callAll([['HGET', key, 'm']]);
    if (reply instanceof Error) {
      throw replyCode(reply) === 'WRONGTYPE' ? noMarker(key, reply.message) : this.#failure(reply, connection);
    }
    return typeof reply === 'string' ? reply : null;
  }

  async applyRows(batch: RowBatch, encoder: RowEncoder, signal: AbortSignal): Promise<ApplyOutcome> {
    const connection = await this.#get();
    using sender = new ChunkSender(connection, batch, this.#names.marker(batch.stream, 0), signal);
    const refusals: Refusal[] = [];
    const chunkRows = this.#settings.chunkRows;
    let chunk = newChunk();
    let bytes = 0;
    for (let place = 0; place < batch.changes.length; place++) {
      const change = batch.changes[place];
      if (change === undefined) continue;
      if (chunk.places.length >= chunkRows || bytes >= MAX_CHUNK_BYTES) {
        sender.send(applyScript, chunk, [], bytes);
        if (sender.openBytes > MAX_OPEN_BYTES) await sender.settle();
        chunk = newChunk();
        bytes = 0;
      }
      const start = chunk.args.length;
      try {
        const key = encoder.encode(change, chunk.args);
        bytes += argumentLengths(chunk.args, start, connection.maxArgumentBytes);
        chunk.keys.push(key, this.#names.companion(key));
        chunk.places.push(place);
      } catch (error) {
        if (!isMysyncError(error)) throw error;
        takeBack(chunk.args, start);
        refusals.push({ index: place, error });
      }
    }
    sender.send(applyScript, chunk, [], bytes, refusals.length === 0);
    await sender.settle();
    return this.#outcome(sender, refusals, connection);
  }

  async applyClear(batch: ClearBatch, signal: AbortSignal): Promise<ApplyOutcome> {
    const connection = await this.#get();
    const marker = this.#names.marker(batch.stream, 0);
    using first = new ChunkSender(connection, batch, marker, signal);
    first.send(applyScript, newChunk(), [], 0, false);
    await first.settle();
    const before = this.#outcome(first, [], connection);
    if (before.status !== 'applied' || first.isDone) return before;
    for (const change of batch.changes) {
      for await (const companions of scanKeys(connection, this.#names.companionGlob, signal)) {
        const outcome = await this.#clearRows(connection, batch, change, companions, signal);
        if (outcome.status !== 'applied') return outcome;
      }
    }
    using last = new ChunkSender(connection, batch, marker, signal);
    last.send(applyScript, newChunk(), [], 0, true);
    await last.settle();
    return this.#outcome(last, [], connection);
  }

  async #clearRows(
    connection: RedisConnection,
    batch: ClearBatch,
    change: ClearChange,
    companions: readonly string[],
    signal: AbortSignal,
  ): Promise<ApplyOutcome> {
    using sender = new ChunkSender(connection, batch, this.#names.marker(batch.stream, 0), signal);
    const more = [recordId(batch.stream, change.table), versionText(change.version)];
    for (let at = 0; at < companions.length; at += this.#settings.chunkRows) {
      const chunk = newChunk();
      for (const companion of companions.slice(at, at + this.#settings.chunkRows)) {
        const key = this.#names.rowKey(companion);
        if (key === null || change.keep?.has(key) === true) continue;
        chunk.keys.push(key, companion);
        chunk.places.push(0);
      }
      sender.send(clearScript, chunk, more, 0, false);
    }
    await sender.settle();
    return this.#outcome(sender, [], connection);
  }

  async *companions(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    yield* scanKeys(await this.#get(), this.#names.companionGlob, signal);
  }

  async ask(commands: readonly KeyedCommand[], signal: AbortSignal): Promise<readonly unknown[]> {
    const connection = await this.#get();
    const replies = await connection.callAll(
      commands.map(({ command }) => command),
      signal,
    );
    return noErrors(replies, connection.name);
  }

  async check(): Promise<readonly Finding[]> {
    try {
      const connection = await this.#get();
      return await checkServer(connection);
    } catch (error) {
      return [unreachable(error)];
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => undefined);
    this.#open?.destroy('closed');
    await this.#open?.closed;
  }

  /** The first reply that is not plain success decides: those behind it only follow from it. */
  #outcome(sender: ChunkSender, refusals: Refusal[], connection: RedisConnection): ApplyOutcome {
    let stale = 0;
    for (const { reply, places } of sender.results) {
      if (reply instanceof Error) throw this.#failure(reply, connection);
      switch (reply[0]) {
        case 'ok':
          stale += reply[1];
          break;
        case 'moved':
          if (reply[2] === 1 && reply[1] === sender.next) return { status: 'applied', stale: 0 };
          return { status: 'marker-moved' };
        case 'no-marker':
          throw noMarker(sender.marker, reply[1]);
        case 'refused':
          refusals.push(...refusedRows(reply, places));
          break;
        case 'behind':
          if (refusals.length > 0) break;
          // An earlier call's chunk, thought lost, or another writer's came in between.
          throw sinkErrors.SINK_UNREACHABLE({ message: `Redis at ${connection.name}: other chunks came in between` });
      }
    }
    if (refusals.length === 0) return { status: 'applied', stale };
    return { status: 'refused', refusals: refusals.sort((a, b) => a.index - b.index) };
  }

  #failure(error: Error, connection: RedisConnection): Error {
    const code = replyCode(error);
    if (LEAVE.has(code)) connection.destroy(error.message);
    // The next connection loads the scripts again.
    if (code === 'NOSCRIPT') {
      connection.destroy('the script cache was emptied');
      return sinkErrors.SINK_UNREACHABLE({ message: `Redis at ${connection.name}: the script cache was emptied` });
    }
    return redisFailure(error, connection.name);
  }

  async #get(): Promise<RedisConnection> {
    if (this.#closed) throw sinkErrors.SINK_UNREACHABLE({ message: 'the sink was closed' });
    if (this.#open?.isOpen) return this.#open;
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = null;
    });
    return await this.#opening;
  }

  async #connect(): Promise<RedisConnection> {
    let failure: unknown = sinkErrors.SINK_UNREACHABLE({ message: 'no Redis server is named' });
    for (const address of this.#settings.hosts) {
      let connection: RedisConnection | null = null;
      try {
        connection = await RedisConnection.open(address, this.#settings);
        await this.#greet(connection);
        if (this.#open !== null) this.#onDoubt(`reconnected to Redis at ${connection.name}`);
        this.#open?.destroy('replaced');
        this.#open = connection;
        return connection;
      } catch (error) {
        connection?.destroy('not usable');
        failure = error;
      }
    }
    throw failure;
  }

  async #greet(connection: RedisConnection): Promise<void> {
    const info = String(await connection.call(['INFO', 'replication']));
    if (/^role:slave/m.test(info)) {
      throw redisErrors.REDIS_READ_ONLY({
        message: `Redis at ${connection.name} is a replica`,
        where: { server: connection.name },
      });
    }
    for (const script of [applyScript, clearScript]) await connection.call(['SCRIPT', 'LOAD', script.text]);
  }
}
