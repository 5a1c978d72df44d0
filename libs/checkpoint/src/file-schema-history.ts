import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Turns } from '@mysync/core';
import { checkpointErrors } from './errors.ts';
import { removeTemporaries, syncFolder, translate, writeSynced } from './files.ts';
import type { OwnerLock } from './owner-lock.ts';
import type { SchemaHistory, SchemaHistoryEntry, SchemaHistoryHead, SchemaHistoryStore } from './schema-history.ts';
import { encodeAddition, encodeHead, encodeHistory, parseHistory } from './schema-history-codec.ts';

const WHAT = 'the schema history';

export interface FileSchemaHistoryOptions {
  readonly path: string;
  /** Of the checkpoint that the history belongs to: held. */
  readonly lock: OwnerLock;
}

/**
 * A schema history in a file beside its checkpoint's. Spec: docs/spec/schema-history.md.
 *
 * 1. Additions are appended and synced; everything else writes the whole text beside the file, syncs it, and renames it over.
 * 2. Each owner begins with a file of its own (rewritten when it opens): what a frozen predecessor still appends lands in a file that
 *    nobody reads, and what it still renames was removed.
 * 3. After each write the lock is looked at: an addition of somebody who has lost it is not confirmed.
 */
export class FileSchemaHistoryStore implements SchemaHistoryStore {
  readonly #path: string;
  readonly #temporary: string;
  readonly #lock: OwnerLock;
  #file: FileHandle | undefined;
  #head: SchemaHistoryHead | undefined;
  readonly #turns = new Turns();
  #closed = false;

  private constructor(options: FileSchemaHistoryOptions) {
    this.#path = options.path;
    this.#lock = options.lock;
    this.#temporary = `${options.path}.${options.lock.token}.tmp`;
  }

  static async open(options: FileSchemaHistoryOptions): Promise<FileSchemaHistoryStore> {
    const store = new FileSchemaHistoryStore(options);
    try {
      await removeTemporaries(options.path);
    } catch (error) {
      throw translate(error, WHAT, options.path);
    }
    return store;
  }

  get head(): SchemaHistoryHead | null {
    return this.#head ?? null;
  }

  async load(): Promise<SchemaHistory | null> {
    return await this.#inTurn(() => this.#load());
  }

  async begin(): Promise<SchemaHistoryHead> {
    return await this.#inTurn(async () => {
      const head = { id: randomUUID(), sequence: 0 };
      await this.#replace(encodeHead(head), head);
      return head;
    });
  }

  async append(entries: readonly SchemaHistoryEntry[]): Promise<SchemaHistoryHead> {
    return await this.#inTurn(async () => {
      if (this.#file === undefined) await this.#load();
      const file = this.#file;
      if (file === undefined || this.#head === undefined) throw this.#fenced('no schema history was begun');
      const head = { id: this.#head.id, sequence: this.#head.sequence + 1 };
      const before = (await file.stat()).size;
      try {
        await file.appendFile(encodeAddition(head.sequence, entries));
        await file.datasync();
      } catch (error) {
        // half a line in the middle would be damage
        await file.truncate(before).catch(() => undefined);
        throw error;
      }
      await this.#stillOurs();
      this.#head = head;
      return head;
    });
  }

  async prune(keep: (entry: SchemaHistoryEntry, index: number) => boolean): Promise<void> {
    await this.#inTurn(async () => {
      const stored = await readHistory(this.#path);
      if (stored === null) return;
      const entries = stored.entries.filter(keep);
      if (entries.length < stored.entries.length)
        await this.#replace(encodeHistory({ ...stored, entries }), stored.head);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#turns.over();
    await this.#file?.close();
    this.#file = undefined;
  }

  async #load(): Promise<SchemaHistory | null> {
    const stored = await readHistory(this.#path);
    if (stored !== null && this.#file === undefined) await this.#replace(encodeHistory(stored), stored.head);
    return stored;
  }

  async #replace(content: string, head: SchemaHistoryHead): Promise<void> {
    try {
      await writeSynced(this.#temporary, content);
      await this.#stillOurs();
      await rename(this.#temporary, this.#path).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'ENOENT' ? this.#fenced('the text to be saved was removed by a successor') : error;
      });
      await syncFolder(dirname(this.#path));
    } catch (error) {
      await rm(this.#temporary, { force: true }).catch(() => undefined);
      throw error;
    }
    await this.#file?.close();
    this.#file = await open(this.#path, 'a', 0o600);
    this.#head = head;
  }

  async #stillOurs(): Promise<void> {
    if (!(await this.#lock.isHeld())) throw this.#fenced('the lock was taken over by another process');
  }

  async #inTurn<T>(act: () => Promise<T>): Promise<T> {
    if (this.#closed) throw this.#fenced('the schema history is closed');
    try {
      return await this.#turns.take(act);
    } catch (error) {
      throw translate(error, WHAT, this.#path);
    }
  }

  #fenced(message: string): Error {
    return checkpointErrors.CHECKPOINT_FENCED({ message, where: { path: this.#path } });
  }
}

/** Reads without the lock, for looking on. null when there is none. */
export async function readHistory(path: string): Promise<SchemaHistory | null> {
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw checkpointErrors.CHECKPOINT_UNREADABLE({
      message: 'the schema history cannot be read',
      where: { path },
      cause: error,
    });
  }
  return parseHistory(content, path);
}
