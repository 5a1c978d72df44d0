/**
 * Keeps commits that were made while another process opened the log.
 *
 * Opening an environment, lmdb-js 3.5.6 puts the number of the newest transaction into the lock file (`mdb_env_open2`): what the root pages said a moment
 * before, without the write lock. Whatever was committed in that moment is rolled back by it: the next transaction begins before it, and takes its place.
 * The root pages still show it. So each write transaction looks, under the write lock, whether it begins at the newest root page; one that does not puts the
 * number right, writes nothing, and is made anew.
 *
 * The number lies at byte 8 of the lock file (`struct MDB_txbody`); places in the root pages as in `data-file.ts`.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pageBytesOf, TRANSACTION_AT } from './data-file.ts';
import { DATA_FILE } from './directory.ts';

const NEWEST_AT = 8;

export class RootWatch {
  readonly #data: number;
  readonly #lock: number;
  readonly #places: readonly number[];
  readonly #word = Buffer.alloc(8);

  /** Of an environment that is open. */
  constructor(path: string) {
    this.#data = openSync(join(path, DATA_FILE), 'r');
    this.#lock = openSync(join(path, 'lock.mdb'), 'r+');
    this.#places = [TRANSACTION_AT, pageBytesOf(this.#data) + TRANSACTION_AT];
  }

  /** Only within a write transaction of that number: true when it must not write, since it began before the newest commit. The next one will not. */
  mendsRollback(transaction: number): boolean {
    let newest = 0n;
    for (const place of this.#places) {
      readSync(this.#data, this.#word, 0, 8, place);
      const committed = this.#word.readBigUInt64LE(0);
      if (committed > newest) newest = committed;
    }
    if (newest < BigInt(transaction)) return false;
    this.#word.writeBigUInt64LE(newest, 0);
    writeSync(this.#lock, this.#word, 0, 8, NEWEST_AT);
    return true;
  }

  /** True when the data file was removed while it was open. */
  get isRemoved(): boolean {
    return fstatSync(this.#data).nlink === 0;
  }

  close(): void {
    closeSync(this.#data);
    closeSync(this.#lock);
  }
}
