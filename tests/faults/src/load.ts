/**
 * What an application does to the tables while things break: counters, moving keys, deletes and re-inserts, transactions of many
 * rows, rollbacks, at about the rate that was asked for.
 *
 * Every change writes a number that this process has never used before into the row's `n`, from one counter that only rises; a
 * key belongs to one session. So whatever a key goes through (changed, deleted, put back, moved away and another row moved
 * here), its `n` only rises in commit order, and a copy in which it falls, or in which it comes back after the key was seen
 * gone, was wrong at that moment. Numbers of transactions that were rolled back are kept: nobody may ever see one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type SqlAddress, textConnection } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';
import { Dice } from './dice.ts';

/** Key columns by table. */
export const TABLES: Readonly<Record<string, readonly string[]>> = {
  probe: ['id'],
  counter: ['id'],
  bulk: ['id'],
  pair: ['a', 'b'],
};
export const PROBES = 24;
export const COUNTERS = 48;
const SESSIONS = 3;
const PROBE_MS = 100;
/** Keys of `bulk` and `pair` that a session uses. */
const OWN_KEYS = 1500;
const PAIRS = 40;
/** Of the rows of a burst, counted from the first: so many, each so far behind the one before, were there before it, and are looked at all along. Bursts of 3,000 rows have 20 of them. */
export const WATCHED_OF_BURST = { every: 150, count: 130 };

export interface LoadOptions {
  readonly address: SqlAddress;
  readonly database: string;
  readonly seed: number;
  readonly rowsPerSecond: number;
}

export class Load {
  readonly #options: LoadOptions;
  #stopping = new AbortController();
  #n = Date.now() * 1000;
  #sessions: Promise<void>[] = [];
  /** Nothing is changed while this holds. */
  paused = false;
  /** Rows of committed changes. */
  rows = 0;
  /** When the newest probes were committed, in ms since 1970. */
  probedMs = Date.now();
  /** Why the last session ended by an error; '' before there was one. */
  trouble = '';
  /** Numbers that were rolled back. */
  readonly never = new Set<number>();
  /** Most rows in one transaction, which some seeds raise. */
  bigRows = 2000;
  bigChance = 0.004;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** The tables, with rows that are there before anything reads them. */
  async prepare(): Promise<void> {
    const { address, database } = this.#options;
    const sql = await textConnection(address);
    try {
      await sql.query(`CREATE DATABASE \`${database}_ck\` CHARACTER SET utf8mb4;
        CREATE DATABASE \`${database}\` CHARACTER SET utf8mb4; USE \`${database}\`;
        CREATE TABLE probe (id INT PRIMARY KEY, n BIGINT NOT NULL);
        CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL);
        CREATE TABLE bulk (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, g INT, pad VARCHAR(400));
        CREATE TABLE pair (a INT NOT NULL, b INT NOT NULL, n BIGINT NOT NULL, note VARCHAR(40) NULL, PRIMARY KEY (a, b))`);
      const now = Date.now();
      await sql.query('INSERT INTO probe VALUES ?', [Array.from({ length: PROBES }, (_, id) => [id, now])]);
      await sql.query('INSERT INTO counter VALUES ?', [
        Array.from({ length: COUNTERS }, (_, id) => [id, this.#next()]),
      ]);
      const rows = Array.from({ length: 300 }, (_, id) => [keyOf(id % SESSIONS, id), this.#next(), 0, `before ${id}`]);
      await sql.query('INSERT INTO bulk VALUES ?', [rows]);
    } finally {
      await sql.end();
    }
  }

  /** Also after it was stopped. */
  start(): void {
    this.#stopping = new AbortController();
    this.#sessions = [this.#probe(), ...Array.from({ length: SESSIONS }, (_, session) => this.#session(session))];
  }

  /** Ends after the changes under way; everything that was committed is then there to be compared. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#sessions);
  }

  /** One transaction of so many rows, under keys that no session uses. Rejects when it was not committed, as far as is known. */
  async burst(rows: number): Promise<void> {
    const sql = await textConnection(this.#options.address);
    sql.on('error', () => undefined);
    try {
      await sql.query(`USE \`${this.#options.database}\``);
      const watched = Array.from(
        { length: Math.min(WATCHED_OF_BURST.count, Math.floor(rows / WATCHED_OF_BURST.every)) },
        (_, i) => [burstKey(i * WATCHED_OF_BURST.every), this.#next(), 2, 'before the burst'],
      );
      await sql.query('REPLACE INTO bulk VALUES ?', [watched]);
      await sql.query('BEGIN');
      for (let from = 0; from < rows; from += 1000) {
        const count = Math.min(1000, rows - from);
        const batch = Array.from({ length: count }, (_, i) => [burstKey(from + i), this.#next(), 2, 'burst']);
        await sql.query('REPLACE INTO bulk VALUES ?', [batch]);
      }
      await sql.query('COMMIT');
      this.rows += watched.length + rows;
    } finally {
      sql.destroy();
    }
  }

  #next(): number {
    this.#n += 1;
    return this.#n;
  }

  /** Runs `work` again and again on a connection that is replaced whenever the server is gone. */
  async #connected(work: (sql: Connection) => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let sql: Connection | null = null;
      try {
        sql = await textConnection(this.#options.address);
        sql.on('error', () => undefined);
        await sql.query(`USE \`${this.#options.database}\``);
        while (!signal.aborted) await (this.paused ? sleep(20) : work(sql));
        await sql.end();
      } catch (error) {
        this.trouble = String(error);
        sql?.destroy();
        if (!signal.aborted) await sleep(100);
      }
    }
  }

  async #probe(): Promise<void> {
    await this.#connected(async (sql) => {
      const now = Date.now();
      await sql.query('UPDATE probe SET n = ?', [now]);
      this.probedMs = now;
      this.rows += PROBES;
      await sleep(PROBE_MS);
    });
  }

  async #session(session: number): Promise<void> {
    const dice = new Dice(this.#options.seed * 31 + session);
    const rate = Math.max(10, (this.#options.rowsPerSecond - (PROBES * 1000) / PROBE_MS) / SESSIONS);
    let budget = 0;
    let last = performance.now();
    await this.#connected(async (sql) => {
      const now = performance.now();
      // what a dead server made us miss is not made up for in one burst
      budget = Math.min(budget + ((now - last) * rate) / 1000, rate / 2);
      last = now;
      if (budget < 0) {
        await sleep(Math.min(100, (-budget * 1000) / rate));
        return;
      }
      const rows = await this.#change(sql, dice, session);
      budget -= rows;
      this.rows += rows;
    });
  }

  /** One transaction; gives the rows it changed, about. */
  async #change(sql: Connection, dice: Dice, session: number): Promise<number> {
    if (dice.chance(this.bigChance)) return await this.#big(sql, dice, session);
    const roll = dice.next();
    if (roll < 0.45) return await this.#count(sql, dice, session);
    if (roll < 0.6) return await this.#insert(sql, dice, session, dice.integer(1, 40));
    if (roll < 0.72) return await this.#update(sql, dice, session);
    if (roll < 0.8) return await this.#remove(sql, dice, session);
    if (roll < 0.88) return await this.#move(sql, dice, session);
    if (roll < 0.94) return await this.#pairs(sql, dice, session);
    return await this.#together(sql, dice, session);
  }

  /** A counter is raised, or taken away and put back. */
  async #count(sql: Connection, dice: Dice, session: number): Promise<number> {
    const id = dice.integer(0, COUNTERS / SESSIONS - 1) * SESSIONS + session;
    if (dice.chance(0.1)) await sql.query('DELETE FROM counter WHERE id = ?', [id]);
    else await sql.query('INSERT INTO counter VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)', [id, this.#next()]);
    return 1;
  }

  async #insert(sql: Connection, dice: Dice, session: number, count: number): Promise<number> {
    const from = dice.integer(0, OWN_KEYS - 1);
    const pad = 'x'.repeat(dice.integer(0, 300));
    const rows = Array.from({ length: count }, (_, i) => [
      keyOf(session, from + i),
      this.#next(),
      dice.integer(0, 9),
      pad,
    ]);
    const verb = dice.chance(0.5) ? 'REPLACE INTO' : 'INSERT IGNORE INTO';
    await sql.query(`${verb} bulk VALUES ?`, [rows]);
    return count;
  }

  async #update(sql: Connection, dice: Dice, session: number): Promise<number> {
    const [from, to] = range(dice, session, 30);
    await sql.query('UPDATE bulk SET n = ?, g = g + 1 WHERE id BETWEEN ? AND ?', [this.#next(), from, to]);
    return 20;
  }

  async #remove(sql: Connection, dice: Dice, session: number): Promise<number> {
    const [from, to] = range(dice, session, 15);
    await sql.query('DELETE FROM bulk WHERE id BETWEEN ? AND ?', [from, to]);
    return 10;
  }

  /** Rows take other keys: free ones, or those of rows that make room in the same transaction. */
  async #move(sql: Connection, dice: Dice, session: number): Promise<number> {
    const [from, to] = range(dice, session, 8);
    const away = keyOf(session, OWN_KEYS + 100 + dice.integer(0, 200)) - from;
    await sql.query('BEGIN');
    await sql.query('DELETE FROM bulk WHERE id BETWEEN ? AND ?', [from + away, to + away]);
    await sql.query('UPDATE bulk SET id = id + ?, n = ? WHERE id BETWEEN ? AND ?', [away, this.#next(), from, to]);
    if (dice.chance(0.5)) {
      await sql.query('INSERT IGNORE INTO bulk VALUES (?, ?, 0, NULL)', [from, this.#next()]);
    }
    await sql.query('COMMIT');
    return 12;
  }

  async #pairs(sql: Connection, dice: Dice, session: number): Promise<number> {
    const a = dice.integer(0, PAIRS - 1) * SESSIONS + session;
    const [b, other] = [dice.integer(0, 4), dice.integer(0, 4)];
    if (dice.chance(0.4)) {
      await sql.query('UPDATE IGNORE pair SET b = ?, n = ? WHERE a = ? AND b = ?', [other, this.#next(), a, b]);
    } else {
      await sql.query('REPLACE INTO pair VALUES (?, ?, ?, ?)', [
        a,
        b,
        this.#next(),
        dice.chance(0.2) ? null : `note é ${b}`,
      ]);
    }
    return 1;
  }

  /** Several tables in one transaction, which is sometimes rolled back, in whole or in part. */
  async #together(sql: Connection, dice: Dice, session: number): Promise<number> {
    const id = dice.integer(0, COUNTERS / SESSIONS - 1) * SESSIONS + session;
    const raise = async (): Promise<number> => {
      const n = this.#next();
      await sql.query('INSERT INTO counter VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)', [id, n]);
      return n;
    };
    await sql.query('BEGIN');
    if (dice.chance(0.3)) {
      this.never.add(await raise());
      await sql.query('ROLLBACK');
      return 0;
    }
    await raise();
    const rows = await this.#insert(sql, dice, session, dice.integer(1, 10));
    await sql.query('SAVEPOINT here');
    if (dice.chance(0.3)) {
      this.never.add(await raise());
      await sql.query('ROLLBACK TO here');
    }
    // the same key once more, gone and back
    await sql.query('DELETE FROM counter WHERE id = ?', [id]);
    await raise();
    await sql.query('COMMIT');
    return rows + 3;
  }

  async #big(sql: Connection, dice: Dice, session: number): Promise<number> {
    await sql.query('BEGIN');
    let rows = 0;
    for (; rows < this.bigRows; rows += 500) {
      const batch = Array.from({ length: 500 }, (_, i) => [
        keyOf(session, (rows + i) % OWN_KEYS),
        this.#next(),
        1,
        'y'.repeat(100),
      ]);
      await sql.query('REPLACE INTO bulk VALUES ?', [batch]);
    }
    await sql.query('COMMIT');
    // it is to be a burst, and not the whole load from then on
    return dice.chance(0.5) ? rows / 4 : rows / 2;
  }
}

/** Keys of a session lie side by side, in a stretch of its own. */
function keyOf(session: number, index: number): number {
  return session * 1_000_000 + index;
}

/** Key of `bulk` of a row of a burst: no session uses it. */
export function burstKey(index: number): number {
  return keyOf(SESSIONS, index);
}

function range(dice: Dice, session: number, most: number): readonly [number, number] {
  const from = keyOf(session, dice.integer(0, OWN_KEYS - 1));
  return [from, from + dice.integer(0, most)];
}
