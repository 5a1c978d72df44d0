import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Checkpoint,
  checkpointErrors,
  type OwnedCheckpointStore,
  type OwnedLines,
  type OwnedText,
  parseCheckpoint,
  parseSchemaHistory,
  type SchemaHistory,
  type SchemaHistoryStore,
  TextCheckpointStore,
  TextSchemaHistoryStore,
} from '@mysync/checkpoint';
import { type Clock, systemClock } from '@mysync/core';
import { CheckpointSession, type MysqlPlace } from './session.ts';

export interface MysqlCheckpointStoreOptions extends MysqlPlace {
  /** Name of the source: the row's key. */
  readonly source: string;
  readonly clock?: Clock;
  /** An owner that has not renewed its ownership for this long is taken for dead; default 6,000 (ADR 0186). */
  readonly leaseMs?: number;
  readonly signal?: AbortSignal;
}

const TABLES = [
  `CREATE TABLE IF NOT EXISTS mysync_owner (
    source VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    owner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    renewals BIGINT UNSIGNED NOT NULL DEFAULT 0
  ) ENGINE = InnoDB`,
  `CREATE TABLE IF NOT EXISTS mysync_checkpoint (
    source VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    body LONGBLOB NULL
  ) ENGINE = InnoDB`,
  `CREATE TABLE IF NOT EXISTS mysync_schema_history (
    source VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    line INT UNSIGNED NOT NULL,
    body LONGBLOB NOT NULL,
    PRIMARY KEY (source, line)
  ) ENGINE = InnoDB`,
];

/**
 * A checkpoint, its schema history and their owner in three tables. Spec: docs/spec/checkpoint.md.
 *
 * 1. A row names the owner. Every write holds only where that name still stands, in the same statement or transaction: who was replaced
 *    changes nothing, however late it wakes up. A save is one statement: whoever is frozen in the middle of one holds no lock.
 * 2. An owner renews that row all the time; the checkpoint is not in it, or each renewal would put the whole of it into the server's log.
 *    Whoever wants it watches it for a lease: renewed meanwhile, it is alive (CHECKPOINT_LOCKED); else it is taken over, by compare-and-set
 *    on what was seen. Nobody's clock is compared with another's.
 * 3. A statement whose answer was lost is done again: the same content under the same name.
 */
export class MysqlCheckpointStore implements OwnedCheckpointStore {
  readonly #store: TextCheckpointStore;
  readonly #row: OwnedRow;
  #history: TextSchemaHistoryStore | undefined;

  private constructor(row: OwnedRow) {
    this.#row = row;
    this.#store = new TextCheckpointStore(row, () => row.release());
  }

  /** Makes the tables where they are missing, and takes the row. Throws CHECKPOINT_LOCKED while a living owner has it. */
  static async open(options: MysqlCheckpointStoreOptions): Promise<MysqlCheckpointStore> {
    const row = new OwnedRow(options);
    try {
      await row.acquire(options.signal);
    } catch (error) {
      row.close();
      throw error;
    }
    return new MysqlCheckpointStore(row);
  }

  async load(): Promise<Checkpoint | null> {
    return await this.#store.load();
  }

  async save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    await this.#store.save(checkpoint, replaces);
  }

  /** Under the same ownership; closed with this store. */
  schemaHistory(): Promise<SchemaHistoryStore> {
    this.#history ??= new TextSchemaHistoryStore(this.#row.lines);
    return Promise.resolve(this.#history);
  }

  async close(): Promise<void> {
    await this.#history?.close();
    await this.#store.close();
  }
}

/** Reads without owning it, for looking on again and again: over one connection, made anew when it was lost. */
export class MysqlCheckpointLook {
  readonly #session: CheckpointSession;
  readonly #source: string;

  constructor(place: MysqlPlace, source: string) {
    this.#session = new CheckpointSession(place);
    this.#source = source;
  }

  /** null when there is none. */
  async load(): Promise<Checkpoint | null> {
    try {
      const text = await readBody(this.#session, this.#source);
      return text === null ? null : parseCheckpoint(text, this.#session.name);
    } catch (error) {
      if (isMissingTable(error)) return null;
      throw error;
    }
  }

  close(): void {
    this.#session.close();
  }
}

/** The schema history, once. */
export async function readMysqlSchemaHistory(place: MysqlPlace, source: string): Promise<SchemaHistory | null> {
  const session = new CheckpointSession(place);
  try {
    const text = await readLines(session, source);
    return text === null ? null : parseSchemaHistory(text, session.name);
  } catch (error) {
    if (isMissingTable(error)) return null;
    throw error;
  } finally {
    session.close();
  }
}

const NO_SUCH_TABLE = 1146;

/** Nobody has made the tables yet. */
function isMissingTable(error: unknown): boolean {
  return (error as { cause?: { errno?: number } }).cause?.errno === NO_SUCH_TABLE;
}

async function readLines(session: CheckpointSession, source: string): Promise<string | null> {
  const rows = await session.rows('SELECT body FROM mysync_schema_history WHERE source = ? ORDER BY line', [source]);
  return rows.length === 0 ? null : rows.map((row) => String(row['body'])).join('');
}

class OwnedRow implements OwnedText {
  readonly #session: CheckpointSession;
  readonly #source: string;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #owner = `${hostname()} ${process.pid} ${randomUUID()}`;
  #renewing: NodeJS.Timeout | undefined;

  constructor({ source, clock, leaseMs, ...place }: MysqlCheckpointStoreOptions) {
    this.#session = new CheckpointSession(place);
    this.#source = source;
    this.#clock = clock ?? systemClock;
    this.#leaseMs = leaseMs ?? 6_000;
  }

  get where(): string {
    return `${this.#session.name} mysync_checkpoint ${this.#source}`;
  }

  async acquire(signal: AbortSignal | undefined): Promise<void> {
    for (const sql of TABLES) await this.#session.change(sql, []);
    for (;;) {
      signal?.throwIfAborted();
      // each time: an operator may delete them while a dead owner is watched
      for (const table of ['mysync_owner', 'mysync_checkpoint']) {
        await this.#session.change(`INSERT IGNORE INTO ${table} (source) VALUES (?)`, [this.#source]);
      }
      const seen = await this.#seen();
      if (seen.owner !== null && seen.owner !== this.#owner) {
        await this.#clock.sleep(this.#leaseMs, signal);
        const now = await this.#seen();
        if (now.owner === seen.owner && now.renewals !== seen.renewals) throw this.#locked(seen.owner);
        if (now.owner !== seen.owner) continue;
      }
      const taken = await this.#session.change(
        'UPDATE mysync_owner SET owner = ?, renewals = renewals + 1 WHERE source = ? AND owner <=> ? AND renewals = ?',
        [this.#owner, this.#source, seen.owner, seen.renewals],
      );
      if (taken === 1) break;
    }
    let isUnderWay = false;
    this.#renewing = setInterval(() => {
      // a server that does not answer is not asked twice at a time
      if (isUnderWay) return;
      isUnderWay = true;
      // One that fails is not an error by itself: whether the row is still ours is part of each write.
      const done = (): void => {
        isUnderWay = false;
      };
      this.#renew().then(done, done);
    }, this.#leaseMs / 5);
    this.#renewing.unref();
  }

  async read(): Promise<string | null> {
    return await readBody(this.#session, this.#source);
  }

  async write(text: string): Promise<void> {
    const found = await this.#session.change(
      'UPDATE mysync_owner JOIN mysync_checkpoint USING (source) SET body = ?, renewals = renewals + 1 WHERE source = ? AND owner = ?',
      [text, this.#source, this.#owner],
    );
    if (found === 0) throw this.#fenced();
  }

  /** The schema history's lines, under the same ownership. */
  get lines(): OwnedLines {
    const source = this.#source;
    const mine = {
      sql: 'UPDATE mysync_owner SET renewals = renewals + 1 WHERE source = ? AND owner = ?',
      values: [source, this.#owner],
      rows: 1,
    };
    const change = async (statements: Parameters<CheckpointSession['changeAll']>[0]): Promise<void> => {
      if (!(await this.#session.changeAll([mine, ...statements]))) throw this.#fenced();
    };
    return {
      where: `${this.#session.name} mysync_schema_history ${source}`,
      read: () => readLines(this.#session, source),
      replace: async (text) => {
        const insert = 'INSERT INTO mysync_schema_history VALUES (?, 0, ?)';
        await change([
          { sql: 'DELETE FROM mysync_schema_history WHERE source = ?', values: [source] },
          { sql: insert, values: [source, Buffer.from(text)] },
        ]);
      },
      append: async (line) => {
        const insert =
          'INSERT INTO mysync_schema_history SELECT ?, MAX(line) + 1, ? FROM mysync_schema_history WHERE source = ?';
        await change([{ sql: insert, values: [source, Buffer.from(line), source] }]);
      },
    };
  }

  /** Gives the row up, if it is still ours. */
  async release(): Promise<void> {
    if (this.#renewing === undefined) return;
    clearInterval(this.#renewing);
    this.#renewing = undefined;
    try {
      await this.#session.change('UPDATE mysync_owner SET owner = NULL WHERE source = ? AND owner = ?', [
        this.#source,
        this.#owner,
      ]);
    } catch {
      // the lease runs out by itself
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#session.close();
  }

  async #renew(): Promise<void> {
    await this.#session.change('UPDATE mysync_owner SET renewals = renewals + 1 WHERE source = ? AND owner = ?', [
      this.#source,
      this.#owner,
    ]);
  }

  async #seen(): Promise<{ readonly owner: string | null; readonly renewals: string }> {
    const [row] = await this.#session.rows('SELECT owner, renewals FROM mysync_owner WHERE source = ?', [this.#source]);
    return { owner: (row?.['owner'] as string | null | undefined) ?? null, renewals: String(row?.['renewals'] ?? 0) };
  }

  #locked(owner: string): Error {
    const [host, pid] = owner.split(' ');
    return checkpointErrors.CHECKPOINT_LOCKED({
      message: `the checkpoint is in use by process ${pid} on ${host}`,
      where: { path: this.where },
    });
  }

  #fenced(): Error {
    return checkpointErrors.CHECKPOINT_FENCED({
      message: 'the row in mysync_owner names another process, or was deleted',
      where: { path: this.where },
    });
  }
}

async function readBody(session: CheckpointSession, source: string): Promise<string | null> {
  const [row] = await session.rows('SELECT body FROM mysync_checkpoint WHERE source = ?', [source]);
  const body: unknown = row?.['body'];
  return Buffer.isBuffer(body) ? body.toString('utf8') : null;
}
