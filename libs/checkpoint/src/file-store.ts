import { readFile, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type Clock, makeFolder, systemClock, Turns } from '@mysync/core';
import { parseCheckpoint } from './checkpoint-codec.ts';
import { checkpointErrors } from './errors.ts';
import { FileSchemaHistoryStore } from './file-schema-history.ts';
import { removeTemporaries, syncFolder, translate, writeSynced } from './files.ts';
import { OwnerLock } from './owner-lock.ts';
import type { Checkpoint, OwnedCheckpointStore } from './port.ts';
import type { SchemaHistoryStore } from './schema-history.ts';
import { encodeVerified, requireReplaceable } from './text-store.ts';

const WHAT = 'the checkpoint';

export interface FileCheckpointStoreOptions {
  /** Of the checkpoint file; its folder is made when it is missing. */
  readonly path: string;
  readonly clock?: Clock;
  /** How long the lock of an owner that cannot be looked up is watched before it is taken over; default 6,000. */
  readonly leaseMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * A checkpoint in a file. Spec: docs/spec/checkpoint.md.
 *
 * 1. One living process owns the file (`path.lock`); a dead owner's lock is taken over.
 * 2. At every instant, whatever is killed and whatever loses power, the file holds one whole checkpoint: the last one saved, or
 *    the one being saved. Written beside it, synced, renamed over it, and the folder synced.
 * 3. What is not whole and ours is CHECKPOINT_INVALID, in `load` and in `save`: never treated as absent, never overwritten.
 * 4. A save replaces exactly the epoch that its caller names; otherwise CHECKPOINT_FENCED.
 * 5. An owner that was frozen until its lock was given away cannot save any more: it looks at the lock after its new text is written,
 *    and who takes over removes such texts before loading, so its rename finds nothing.
 */
export class FileCheckpointStore implements OwnedCheckpointStore {
  readonly #path: string;
  readonly #temporary: string;
  readonly #lock: OwnerLock;
  readonly #saves = new Turns();
  #closed = false;
  #history: FileSchemaHistoryStore | undefined;

  private constructor(path: string, lock: OwnerLock) {
    this.#path = path;
    this.#temporary = `${path}.${lock.token}.tmp`;
    this.#lock = lock;
  }

  /** Takes the lock. Throws CHECKPOINT_LOCKED while another living process has it. */
  static async open(options: FileCheckpointStoreOptions): Promise<FileCheckpointStore> {
    const path = resolve(options.path);
    const clock = options.clock ?? systemClock;
    const lock = new OwnerLock({ path: `${path}.lock`, clock, leaseMs: options.leaseMs ?? 6_000 });
    try {
      for (const made of makeFolder(dirname(path)).toReversed()) await syncFolder(dirname(made));
      await lock.acquire(options.signal);
    } catch (error) {
      throw translate(error, WHAT, path, options.signal);
    }
    const store = new FileCheckpointStore(path, lock);
    try {
      await removeTemporaries(path);
    } catch (error) {
      await store.close();
      throw translate(error, WHAT, path, options.signal);
    }
    return store;
  }

  async load(): Promise<Checkpoint | null> {
    return readCheckpointFile(this.#path);
  }

  /** Calls are served one after another. */
  async save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    await this.#saves.take(() => this.#save(checkpoint, replaces));
  }

  /** The schema history that stands beside the checkpoint (`PATH.schema`), under the same lock; closed with this store. */
  async schemaHistory(): Promise<SchemaHistoryStore> {
    this.#history ??= await FileSchemaHistoryStore.open({ path: schemaHistoryPath(this.#path), lock: this.#lock });
    return this.#history;
  }

  /** Waits for a save that runs, then gives the lock up. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#saves.over();
    await this.#history?.close();
    await this.#lock.release();
  }

  async #save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    if (this.#closed) throw this.#fenced('the checkpoint store is closed');
    const content = encodeVerified(checkpoint, this.#path);
    requireReplaceable({ stored: await this.load(), checkpoint, replaces, where: this.#path });
    try {
      await writeSynced(this.#temporary, content);
      if (!(await this.#lock.isHeld())) throw this.#fenced('the lock was taken over by another process');
      await this.#putInPlace();
      await syncFolder(dirname(this.#path));
    } catch (error) {
      await rm(this.#temporary, { force: true }).catch(() => undefined);
      throw translate(error, WHAT, this.#path);
    }
  }

  async #putInPlace(): Promise<void> {
    try {
      await rename(this.#temporary, this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw this.#fenced('the text to be saved was removed by another process that has taken over');
    }
  }

  #fenced(message: string): Error {
    return checkpointErrors.CHECKPOINT_FENCED({ message, where: { path: this.#path } });
  }
}

/** Reads without the lock, for looking on: always one whole checkpoint, or null when there is none. */
export async function readCheckpointFile(path: string): Promise<Checkpoint | null> {
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') return null;
    const details = { where: { path }, cause: error };
    if (code === 'EISDIR') {
      throw checkpointErrors.CHECKPOINT_INVALID({
        ...details,
        message: 'a folder stands where the checkpoint file should be',
      });
    }
    throw checkpointErrors.CHECKPOINT_UNREADABLE({ ...details, message: 'the checkpoint file cannot be read' });
  }
  return parseCheckpoint(content, path);
}

/** Beside the checkpoint at `path`. */
export function schemaHistoryPath(path: string): string {
  return `${path}.schema`;
}
