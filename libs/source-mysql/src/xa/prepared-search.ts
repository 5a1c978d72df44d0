/**
 * Finds XA transactions that were prepared before the place that reading began at: the log is read backward file by file, each
 * forward, up to that place. A checkpoint need not know of them, and reading may begin anywhere.
 *
 * 1. A file is read at most once: all transactions that are still prepared at its end are kept (held in the shared memory, then in files).
 */
import { type BinlogPosition, compareBinlogPositions, formatBinlogPosition } from '@mysync/core';
import type { BinlogConnection } from '../connection/binlog-connection.ts';
import { atLogEnd } from '../connection/log-end.ts';
import { sourceErrors } from '../errors.ts';
import { EventUnfolder } from '../unfold/event-unfolder.ts';
import type { EventStore, HeldMemory } from './event-store.ts';
import { XaHolder } from './xa-holder.ts';

const FIRST_OFFSET = 4;

export interface PreparedSearchOptions {
  /** Where reading began: everything before it is searched. */
  readonly from: BinlogPosition;
  readonly memory: HeldMemory;
  readonly signal: AbortSignal;
  /** Names of the files of the log, oldest first. */
  files(): Promise<readonly string[]>;
  /** A dump that stops at the log's end. */
  open(from: BinlogPosition): Promise<BinlogConnection>;
}

export class PreparedSearch {
  readonly #options: PreparedSearchOptions;
  /** By file: what was still prepared at its end (or at `from`). */
  readonly #read: XaHolder[] = [];
  #left: string[] | undefined;

  constructor(options: PreparedSearchOptions) {
    this.#options = options;
  }

  /** Throws SOURCE_XA_PREPARE_GONE when no file has it. */
  async find(xid: string): Promise<EventStore> {
    for (const holder of this.#read) {
      const store = holder.take(xid);
      if (store !== undefined) return store;
    }
    const { from } = this.#options;
    if (from.file === '') {
      throw sourceErrors.SOURCE_XA_PREPARE_GONE({
        message: `the XA transaction ${xid} is in the GTID set that reading began behind, but not its outcome`,
        where: { xid },
      });
    }
    this.#left ??= (await this.#options.files()).filter(
      (file) => compareBinlogPositions({ file, offset: FIRST_OFFSET }, { ...from, offset: FIRST_OFFSET }) <= 0,
    );
    for (;;) {
      const file = this.#left.pop();
      if (file === undefined) break;
      const holder = await this.#readFile(file);
      this.#read.push(holder);
      const store = holder.take(xid);
      if (store !== undefined) return store;
    }
    throw sourceErrors.SOURCE_XA_PREPARE_GONE({
      message: `the XA transaction ${xid} was prepared before the oldest file of the log`,
      where: { xid, readFrom: formatBinlogPosition(from) },
    });
  }

  close(): void {
    for (const holder of this.#read) holder.close();
  }

  async #readFile(file: string): Promise<XaHolder> {
    const { memory, from, signal } = this.#options;
    const start = { file, offset: FIRST_OFFSET };
    const holder = new XaHolder({ memory });
    const unfolder = new EventUnfolder({ from: start, xa: holder });
    const reachedEnd = (): boolean =>
      unfolder.position.file !== file || (file === from.file && unfolder.position.offset >= from.offset);
    const connection = await this.#options.open(start);
    try {
      for (;;) {
        for (let event = connection.next(); event !== undefined; event = connection.next()) {
          const unfolded = unfolder.unfold(event);
          if (unfolded !== undefined) for await (const _ of unfolded);
          if (reachedEnd()) return holder;
        }
        if (await atLogEnd(connection, signal)) return holder;
      }
    } catch (error) {
      holder.close();
      throw error;
    } finally {
      await connection.close();
    }
  }
}
