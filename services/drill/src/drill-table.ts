import { type Clock, causeText, formatTableRef, isMysyncError, type TableRef, Turns } from '@mysync/core';
import type { ServerSession } from '@mysync/source-mysql';
import { drillErrors } from './errors.ts';

export interface DrillTableOptions {
  /** With the server that is to be changed; again after each failure. */
  openSession(): Promise<ServerSession>;
  /** Whose session it is. */
  readonly user: string;
  readonly table: TableRef;
  readonly clock: Clock;
}

/** Marks a table as ours: a drill never writes to another one. */
const MARK = 'made by mysync drill: may be dropped';
const KEYS = 200;
/** Keys that rows move to and back from. */
const MOVED = 100_000;
const PAUSE_MS = 20;

/**
 * The table that a drill writes to: changed all the time, rows deleted and inserted again, keys that move, small transactions and some larger
 * ones.
 */
export class DrillTable {
  readonly #options: DrillTableOptions;
  readonly #turns = new Turns();
  #session: ServerSession | undefined;
  #changes = 0;
  /** Why the last turn failed; undefined when it did not. */
  #failure: unknown;

  constructor(options: DrillTableOptions) {
    this.#options = options;
  }

  /** How many changes of rows were made. */
  get changes(): number {
    return this.#changes;
  }

  /** Every id that a row may have. */
  get ids(): readonly number[] {
    const ids = Array.from({ length: KEYS }, (_, id) => id);
    return [...ids, ...ids.map((id) => MOVED + id)];
  }

  /** Also while changes are made: they wait for the whole of it. */
  async create(): Promise<void> {
    await this.#turns.take(() => this.#create());
  }

  async drop(): Promise<void> {
    await this.#query(`DROP TABLE IF EXISTS ${this.#name}`);
  }

  /**
   * Changes rows until the signal aborts. The server is the user's: when it goes away, changes wait for it. Whether any were made is for
   * `requireChanged` to say.
   */
  async change(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (let turn = 1; !signal.aborted; turn++) {
      try {
        await this.#turn(turn);
        this.#failure = undefined;
      } catch (error) {
        if (isMysyncError(error) && FINAL.has(error.code)) throw error;
        this.#failure = error;
      }
      await clock.sleep(PAUSE_MS, signal).catch(() => undefined);
    }
  }

  /** Waits for more changes than these. Throws DRILL_NOTHING_CHANGED when none is made for so long; `fault`: under which. */
  async requireChanged(
    changes: number,
    {
      fault,
      patienceMs,
      signal,
    }: { readonly fault: string; readonly patienceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { clock, table } = this.#options;
    const until = clock.monotonic() + patienceMs;
    while (this.#changes === changes) {
      if (clock.monotonic() >= until) {
        const [name, cause] = [formatTableRef(table), this.#failure];
        const why = cause === undefined ? 'the server does not answer, or the table has no rows' : causeText(cause);
        throw drillErrors.DRILL_NOTHING_CHANGED({
          message: `nothing of ${name} could be changed under the fault '${fault}': ${why}`,
          where: { table: name, fault },
          ...(cause === undefined ? {} : { cause }),
        });
      }
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  /** To be called when `change` has ended. */
  async close(): Promise<void> {
    await this.#turns.take(async () => this.#drop());
  }

  async #create(): Promise<void> {
    const { table } = this.#options;
    const found = await this.#with((session) =>
      session.first(
        'SELECT TABLE_COMMENT AS mark FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?',
        [table.database, table.table],
      ),
    );
    const mark = found?.['mark'];
    if (mark !== undefined && mark !== MARK) {
      const name = formatTableRef(table);
      throw drillErrors.DRILL_TABLE_FOREIGN({
        message: `${name} is there, and no drill has made it`,
        where: { table: name },
      });
    }
    await this.#act(
      `CREATE TABLE IF NOT EXISTS ${this.#name} (id INT NOT NULL PRIMARY KEY, n BIGINT NOT NULL, note VARCHAR(200)) COMMENT = '${MARK}'`,
    );
    await this.#act(`DELETE FROM ${this.#name}`);
    await this.#act(`INSERT INTO ${this.#name} VALUES ?`, [Array.from({ length: KEYS }, (_, id) => [id, 0, 'begins'])]);
  }

  async #turn(turn: number): Promise<void> {
    const name = this.#name;
    const id = turn % KEYS;
    const note = `turn ${turn} ${'x'.repeat(turn % 100)}`;
    await this.#query(`UPDATE ${name} SET n = n + 1, note = ? WHERE id BETWEEN ? AND ?`, [note, id, id + 4]);
    if (turn % 3 === 0) await this.#query(`UPDATE ${name} SET id = id + ${MOVED} WHERE id = ?`, [id]);
    if (turn % 3 === 1) await this.#query(`UPDATE ${name} SET id = id - ${MOVED} WHERE id >= ${MOVED} LIMIT 3`);
    if (turn % 5 === 0) {
      await this.#query(`DELETE FROM ${name} WHERE id = ?`, [(id * 7) % KEYS]);
      await this.#query(`INSERT IGNORE INTO ${name} VALUES (?, ?, 'again')`, [(id * 7) % KEYS, turn]);
    }
    if (turn % 100 === 0) await this.#query(`UPDATE ${name} SET n = n + 1`);
  }

  get #name(): string {
    const { database, table } = this.#options.table;
    return [database, table].map((part) => `\`${part.replaceAll('`', '``')}\``).join('.');
  }

  /** One at a time: a failure ends the session for all. */
  async #query(sql: string, values: readonly unknown[] = []): Promise<void> {
    await this.#turns.take(() => this.#act(sql, values));
  }

  async #act(sql: string, values: readonly unknown[] = []): Promise<void> {
    await this.#with(async (session) => {
      this.#changes += await session.change(sql, values);
    });
  }

  async #with<T>(use: (session: ServerSession) => Promise<T>): Promise<T> {
    try {
      this.#session ??= await this.#options.openSession();
      return await use(this.#session);
    } catch (error) {
      this.#drop();
      throw this.#told(error);
    }
  }

  /** What the server does not permit is for the drill's table to say; all else says it better itself. */
  #told(error: unknown): unknown {
    const isDenied = isMysyncError(error, 'SOURCE_GRANT_MISSING') || isNoDatabase(error);
    if (!isDenied) return error;
    const name = formatTableRef(this.#options.table);
    return drillErrors.DRILL_TABLE_DENIED({
      message: `user '${this.#options.user}' may not do what a drill does with ${name}: ${causeText(error)}`,
      where: { table: name },
      cause: error,
    });
  }

  #drop(): void {
    this.#session?.close();
    this.#session = undefined;
  }
}

/** Under these nothing will ever be changed, however long a fault lasts. */
const FINAL: ReadonlySet<string> = new Set(['DRILL_TABLE_DENIED', 'SOURCE_ACCESS_DENIED']);

function isNoDatabase(error: unknown): boolean {
  return isMysyncError(error) && (error.cause as { code?: unknown } | undefined)?.code === 'ER_BAD_DB_ERROR';
}
