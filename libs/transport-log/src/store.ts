/**
 * The one LMDB environment of a log directory, shared by every transport of this process.
 *
 * 1. All writes pass one queue and are committed in groups, in order: an action runs inside LMDB's write transaction, which
 *    one process at a time holds, so what it reads is true when it writes.
 * 2. What an action changes is written when it has returned (`Changes`): one that throws has changed nothing, its caller gets what it
 *    threw, and the rest of its group goes on. When the store itself refuses a write, the whole group fails and nothing of it is stored.
 * 3. `write` resolves after the commit: with fsync `commit` the group is on disk then (two syncs, data before root page);
 *    with `interval` it is in the page cache, which survives the death of every process but not of the machine.
 * 4. The map is far larger than any log (address space only), so that no process ever has to map anew.
 *
 * lmdb-js details: event-turn batching is off, since the queue groups by itself and since the batch's own promise
 * would reject unobserved when a commit fails; `committed` is observed for the same reason.
 */
import { join } from 'node:path';
import { type Clock, isMysyncError, type MysyncError, Turns } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { type Database, open, type RootDatabase } from 'lmdb';
import { Changes } from './changes.ts';
import { checkDataFile } from './data-file.ts';
import { DATA_FILE, isNoFile, pathError, prepareDirectory } from './directory.ts';
import { logErrors } from './errors.ts';
import { takeGateAtExit, throughGate } from './gate.ts';
import { FORMAT_VERSION, metaKey, type PartitionState } from './layout.ts';
import { reserveLockFile } from './lock-file.ts';
import { Room, requireRoomToOpen } from './room.ts';
import { RootWatch } from './root-watch.ts';
import { Wakeups } from './wakeups.ts';
import { type Group, WriteQueue } from './write-queue.ts';

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

const MAP_BYTES = 2 ** 40;
/** How often a look is taken whether the files are still there. */
const REMOVED_LOOK_MS = 1000;
const opened = new Map<string, Store>();
/** Opening and closing within this process. */
const turns = new Turns();

function gateOf(path: string): string {
  return join(path, 'gate');
}

process.on('exit', () => {
  for (const path of opened.keys()) takeGateAtExit(gateOf(path));
  // The exit waits for LMDB's thread, which holds the write lock and waits for an answer that nobody gives any more: for ever, and all other processes with it.
  for (const store of opened.values()) if (store.isAsked) process.kill(process.pid, 'SIGKILL');
});

export class Store {
  /** Batches and small values, for reading: what is written goes through `write`. */
  readonly records: Pick<Database<Buffer, Buffer>, 'getKeys'>;
  readonly meta: Pick<Database<Buffer, string>, 'getKeys'>;
  readonly wakeups: Wakeups;
  readonly path: string;
  readonly options: StoreOptions;
  readonly #records: Database<Buffer, Buffer>;
  readonly #meta: Database<Buffer, string>;
  readonly #room: Room;
  readonly #changes = new Changes();
  readonly #root: RootDatabase<Buffer, string>;
  readonly #rootWatch: RootWatch;
  readonly #queue: WriteQueue;
  #users = 0;
  #stopBackground: (() => Promise<void>) | undefined;
  #closed = false;
  #syncTimer: NodeJS.Timeout | undefined;
  /** By how much the batches grew with this group's actions so far. */
  #sizeDelta = 0;
  readonly #wakeAfterCommit = new Set<string>();
  #removedLookMs = Number.NEGATIVE_INFINITY;
  #isAsked = false;

  private constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.options = options;
    this.#room = new Room({ path, maxBytes: options.maxBytes, minFreeBytes: options.minFreeBytes });
    checkDataFile(join(path, DATA_FILE));
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
      this.#records = this.#root.openDB<Buffer, Buffer>('records', { encoding: 'binary', keyEncoding: 'binary' });
      this.#meta = this.#root.openDB<Buffer, string>('meta', { encoding: 'binary' });
      this.#rootWatch = new RootWatch(path);
    } catch (cause) {
      throw openError(path, cause);
    }
    this.#queue = new WriteQueue({
      commit: (group) => this.#commit(group),
      explain: (error, bytes) => this.#explain(error, bytes),
      committed: () => this.#tellCommit(),
      stalled: (waitedMs) => this.#tellStall(waitedMs),
    });
    this.records = this.#records;
    this.meta = this.#meta;
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

  static #open(path: string, options: StoreOptions): Store {
    try {
      requireRoomToOpen(path);
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
      await this.#queue.idle();
      this.#closed = true;
      clearTimeout(this.#syncTimer);
      if (this.#syncTimer !== undefined) await this.#sync().catch(() => {});
      this.wakeups.close();
      try {
        await throughGate(gateOf(this.path), () => this.#root.close());
      } catch (error) {
        if (!isNoFile(error)) throw error;
        // Removed while it was open: nobody else can open it.
        await this.#root.close();
      }
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
    const bytes = this.#records.getBinaryFast(key);
    return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Reads a small JSON value. */
  read<T>(key: string): T | undefined {
    const bytes = this.#meta.getBinaryFast(key);
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString('utf8', 0, bytes.length)) as T);
  }

  /** Only within `write`; what is put or removed is seen by later actions, not by this one. */
  put(key: string, value: unknown): void {
    this.#changes.set(this.#meta, key, Buffer.from(JSON.stringify(value)));
  }

  /** Only within `write`. */
  remove(key: string): void {
    this.#changes.set(this.#meta, key, null);
  }

  /** Only within `write`; `batch` must stay as it is until the action has returned. */
  putBatch(key: Buffer, batch: Buffer): void {
    this.#changes.set(this.#records, key, batch);
  }

  /** Only within `write`. */
  removeBatch(key: Buffer): void {
    this.#changes.set(this.#records, key, null);
  }

  partition(topicId: string, partition: number): PartitionState | undefined {
    return this.read<PartitionState>(metaKey.partition(topicId, partition));
  }

  /** Only within `write`: counts bytes of batches that come or go. */
  addSize(bytes: number): void {
    this.#changes.addBytes(bytes);
  }

  /** Only within `write`: throws when `bytes` more do not fit. */
  checkRoom(bytes: number): void {
    this.#room.take(bytes, this.size() + this.#sizeDelta);
  }

  /** Bytes of all batches. */
  size(): number {
    return this.read<number>(metaKey.size) ?? 0;
  }

  freeBytes(): number {
    return this.#room.freeBytes();
  }

  /** Only within `write`: wakes those who wait for `key`, here and in other processes, once committed. */
  announce(key: string): void {
    this.#changes.announce(key);
  }

  /** Runs the action inside a write transaction and resolves with its result once committed. */
  write<T>(action: () => T, bytes = 0): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return this.#queue.write(action, bytes);
  }

  /** LMDB's thread waits, or is going to wait, for what a transaction is to do. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  async #commit(group: Group): Promise<void> {
    this.#requireFiles();
    let isBehind: boolean;
    do {
      isBehind = false;
      this.#isAsked = true;
      const done = this.#root.transaction(() => {
        this.#isAsked = false;
        isBehind = this.#rootWatch.mendsRollback(this.#root.getWriteTxnId());
        if (!isBehind) this.#act(group);
      });
      this.#root.committed.then(
        () => {},
        () => {},
      );
      await done.finally(() => {
        this.#isAsked = false;
      });
    } while (isBehind);
  }

  /** Within the transaction. */
  #act(group: Group): void {
    this.#sizeDelta = 0;
    this.#room.begin();
    this.#wakeAfterCommit.clear();
    for (const pending of group) {
      try {
        pending.result = pending.action();
      } catch (error) {
        this.#changes.drop();
        pending.error = error ?? new Error('an action of the log threw nothing');
        continue;
      }
      this.#sizeDelta += this.#changes.apply(this.#wakeAfterCommit);
    }
    if (this.#sizeDelta === 0) return;
    this.put(metaKey.size, this.size() + this.#sizeDelta);
    this.#changes.apply(this.#wakeAfterCommit);
  }

  #tellCommit(): void {
    if (this.options.fsync === 'interval') this.#syncTimer ??= this.#syncLater();
    if (this.#wakeAfterCommit.size === 0) return;
    for (const key of this.#wakeAfterCommit) this.wakeups.wake(key);
    this.wakeups.ring();
  }

  /** Files that were removed take writes as before, but nobody finds these again. */
  #requireFiles(): void {
    const nowMs = performance.now();
    if (nowMs - this.#removedLookMs < REMOVED_LOOK_MS) return;
    this.#removedLookMs = nowMs;
    if (this.#rootWatch.isRemoved) throw pathError(this.path, new Error('its files were removed while they were open'));
  }

  /** What a failed commit means. LMDB reports a short write on a full disk as EIO. */
  async #explain(error: unknown, bytes: number): Promise<unknown> {
    this.#changes.drop();
    if (isMysyncError(error)) return error;
    let cause = error;
    if (error instanceof Error && 'commitError' in error) {
      cause = await Promise.resolve(error.commitError).then(
        () => error,
        (reason: unknown) => reason,
      );
    }
    return this.#room.explain(cause, bytes);
  }

  #tellStall(waitedMs: number): void {
    const message = `a commit has waited ${waitedMs / 1000} s: a stopped process may hold the write lock, or the disk hangs`;
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
