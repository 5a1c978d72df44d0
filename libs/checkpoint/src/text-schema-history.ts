import { randomUUID } from 'node:crypto';
import { Turns } from '@mysync/core';
import { checkpointErrors } from './errors.ts';
import type { SchemaHistory, SchemaHistoryEntry, SchemaHistoryHead, SchemaHistoryStore } from './schema-history.ts';
import { encodeAddition, encodeHead, encodeHistory, parseHistory } from './schema-history-codec.ts';

/** A place for a text that grows by lines, which one owner at a time may write. */
export interface OwnedLines {
  /** For error texts. */
  readonly where: string;
  /** The lines in their order, as one text; null when nothing was written yet. */
  read(): Promise<string | null>;
  /** In place of all lines, durable and all at once. Throws CHECKPOINT_FENCED when another owner has taken over. */
  replace(text: string): Promise<void>;
  /** Behind the last line, durable and whole or not at all. Throws CHECKPOINT_FENCED likewise. */
  append(line: string): Promise<void>;
}

/** A schema history over a place that knows who owns it. Calls are served one after another. */
export class TextSchemaHistoryStore implements SchemaHistoryStore {
  readonly #lines: OwnedLines;
  #head: SchemaHistoryHead | null = null;
  readonly #turns = new Turns();
  #closed = false;

  constructor(lines: OwnedLines) {
    this.#lines = lines;
  }

  get head(): SchemaHistoryHead | null {
    return this.#head;
  }

  async load(): Promise<SchemaHistory | null> {
    return await this.#inTurn(() => this.#load());
  }

  async begin(): Promise<SchemaHistoryHead> {
    return await this.#inTurn(async () => {
      const head = { id: randomUUID(), sequence: 0 };
      await this.#lines.replace(encodeHead(head));
      this.#head = head;
      return head;
    });
  }

  async append(entries: readonly SchemaHistoryEntry[]): Promise<SchemaHistoryHead> {
    return await this.#inTurn(async () => {
      if (this.#head === null) await this.#load();
      if (this.#head === null) throw this.#fenced('no schema history was begun');
      const head = { id: this.#head.id, sequence: this.#head.sequence + 1 };
      await this.#lines.append(encodeAddition(head.sequence, entries));
      this.#head = head;
      return head;
    });
  }

  async prune(keep: (entry: SchemaHistoryEntry, index: number) => boolean): Promise<void> {
    await this.#inTurn(async () => {
      const stored = await this.#load();
      if (stored === null) return;
      const entries = stored.entries.filter(keep);
      if (entries.length < stored.entries.length) await this.#lines.replace(encodeHistory({ ...stored, entries }));
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#turns.over();
  }

  async #load(): Promise<SchemaHistory | null> {
    const text = await this.#lines.read();
    if (text === null) return null;
    const stored = parseHistory(text, this.#lines.where);
    this.#head = stored.head;
    return stored;
  }

  async #inTurn<T>(act: () => Promise<T>): Promise<T> {
    if (this.#closed) throw this.#fenced('the schema history is closed');
    return await this.#turns.take(act);
  }

  #fenced(message: string): Error {
    return checkpointErrors.CHECKPOINT_FENCED({ message, where: { path: this.#lines.where } });
  }
}
