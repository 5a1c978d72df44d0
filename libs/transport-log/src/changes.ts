/**
 * What one action of a group wants to change. It goes into the transaction when the action has returned, so an action that
 * throws has changed nothing, whatever it did before, and the others of its group are not touched.
 *
 * Why not by the store: lmdb-js 3.5.6 commits what a callback wrote before it threw, and a child transaction of LMDB, which could be
 * undone, copies the list of all free pages for each action.
 */
import type { Database } from 'lmdb';

interface Change {
  readonly database: Pick<Database<Buffer, string | Buffer>, 'putSync' | 'removeSync'>;
  readonly key: string | Buffer;
  /** null: the entry goes. */
  readonly value: Buffer | null;
}

export class Changes {
  readonly #changes: Change[] = [];
  readonly #announced: string[] = [];
  #bytes = 0;

  /** The value is read when the action has returned: until then it must stay as it is. */
  set<K extends string | Buffer>(database: Database<Buffer, K>, key: K, value: Buffer | null): void {
    this.#changes.push({ database: database as Database<Buffer, string | Buffer>, key, value });
  }

  /** Counts bytes of batches that come or go. */
  addBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  announce(key: string): void {
    this.#announced.push(key);
  }

  /** Within the transaction: what the action wanted is written, in its order. Returns by how much the batches grew. */
  apply(announced: Set<string>): number {
    for (const { database, key, value } of this.#changes) {
      if (value === null) database.removeSync(key);
      else database.putSync(key, value);
    }
    for (const key of this.#announced) announced.add(key);
    const bytes = this.#bytes;
    this.drop();
    return bytes;
  }

  drop(): void {
    this.#changes.length = 0;
    this.#announced.length = 0;
    this.#bytes = 0;
  }
}
