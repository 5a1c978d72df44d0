/**
 * A session with the server under test, which writes down what it was told.
 *
 * Statements of random histories may fail (a duplicate key, a value out of range): then they change nothing, or what the server says they
 * change, and both sides of the comparison see that. What tells of a generator that does not speak SQL is thrown.
 */
import { type Connection, createConnection } from 'mysql2/promise';
import { isAscii } from './sql-text.ts';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

export type TextCells = readonly (string | null)[];

/** Errors that only a wrong generator makes: a parse error, unknown tables or columns, wrong numbers of values. */
const GENERATOR_ERRORS = new Set([1064, 1054, 1136, 1146, 1110, 1149]);

/** MariaDB says so of checks and generated columns that an ALTER leaves behind, too. */
const UNKNOWN_COLUMN = 1054;

export class Client {
  readonly #name: string;
  readonly #connection: Connection;
  readonly #log: string[];
  /** What the session takes our text for. */
  #isUtf8 = true;
  readonly stats = { statements: 0, failed: 0 };

  private constructor(name: string, connection: Connection, log: string[]) {
    this.#name = name;
    this.#connection = connection;
    this.#log = log;
  }

  /** Statements are added to `log`. */
  static async open(address: ServerAddress, name: string, log: string[]): Promise<Client> {
    const connection = await createConnection({
      ...address,
      charset: 'utf8mb4_general_ci',
      typeCast: (field) => field.string('utf8'),
    });
    return new Client(name, connection, log);
  }

  get speaksUtf8(): boolean {
    return this.#isUtf8;
  }

  /** SET NAMES, until a statement that is not ASCII comes: we send UTF-8 only. */
  async setNames(charset: string): Promise<void> {
    await this.run(`SET NAMES ${charset}`);
    this.#isUtf8 = charset.startsWith('utf8');
  }

  /** The number of the server's error; 0 when there was none. `mayNameWrongly`: a name that is unknown is an error like others. */
  async attempt(sql: string, mayNameWrongly = false): Promise<number> {
    if (!this.#isUtf8 && !isAscii(sql)) await this.setNames('utf8mb4');
    this.stats.statements += 1;
    this.#log.push(`${this.#name}: ${sql}`);
    try {
      await this.#connection.query(sql);
      return 0;
    } catch (error) {
      const number = errorNumber(error);
      if (number === 0 || (GENERATOR_ERRORS.has(number) && !(mayNameWrongly && number === UNKNOWN_COLUMN)))
        throw new Error(`${this.#name}: ${sql}`, { cause: error });
      this.#log.push(`  -- ${(error as Error).message}`);
      this.stats.failed += 1;
      return number;
    }
  }

  /** For what must not fail. */
  async run(sql: string): Promise<void> {
    this.#log.push(`${this.#name}: ${sql}`);
    try {
      await this.#connection.query(sql);
    } catch (error) {
      throw new Error(`${this.#name}: ${sql}`, { cause: error });
    }
  }

  /** A question; it is not written down. */
  async rows(sql: string): Promise<readonly TextCells[]> {
    try {
      const [rows] = await this.#connection.query({ sql, rowsAsArray: true });
      return rows as unknown as readonly TextCells[];
    } catch (error) {
      throw new Error(`${this.#name}: ${sql}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#connection.end();
  }
}

function errorNumber(error: unknown): number {
  const errno = (error as { errno?: unknown }).errno;
  return typeof errno === 'number' && errno > 0 && (error as { sqlState?: unknown }).sqlState !== undefined ? errno : 0;
}
