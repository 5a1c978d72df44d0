/**
 * Damaged bytes of real logs, through everything between socket and items: an error with its place, never a hang, a crash, memory without bound, or
 * bytes that are not the event's. With checksums every flip is found; without, the events are cut, flipped and overwritten at will.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, systemClock, type TableRef } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { silentLogger } from '@mysync/telemetry';
import fc from 'fast-check';
import { EVENT } from './binlog/column-types.ts';
import { isMadeUp, type LogEvent } from './binlog/log-event.ts';
import { BinlogConnection } from './connection/binlog-connection.ts';
import { EventFrames } from './connection/event-frames.ts';
import type { TableRule } from './options.ts';
import type { SourceItem } from './port.ts';
import { PartialRows } from './reread/partial-rows.ts';
import { RowLookup } from './reread/row-lookup.ts';
import { Charsets } from './schema/charsets.ts';
import { TableBook } from './schema/table-book.ts';
import { LazySession } from './server/lazy-session.ts';
import { ServerSession } from './server/session.ts';
import { TransactionAssembler } from './stream/transaction-assembler.ts';
import { TransactionSpool } from './stream/transaction-spool.ts';
import { FLAVORS, type Flavor, rowsOf, TestDatabase } from './testing.fixture.ts';
import { EventUnfolder } from './unfold/event-unfolder.ts';
import { PartialUpdates } from './unfold/partial-updates.ts';
import { XaHolder } from './xa/xa-holder.ts';

const HEADER_BYTES = 19;
const CHECKSUM_BYTES = 4;
const FILE = 'binlog.000001';
/** What stands around an event in what was received: none of it may come out. */
const CANARY = Buffer.from('<CANARY>'.repeat(64));
const RUNS = 4000;
const MOST_RISE_BYTES = 300 << 20;

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

/** One transaction or statement: what is read together. */
interface Unit {
  readonly events: readonly Buffer[];
}

type Damage =
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'flip'; readonly at: number; readonly bit: number }
  | { readonly kind: 'overwrite'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: 'replace'; readonly bytes: Uint8Array }
  | { readonly kind: 'append'; readonly bytes: Uint8Array };

const place = fc.nat({ max: 0xffff });
const damages: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('cut' as const), at: place }),
  fc.record({ kind: fc.constant('flip' as const), at: place, bit: fc.nat({ max: 7 }) }),
  fc.record({
    kind: fc.constant('overwrite' as const),
    at: place,
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 9 }),
      // absurd lengths and counts
      fc
        .constantFrom(
          ...['ff', 'ffff', 'ffffffff', 'feffffffffffffff7f', 'fcffff', 'fdffffff', '00', '0000', '80ffffff'],
        )
        .map((hex) => Buffer.from(hex, 'hex')),
    ),
  }),
  fc.record({ kind: fc.constant('replace' as const), bytes: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ kind: fc.constant('append' as const), bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }) }),
);

/** The length in the header fits what came, unless the header itself was hit: a packet is as long as it is. */
function damaged(event: Buffer, damage: Damage): Buffer {
  const body = event.subarray(HEADER_BYTES);
  const withBody = (...parts: readonly Uint8Array[]): Buffer => {
    const whole = Buffer.concat([event.subarray(0, HEADER_BYTES), ...parts]);
    whole.writeUInt32LE(whole.length, 9);
    return whole;
  };
  switch (damage.kind) {
    case 'cut':
      return withBody(body.subarray(0, damage.at % Math.max(body.length, 1)));
    case 'flip': {
      const copy = Buffer.from(event);
      // the low bits hit the start of the event more often: lengths and counts stand there
      const at = damage.at % (damage.at % 3 === 0 ? Math.min(event.length, 80) : event.length);
      copy[at] = (copy[at] as number) ^ (1 << damage.bit);
      return copy;
    }
    case 'overwrite': {
      const at = damage.at % (damage.at % 3 === 0 ? Math.min(body.length, 80) : Math.max(body.length, 1));
      return withBody(body.subarray(0, at), damage.bytes, body.subarray(at + damage.bytes.length));
    }
    case 'replace':
      return withBody(damage.bytes);
    case 'append':
      return withBody(body, damage.bytes);
  }
}

function withoutChecksum(event: Buffer): Buffer {
  const copy = Buffer.from(event.subarray(0, event.length - CHECKSUM_BYTES));
  copy.writeUInt32LE(copy.length, 9);
  return copy;
}

for (const flavor of FLAVORS) {
  describe(`damaged logs of ${flavor}`, { timeout: 900_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let lookups: LazySession | undefined;
    let charsets: Charsets;
    let raw: Buffer[];
    let format: Buffer;
    let units: Unit[];

    before(async () => {
      server = await startServer(flavor);
      db = await TestDatabase.create(flavor, server);
      const from = await db.source().currentPosition();
      await db.run('SET NAMES utf8mb4', ...COMMON.slice(0, 10));
      // MariaDB's session can do nothing else between
      await db.run(...COMMON.slice(10), ...OWN[flavor], 'FLUSH BINARY LOGS', 'DROP TABLE w');
      const address = { host: '127.0.0.1', port: db.port };
      const credentials = { user: 'mysync', password: 'mysync', tls: undefined, connectionTimeoutMs: 10_000 };
      const session = new LazySession(() => ServerSession.open(credentials, address));
      lookups = session;
      charsets = await session.use((session) => Charsets.load(session));
      const connection = await BinlogConnection.open({
        host: address,
        credentials,
        serverId: 3_900_000_000 + Math.floor(Math.random() * 1e8),
        hostName: 'test',
        replicaUuid: randomUUID(),
        start: { kind: 'place', file: from.file, offset: from.offset },
        stopsAtEnd: true,
        heartbeatMs: 5000,
        queueBytes: 1 << 24,
        clock: systemClock,
      });
      const events: LogEvent[] = [];
      try {
        for (;;) {
          events.push(...connection.take());
          await connection.wait(new AbortController().signal);
        }
      } catch (error) {
        if (!connection.ended) throw error;
      } finally {
        await connection.close();
      }
      const bytesOf = ({ buffer, start, length }: LogEvent): Buffer =>
        Buffer.from(buffer.subarray(start - HEADER_BYTES, start - HEADER_BYTES + length));
      const logged = events.filter((event) => !isMadeUp(event));
      raw = logged.filter(({ type }) => type !== EVENT.FORMAT_DESCRIPTION && type !== EVENT.ROTATE).map(bytesOf);
      const first = events.find((event) => event.type === EVENT.FORMAT_DESCRIPTION);
      assert.ok(first !== undefined);
      // "no checksum", which its own sum is not looked at for
      format = bytesOf(first);
      format[format.length - CHECKSUM_BYTES - 1] = 0;
      units = unitsOf(logged, bytesOf);
    });
    after(async () => {
      lookups?.close();
      await db.sql.end();
      await server.wipe();
    });

    function unitsOf(logged: readonly LogEvent[], bytesOf: (event: LogEvent) => Buffer): Unit[] {
      const found: { events: Buffer[]; open: boolean }[] = [];
      for (const event of logged) {
        const { control, type } = event;
        const begins = control.kind === 'gtid' || control.kind === 'mariadb-gtid';
        const last = found.at(-1);
        // prepared rows and their commit belong together
        if (last === undefined || (begins && !last.open)) found.push({ events: [], open: false });
        const unit = found.at(-1) as (typeof found)[number];
        if (control.kind === 'xa-prepare' && !control.onePhase) unit.open = true;
        else if (control.kind === 'query' && /^XA COMMIT/i.test(control.statement)) unit.open = false;
        if (type === EVENT.FORMAT_DESCRIPTION) continue;
        unit.events.push(type === EVENT.ROTATE ? bytesOf(event) : withoutChecksum(bytesOf(event)));
      }
      return found;
    }

    const tableRule = (): TableRule => ({ noKey: 'row-hash', onPartialRow: 'halt' });
    const rule = { tableRule, logger: silentLogger };
    const newBook = (): TableBook =>
      new TableBook({
        ...rule,
        flavor,
        captures: (ref: TableRef) => ref.database === db.name,
        session: lookups as LazySession,
        charsets,
        listed: [],
        views: [],
      });

    /** Everything that comes out of these events, each of which lies between bytes that are not its own. */
    async function read(events: readonly Buffer[], book: TableBook): Promise<SourceItem[]> {
      const frames = new EventFrames();
      const from = { file: FILE, offset: 4, gtidSet: '' };
      const memory = { limitBytes: 1 << 20, usedBytes: 0, folder: tmpdir() };
      const xa = new XaHolder({ memory });
      const spool = new TransactionSpool({ memoryBytes: 1 << 20, folder: tmpdir() });
      const lookup = new RowLookup({
        source: { ...rule, clock: systemClock },
        openSession: () => Promise.reject(new Error('nothing is read again')),
        signal: new AbortController().signal,
      });
      const unfolder = new EventUnfolder({ from, xa, partial: new PartialUpdates((ref) => book.captures(ref)) });
      const assembler = new TransactionAssembler({
        name: 'test',
        logger: silentLogger,
        clock: systemClock,
        flavor,
        serverUuid: 'x',
        from,
        book,
        spool,
        partialRows: new PartialRows({ ...rule, observer: {}, lookup }),
        definitions: undefined,
        foldsNames: false,
      });
      const items: SourceItem[] = [];
      try {
        for (const bytes of events) {
          const received = Buffer.concat([CANARY, bytes, CANARY]);
          const event = frames.read(received, CANARY.length, CANARY.length + bytes.length);
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

    function assertOwnBytes(items: readonly SourceItem[]): void {
      for (const item of items) {
        if (item.kind === 'row') {
          for (const bytes of [item.payload, item.key]) {
            assert.equal(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('CANARY'), false);
          }
        } else if ('statement' in item) assert.equal(item.statement.includes('CANARY'), false);
      }
      // every message can be read
      rowsOf(items);
    }

    it('are read whole when they are whole', async () => {
      const book = newBook();
      let rows = 0;
      const types = new Set<number>();
      for (const { events } of units) {
        const items = await read([format, ...events], book);
        assertOwnBytes(items);
        rows += rowsOf(items).length;
        for (const event of events) types.add(event[4] as number);
      }
      assert.ok(rows > 12, `${rows} rows`);
      assert.ok(types.size > 10, [...types].join());
    });

    it('with checksums: every flip of a bit is found', () => {
      const checked = new EventFrames();
      const withSums = Buffer.from(format);
      withSums[withSums.length - CHECKSUM_BYTES - 1] = 1;
      checked.read(withSums, 0, withSums.length);
      fc.assert(
        fc.property(fc.nat(), fc.nat(), (which, where) => {
          const event = Buffer.from(raw[which % raw.length] as Buffer);
          const bit = where % (event.length * 8);
          // heartbeats and what the server makes up come with or without a sum: a type or flag that becomes theirs is told by it
          const isKind = bit >> 3 === 4 || bit >> 3 === 17;
          event[bit >> 3] = (event[bit >> 3] as number) ^ (1 << (bit & 7));
          try {
            checked.read(event, 0, event.length);
          } catch (error) {
            assert.ok(isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'), String(error));
            return;
          }
          assert.ok(isKind, `a flip of bit ${bit} of an event of type ${event[4]} went through`);
        }),
        { numRuns: 20_000 },
      );
    });

    it('without: an error with its place, or what stands in the event', async () => {
      const book = newBook();
      const rssAtStart = process.memoryUsage.rss();
      let refused = 0;
      let mostRss = 0;
      /** One of each kind. */
      const wrong = new Map<string, string>();
      await fc.assert(
        fc.asyncProperty(fc.nat(), fc.nat(), damages, async (which, event, damage) => {
          const { events } = units[which % units.length] as Unit;
          const hit = event % events.length;
          const copy = events.map((bytes, i) => (i === hit ? damaged(bytes, damage) : bytes));
          const isMap = (copy[hit] as Buffer)[4] === EVENT.TABLE_MAP || (events[hit] as Buffer)[4] === EVENT.TABLE_MAP;
          try {
            assertOwnBytes(await read([format, ...copy], isMap ? newBook() : book));
          } catch (error) {
            refused += 1;
            const isClear =
              isMysyncError(error) &&
              error.code.startsWith('SOURCE_') &&
              /:\d+$/.test(String(error.where['position'])) &&
              !String(error).includes('CANARY');
            const { message, stack = '' } = error as Error;
            if (!isClear)
              wrong.set(stack.slice(stack.indexOf('\n')), `${message}: ${JSON.stringify([which, event, damage])}`);
          }
          mostRss = Math.max(mostRss, process.memoryUsage.rss());
        }),
        { numRuns: RUNS },
      );
      assert.deepEqual(new Map(), wrong);
      assert.ok(refused > RUNS / 5, `${refused} of ${RUNS} were refused`);
      assert.ok(mostRss - rssAtStart < MOST_RISE_BYTES, `memory rose by ${(mostRss - rssAtStart) >> 20} MiB`);
    });
  });
}
