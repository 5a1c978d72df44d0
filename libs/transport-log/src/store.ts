/**
 * The one LMDB environment of a log directory, shared by every transport of this process.
 *
 * 1. All writes pass one queue and are committed in groups, in order: an action runs inside LMDB's write transaction, which
 *    one process at a time holds, so what it reads is true when it writes.
 * 2. An action looks first and writes last: when it throws a catalogue error it has written nothing, and the rest of
 *    its group goes on. When the store itself refuses a write, the whole group fails and nothing of it is stored.
 * 3. `write` resolves after the commit: with fsync `commit` the group is on disk then (two syncs, data before root page);
 *    with `interval` it is in the page cache, which survives the death of every process but not of the machine.
 * 4. The map is far larger than any log (address space only), so that no process ever has to map anew.
 *
 * lmdb-js details: event-turn batching is off, since the queue groups by itself and since the batch's own promise
 * would reject unobserved when a commit fails; `committed` is observed for the same reason.
 */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, isMysyncError, type MysyncError, Turns } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { type Database, open, type RootDatabase } from 'lmdb';
import { checkDataFile } from './data-file.ts';
import { isNoFile, pathError, prepareDirectory } from './directory.ts';
import { logErrors } from './errors.ts';
import { takeGateAtExit, throughGate } from './gate.ts';
import { FORMAT_VERSION, metaKey, type PartitionState } from './layout.ts';
import { reserveLockFile } from './lock-file.ts';
import { RootWatch } from './root-watch.ts';
import { Wakeups } from './wakeups.ts';

export type Fsync = 'commit' | 'interval';

export interface StoreOptions {
  readonly path: string;
  readonly fsync: Fsync;
  /** With fsync `interval`: at most so long until a commit is on disk. */
  readonly fsyncIntervalMs: number;
  /** Bytes of batches that the log may hold; more is refused with TRANSPORT_DISK_FULL. */
  readonly maxBytes: number;
  /** Bytes that stay free on the disk. */
  readonly minFreeBytes: number;
  readonly clock: Clock;
  /** Told of what goes on in the background: a full disk, a stalled write lock, a damaged batch met by compaction. */
  readonly onProblem: (error: unknown) => void;
}

interface Pending {
  readonly action: () => unknown;
  readonly bytes: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  result: unknown;
  error: unknown;
}

const MAP_BYTES = 2 ** 40;
const MAX_GROUP_BYTES = 16 * 2 ** 20;
/** A write may cost this many times its bytes: whole pages, copies of tree pages, free space that is too scattered. */
const WRITE_AMPLIFICATION = 2;
/** Of a log that is opened: its lock file, root pages and first entries. */
const OPEN_BYTES = 2 ** 18;
const STALL_MS = 10_000;
const opened = new Map<string, Store>();
/** Opening and closing within this process. */
const turns = new Turns();

function gateOf(path: string): string {
  return join(path, 'gate');
}

process.on('exit', () => {
  for (const path of opened.keys()) takeGateAtExit(gateOf(path));
});

export class Store {
  readonly records: Database<Buffer, Buffer>;
  readonly meta: Database<Buffer, string>;
  readonly wakeups: Wakeups;
  readonly path: string;
  readonly options: StoreOptions;
  readonly #root: RootDatabase<Buffer, string>;
  readonly #rootWatch: RootWatch;
  readonly #queue: Pending[] = [];
  #running: Promise<void> | undefined;
  #users = 0;
  #stopBackground: (() => Promise<void>) | undefined;
  #closed = false;
  #syncTimer: NodeJS.Timeout | undefined;
  #sizeDelta = 0;
  #ringAfterCommit = false;
  #wakeAfterCommit: string[] = [];
  /** What this group of writes may still add to the file; asked from the file system once per group. */
  #freeBudget: number | undefined;

  private constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.options = options;
    checkDataFile(join(path, 'data.mdb'));
    try {
      this.#root = open<Buffer, string>({
        path,
        noSubdir: false,
        mapSize: MAP_BYTES,
        maxDbs: 4,
        maxReaders: 512,
        overlappingSync: false,
        noSync: options.fsync === 'interval',
        eventTurnBatching: false,
        encoding: 'binary',
      });
      this.records = this.#root.openDB<Buffer, Buffer>('records', { encoding: 'binary', keyEncoding: 'binary' });
      this.meta = this.#root.openDB<Buffer, string>('meta', { encoding: 'binary' });
      this.#rootWatch = new RootWatch(path);
    } catch (cause) {
      throw openError(path, cause);
    }
    this.wakeups = new Wakeups(join(path, 'doorbell'), () => this.refresh());
    // What our opening rolled back is there again at once.
    this.write(() => undefined).catch(() => undefined);
  }

  /** The store of a directory; each call needs one `release`. */
  static async use(options: StoreOptions): Promise<Store> {
    const path = prepareDirectory(options.path);
    // One call after the other: a second one of this process must find the store that the first one opens.
    const store = await turns.take(async () => {
      const found = opened.get(path) ?? (await Store.#openAlone(path, options));
      found.#users++;
      opened.set(path, found);
      return found;
    });
    if (store.options.fsync !== options.fsync || store.options.maxBytes !== options.maxBytes) {
      await store.release();
      throw logErrors.LOG_OPTIONS_DIFFER({ message: `the log in ${path} is open with other options`, where: { path } });
    }
    try {
      await store.#checkFormat();
    } catch (error) {
      await store.release();
      throw error;
    }
    return store;
  }

  static async #openAlone(path: string, options: StoreOptions): Promise<Store> {
    try {
      return await throughGate(gateOf(path), async () => Store.#open(path, options));
    } catch (error) {
      throw isNoFile(error) ? pathError(path, error) : error;
    }
  }

  /** A disk without room for LMDB's own pages is told: what LMDB maps and cannot write kills the process. */
  static #open(path: string, options: StoreOptions): Store {
    const { bavail, bsize, blocks } = statfsSync(path);
    try {
      // a file system without blocks says nothing of its room
      if (blocks > 0 && bavail * bsize < OPEN_BYTES)
        throw new Error(`${bavail * bsize} bytes are free, opening takes ${OPEN_BYTES}`);
      reserveLockFile(join(path, 'lock.mdb'));
    } catch (cause) {
      if (isNoFile(cause)) throw cause;
      throw transportErrors.TRANSPORT_DISK_FULL({ message: 'the log cannot be opened', where: { path }, cause });
    }
    return new Store(path, options);
  }

  /** Starts what runs once per store, whoever comes first; what `start` returns stops it before the files close. */
  startOnce(start: () => () => Promise<void>): void {
    this.#stopBackground ??= start();
  }

  async release(): Promise<void> {
    await turns.take(async () => {
      if (--this.#users > 0) return;
      opened.delete(this.path);
      await this.#stopBackground?.();
      while (this.#running !== undefined) await this.#running;
      this.#closed = true;
      clearTimeout(this.#syncTimer);
      if (this.#syncTimer !== undefined) await this.#sync().catch(() => {});
      this.wakeups.close();
      await throughGate(gateOf(this.path), () => this.#root.close());
      // Not before: closing any descriptor of the lock file drops LMDB's own locks on it.
      this.#rootWatch.close();
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Makes other processes' commits visible to the reads of this turn. */
  refresh(): void {
    if (!this.#closed) this.#root.resetReadTxn();
  }

  /** Frees what readers that died without a word still hold. */
  clearDeadReaders(): void {
    this.#root.readerCheck();
  }

  /**
   * The stored batch of a key, valid until the next look into the store. lmdb-js gives one large buffer with a `length` of
   * its own laid over it; a plain view of the same memory behaves.
   */
  batch(key: Buffer): Buffer | undefined {
    const bytes = this.records.getBinaryFast(key);
    return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Reads a small JSON value. */
  read<T>(key: string): T | undefined {
    const bytes = this.meta.getBinaryFast(key);
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString('utf8', 0, bytes.length)) as T);
  }

  /** Only within `write`. */
  put(key: string, value: unknown): void {
    this.meta.putSync(key, Buffer.from(JSON.stringify(value)));
  }

  partition(topicId: string, partition: number): PartitionState | undefined {
    return this.read<PartitionState>(metaKey.partition(topicId, partition));
  }

  /** Only within `write`: counts bytes of batches that come or go. */
  addSize(bytes: number): void {
    this.#sizeDelta += bytes;
  }

  /** Only within `write`: throws when `bytes` more do not fit. */
  checkRoom(bytes: number): void {
    const { maxBytes } = this.options;
    const size = this.size() + this.#sizeDelta;
    if (size + bytes > maxBytes) {
      throw transportErrors.TRANSPORT_DISK_FULL({
        message: `the log holds ${size} bytes and may hold ${maxBytes}`,
        where: { path: this.path, maxBytes },
        remedy: 'Raise transport.log.maxBytes, or let the writers catch up so that old records can go.',
      });
    }
    this.#freeBudget ??= this.freeBytes() - this.options.minFreeBytes;
    if (this.#freeBudget < WRITE_AMPLIFICATION * bytes) throw this.#diskFull();
    this.#freeBudget -= WRITE_AMPLIFICATION * bytes;
  }

  /** Bytes of all batches. */
  size(): number {
    return this.read<number>(metaKey.size) ?? 0;
  }

  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }

  /** Only within `write`: wakes those who wait for `key`, here and in other processes, once committed. */
  announce(key: string): void {
    this.#wakeAfterCommit.push(key);
    this.#ringAfterCommit = true;
  }

  /** Runs the action inside a write transaction and resolves with its result once committed. */
  write<T>(action: () => T, bytes = 0): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ action, bytes, resolve, reject, result: undefined, error: undefined });
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // Lets the callers of this turn join the first group.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      let bytes = 0;
      let count = 0;
      while (count < this.#queue.length && (count === 0 || bytes < MAX_GROUP_BYTES)) {
        bytes += this.#queue[count++]?.bytes ?? 0;
      }
      const stalled = setInterval(() => this.#tellStall(), STALL_MS).unref();
      await this.#commit(this.#queue.splice(0, count), bytes);
      clearInterval(stalled);
    }
    this.#running = undefined;
  }

  async #commit(group: readonly Pending[], bytes: number): Promise<void> {
    this.#sizeDelta = 0;
    this.#freeBudget = undefined;
    this.#ringAfterCommit = false;
    this.#wakeAfterCommit = [];
    let refused: unknown;
    try {
      let isBehind: boolean;
      do {
        isBehind = false;
        const done = this.#root.transaction(() => {
          isBehind = this.#rootWatch.mendsRollback(this.#root.getWriteTxnId());
          if (!isBehind) this.#act(group);
        });
        this.#root.committed.then(
          () => {},
          () => {},
        );
        await done;
      } while (isBehind);
    } catch (error) {
      refused = await this.#explain(error, bytes);
    }
    if (refused === undefined) {
      if (this.options.fsync === 'interval') this.#syncTimer ??= this.#syncLater();
      for (const key of this.#wakeAfterCommit) this.wakeups.wake(key);
      if (this.#ringAfterCommit) this.wakeups.ring();
    }
    for (const pending of group) {
      const error = refused ?? pending.error;
      if (error !== undefined) pending.reject(error);
      else pending.resolve(pending.result as never);
    }
  }

  /** Within the transaction. */
  #act(group: readonly Pending[]): void {
    for (const pending of group) {
      try {
        pending.result = pending.action();
      } catch (error) {
        pending.error = error;
        if (!isMysyncError(error)) throw error;
      }
    }
    if (this.#sizeDelta !== 0) this.put(metaKey.size, this.size() + this.#sizeDelta);
  }

  /** What a failed commit means. LMDB reports a short write on a full disk as EIO. */
  async #explain(error: unknown, bytes: number): Promise<unknown> {
    let cause = error;
    if (error instanceof Error && 'commitError' in error) {
      cause = await Promise.resolve(error.commitError).then(
        () => error,
        (reason: unknown) => reason,
      );
    }
    if (this.freeBytes() < Math.max(this.options.minFreeBytes, 2 * bytes + 2 ** 20)) return this.#diskFull(cause);
    return logErrors.LOG_WRITE_FAILED({ message: 'the store refused a commit', where: { path: this.path }, cause });
  }

  #diskFull(cause?: unknown): MysyncError {
    const { minFreeBytes } = this.options;
    const message = `${this.freeBytes()} bytes are free where the log lies; ${minFreeBytes} are kept free`;
    return transportErrors.TRANSPORT_DISK_FULL({ message, where: { path: this.path }, cause });
  }

  #tellStall(): void {
    const message = `a commit has waited ${STALL_MS / 1000} s: a stopped process may hold the write lock, or the disk hangs`;
    this.options.onProblem(logErrors.LOG_STALLED({ message, where: { path: this.path } }));
  }

  #syncLater(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#syncTimer = undefined;
      this.#sync().catch(() => {
        // Tried again with the next commit; the policy promises no more than a try every interval.
        if (!this.#closed) this.#syncTimer ??= this.#syncLater();
      });
    }, this.options.fsyncIntervalMs).unref();
  }

  #sync(): Promise<void> {
    const root = this.#root as unknown as { sync(callback: (error: unknown) => void): void };
    return new Promise((resolve, reject) => {
      root.sync((error) => (error ? reject(error) : resolve()));
    });
  }

  async #checkFormat(): Promise<void> {
    let version = this.read<number>(metaKey.format);
    version ??= await this.write(() => {
      const found = this.read<number>(metaKey.format);
      if (found === undefined) this.put(metaKey.format, FORMAT_VERSION);
      return found ?? FORMAT_VERSION;
    });
    if (version !== FORMAT_VERSION) {
      throw logErrors.LOG_VERSION({
        message: `the log in ${this.path} has format ${version}, this is format ${FORMAT_VERSION}`,
        where: { path: this.path },
      });
    }
  }
}

export function closedError(): MysyncError {
  return transportErrors.TRANSPORT_CLOSED({ message: 'the transport was closed' });
}

function openError(path: string, cause: unknown): MysyncError {
  const code = (cause as { code?: unknown }).code;
  const details = { message: `the log in ${path} cannot be opened`, where: { path }, cause };
  // EACCES, EPERM, EROFS; everything else LMDB says at opening is about what it found in the files.
  return code === 13 || code === 1 || code === 30 ? logErrors.LOG_PATH(details) : logErrors.LOG_CORRUPT(details);
}
