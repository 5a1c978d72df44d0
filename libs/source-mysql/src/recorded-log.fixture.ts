import { tmpdir } from 'node:os';
import { silentLogger, systemClock, type TableRef } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { EVENT } from './binlog/column-types.ts';
import { isMadeUp, type LogEvent } from './binlog/log-event.ts';
import { EventFrames } from './connection/event-frames.ts';
import { CREDENTIALS, readWholeLog } from './connection/whole-log.fixture.ts';
import { readDefinition } from './history/catalogue.ts';
import { logicalTypesBy } from './history/doubtful-types.ts';
import type { TableRule } from './options.ts';
import type { SourceItem } from './port.ts';
import { PartialRows } from './reread/partial-rows.ts';
import { RowLookup } from './reread/row-lookup.ts';
import { CascadeBook } from './schema/cascade-book.ts';
import { Charsets } from './schema/charsets.ts';
import { TableBook } from './schema/table-book.ts';
import { LazySession } from './server/lazy-session.ts';
import { ServerSession } from './server/session.ts';
import { TransactionAssembler } from './stream/transaction-assembler.ts';
import { TransactionSpool } from './stream/transaction-spool.ts';
import { type Flavor, TestDatabase } from './testing.fixture.ts';
import { RowsTranscriber } from './transcribe/rows-transcriber.ts';
import { EventUnfolder } from './unfold/event-unfolder.ts';
import { PartialUpdates } from './unfold/partial-updates.ts';
import { XaHolder } from './xa/xa-holder.ts';

export const HEADER_BYTES = 19;
export const CHECKSUM_BYTES = 4;
/** In the header: low 32 bits of the offset behind the event. */
export const NEXT_OFFSET_AT = 13;
export const FILE = 'binlog.000001';
/** What stands around an event in what was received: none of it may come out. */
export const CANARY = '<CANARY>';
const AROUND = Buffer.from(CANARY.repeat(64));

const COMMON = [
  `CREATE TABLE v (id BIGINT UNSIGNED PRIMARY KEY, i TINYINT, m MEDIUMINT, d DECIMAL(30, 10), f FLOAT, g DOUBLE, b BIT(33), y YEAR, da DATE, ti TIME(6),
    dt DATETIME(3), ts TIMESTAMP(1) NULL, c CHAR(20), vc VARCHAR(300), bi BINARY(4), vb VARBINARY(20), tx TEXT, bl MEDIUMBLOB,
    e ENUM('a', 'b,c', 'd''e'), s SET('x', 'y', 'z'), j JSON, p GEOMETRY, l VARCHAR(20) CHARACTER SET latin1, k VARCHAR(20) CHARACTER SET gbk)`,
  `INSERT INTO v VALUES (1, -1, 8388607, 12345678901234567890.0123456789, 1.5, -2.25, b'1', 2024, '2024-02-29', '-12:34:56.789012', '2024-01-02 03:04:05.678',
    '2024-01-02 03:04:05.6', 'char', REPEAT('v', 280), 'bin', 'varbin', 'text', REPEAT('b', 300), 'b,c', 'x,z', '{"a": [1, 2.5, "three", null, true, {"b": {}}], "big": 18446744073709551615}',
    ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'), 'é', '测试'), (2, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, '', NULL, NULL, NULL, '', NULL, NULL, NULL, NULL)`,
  "UPDATE v SET i = i + 1, tx = REPEAT('t', 60000)",
  'CREATE TABLE w (a VARCHAR(20), b INT, UNIQUE KEY (b))',
  'BEGIN',
  "INSERT INTO w VALUES ('one', 1), ('two', 2)",
  'SAVEPOINT sp',
  "INSERT INTO w VALUES ('three', 3)",
  'DELETE FROM v WHERE id = 2',
  'COMMIT',
  "XA START 'x1', 'branch', 7",
  "INSERT INTO w VALUES ('xa', 4)",
  "XA END 'x1', 'branch', 7",
  "XA PREPARE 'x1', 'branch', 7",
  "XA COMMIT 'x1', 'branch', 7",
  'ALTER TABLE w ADD COLUMN d INT',
  'TRUNCATE TABLE w',
] as const;
const OWN: Readonly<Record<Flavor, readonly string[]>> = {
  mysql: [
    'CREATE TABLE vec (id INT PRIMARY KEY, v VECTOR(3))',
    "INSERT INTO vec VALUES (1, TO_VECTOR('[1, 2, 3]'))",
    "SET gtid_next = 'AUTOMATIC:blue'",
    'DELETE FROM vec',
    "SET gtid_next = 'AUTOMATIC'",
    "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
    `UPDATE v SET j = JSON_SET(j, '$.a[2]', 'other', '$.big', 1)`,
    "SET SESSION binlog_row_value_options = ''",
    'SET SESSION binlog_transaction_compression = ON',
    "INSERT INTO v (id, tx) VALUES (100, REPEAT('compressed ', 5000)), (101, 'short')",
    'SET SESSION binlog_transaction_compression = OFF',
    'SET SESSION binlog_rows_query_log_events = ON',
    'DELETE FROM v WHERE id > 99',
  ],
  mariadb: [
    'CREATE TABLE own (id INT PRIMARY KEY, u UUID, i4 INET4, i6 INET6, zt TEXT COMPRESSED, zv VARCHAR(500) COMPRESSED)',
    "INSERT INTO own VALUES (1, UUID(), '1.2.3.4', '::1', REPEAT('z', 1000), REPEAT('y', 400))",
    'SET GLOBAL log_bin_compress_min_len = 10',
    'SET GLOBAL log_bin_compress = ON',
    'INSERT INTO own SELECT id + 1, u, i4, i6, zt, zv FROM own',
    'UPDATE own SET id = id + 10',
    'DELETE FROM own',
    "CREATE TABLE squeezed (id INT PRIMARY KEY COMMENT 'a statement that is long enough to be compressed in the log')",
    'SET GLOBAL log_bin_compress = OFF',
    'SET gtid_domain_id = 7',
    "INSERT INTO w (a) VALUES ('domain')",
    'SET gtid_domain_id = 0',
  ],
};

/** One transaction or statement: what is read together, without checksums. */
export type Unit = readonly Buffer[];

export class RecordedLog {
  readonly flavor: Flavor;
  readonly #transcriber = new RowsTranscriber();
  readonly #server: TestServer;
  readonly #db: TestDatabase;
  readonly #lookups: LazySession;
  readonly #charsets: Charsets;
  /** As they stand in the log. */
  readonly withChecksums: readonly Buffer[];
  /** The format of a file without checksums, as it comes where reading begins. */
  readonly format: Buffer;
  readonly units: readonly Unit[];

  private constructor(flavor: Flavor, server: TestServer, db: TestDatabase, open: OpenLog) {
    this.flavor = flavor;
    this.#server = server;
    this.#db = db;
    this.#lookups = open.lookups;
    this.#charsets = open.charsets;
    const logged = open.events.filter((event) => !isMadeUp(event));
    this.withChecksums = logged.map(bytesOf);
    const first = open.events.find((event) => event.type === EVENT.FORMAT_DESCRIPTION);
    if (first === undefined) throw new Error('a log without a format');
    // its own sum proves nothing: the next event is looked at, and has none
    this.format = bytesOf(first);
    this.format[this.format.length - CHECKSUM_BYTES - 1] = 0;
    this.units = unitsOf(logged);
  }

  static async create(flavor: Flavor): Promise<RecordedLog> {
    const server = await startServer(flavor);
    let db: TestDatabase | undefined;
    try {
      db = await TestDatabase.create(flavor, server);
      const from = await db.source().currentPosition();
      await db.run('SET NAMES utf8mb4', ...COMMON, ...OWN[flavor], 'FLUSH BINARY LOGS', 'DROP TABLE w');
      return new RecordedLog(flavor, server, db, await openLog(db.port, from));
    } catch (error) {
      await db?.sql.end();
      await server.wipe();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#lookups.close();
    await this.#db.sql.end();
    await this.#server.wipe();
  }

  /** The tables are still what they were when their rows were logged. */
  newBook(): TableBook {
    const never = (): Promise<never> => Promise.reject(new Error('its maps have full metadata'));
    return new TableBook({
      ...RULE,
      flavor: this.flavor,
      captures: (ref: TableRef) => ref.database === this.#db.name,
      session: this.#lookups,
      charsets: this.#charsets,
      definitions: {
        typesOnly: true,
        logicalTypes: async (ref, columns) => {
          const definition = await this.#lookups.use((session) => readDefinition(session, ref));
          const types = definition === undefined ? 'it is gone' : logicalTypesBy(definition, columns, ref);
          if (typeof types === 'string') throw new Error(types);
          return types;
        },
        period: async () => ({ period: null, virtual: [] }),
        at: never,
        stop: never,
      },
      known: new Map(),
      listed: [],
      views: [],
    });
  }

  /** Everything that comes out of these events behind `offset`; each of them lies between bytes that are not its own. */
  async read(events: readonly Buffer[], book: TableBook, offset = 4): Promise<SourceItem[]> {
    const frames = new EventFrames();
    const from = { file: FILE, offset, gtidSet: '' };
    const xa = new XaHolder({ memory: { limitBytes: 1 << 20, usedBytes: 0, folder: tmpdir() } });
    const spool = new TransactionSpool({ memoryBytes: 1 << 20, folder: tmpdir() });
    const lookup = new RowLookup({
      source: { ...RULE, clock: systemClock },
      openSession: () => Promise.reject(new Error('nothing is read again')),
      signal: new AbortController().signal,
    });
    const unfolder = new EventUnfolder({ from, xa, partial: new PartialUpdates((ref) => book.captures(ref)) });
    const assembler = new TransactionAssembler({
      name: 'test',
      logger: silentLogger,
      clock: systemClock,
      flavor: this.flavor,
      serverUuid: 'x',
      from,
      book,
      spool,
      partialRows: new PartialRows({ ...RULE, observer: {}, lookup }),
      transcriber: this.#transcriber,
      definitions: undefined,
      foldsNames: false,
      cascades: new CascadeBook({
        session: this.#lookups,
        log: { hidesRows: true },
        logEnd: from,
        foldsNames: false,
        captures: (ref) => book.captures(ref),
      }),
    });
    const items: SourceItem[] = [];
    try {
      for (const bytes of events) {
        const received = Buffer.concat([AROUND, bytes, AROUND]);
        const event = frames.read(received, AROUND.length, AROUND.length + bytes.length);
        const unfolded = unfolder.unfold(event);
        for await (const one of unfolded ?? [event]) await assembler.process(one);
        for (const list of assembler.drain()) items.push(...list);
      }
      return items;
    } finally {
      xa.close();
      spool.close();
    }
  }
}

const RULE = {
  tableRule: (): TableRule => ({ noKey: 'row-hash', onPartialRow: 'halt' }),
  logger: silentLogger,
};

interface OpenLog {
  readonly lookups: LazySession;
  readonly charsets: Charsets;
  readonly events: readonly LogEvent[];
}

async function openLog(port: number, from: { file: string; offset: number }): Promise<OpenLog> {
  const host = { host: '127.0.0.1', port };
  const lookups = new LazySession(() => ServerSession.open(CREDENTIALS, host));
  const charsets = await lookups.use((session) => Charsets.load(session));
  const start = { kind: 'place', file: from.file, offset: from.offset } as const;
  return { lookups, charsets, events: await readWholeLog({ host, start, queueBytes: 1 << 24 }) };
}

function bytesOf({ buffer, start, length }: LogEvent): Buffer {
  return Buffer.from(buffer.subarray(start - HEADER_BYTES, start - HEADER_BYTES + length));
}

function withoutChecksum(event: Buffer): Buffer {
  const copy = Buffer.from(event.subarray(0, event.length - CHECKSUM_BYTES));
  copy.writeUInt32LE(copy.length, 9);
  return copy;
}

function unitsOf(logged: readonly LogEvent[]): Unit[] {
  const units: Buffer[][] = [];
  let isOpen = false;
  for (const event of logged) {
    const { control, type } = event;
    const begins = control.kind === 'gtid' || control.kind === 'mariadb-gtid';
    // prepared rows and their commit belong together
    if (units.length === 0 || (begins && !isOpen)) units.push([]);
    if (control.kind === 'xa-prepare' && !control.onePhase) isOpen = true;
    else if (control.kind === 'query' && /^XA COMMIT/i.test(control.statement)) isOpen = false;
    if (type === EVENT.FORMAT_DESCRIPTION) continue;
    units.at(-1)?.push(withoutChecksum(bytesOf(event)));
  }
  return units;
}
