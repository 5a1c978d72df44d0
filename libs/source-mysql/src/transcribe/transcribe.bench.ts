/**
 * What a row costs from the bytes of its event to the bytes of its message, in CPU seconds: the transcriber and the reference over the same
 * events in memory, and the stream from the socket. Run: `node libs/source-mysql/dist/transcribe/transcribe.bench.js [rows] [mariadb|mysql]`.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { randomName, sharedServer } from '@mysync/harness';
import { type EncodedRow, RowEncoder } from '@mysync/wire';
import { createConnection } from 'mysql2/promise';
import { RowReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import { createMysqlSource } from '../source.ts';
import type { TranscribedTable } from './compile-table.ts';
import { type EventPlace, RowsTranscriber } from './rows-transcriber.ts';

const PER_STATEMENT = 200;
const STATEMENTS_PER_TRANSACTION = 5;

const TABLE = `(
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY, sent_us BIGINT NOT NULL, tenant INT NOT NULL, name VARCHAR(64) NOT NULL,
  email VARCHAR(96) NOT NULL, amount DECIMAL(12,2) NOT NULL, ratio DOUBLE NOT NULL, kind ENUM('new','paid','sent') NOT NULL,
  created DATETIME(3) NOT NULL, seen TIMESTAMP(6) NOT NULL, doc JSON NULL, raw VARBINARY(32) NOT NULL
) CHARACTER SET utf8mb4`;

function row(i: number): string {
  const doc = `{"i": ${i}, "tags": ["alpha", "beta ${i % 97}"], "price": ${i / 8}, "active": ${i % 2 === 0}}`;
  return `(${i}, ${1_700_000_000_000_000 + i * 977}, ${i % 1000}, '${i % 16 === 0 ? 'Łukasz Ørsted' : 'Customer Name'} ${i}',
    'customer.${i}@mail.example.com', ${i % 100_000}.${10 + (i % 90)}, ${i} / 7, ${1 + (i % 3)}, '2024-03-${10 + (i % 20)} 12:34:56.789',
    '2024-03-${10 + (i % 20)} 12:34:56.789012', ${i % 10 === 0 ? 'NULL' : `'${doc}'`}, x'${(i * 2_654_435_761).toString(16).padStart(16, '0').repeat(4)}')`;
}

type Sql = Awaited<ReturnType<typeof createConnection>>;

async function fill(sql: Sql, rows: number, bulk: boolean): Promise<void> {
  const perStatement = bulk ? PER_STATEMENT : 1;
  for (let i = 1; i <= rows; ) {
    if (bulk) await sql.query('BEGIN');
    for (let s = 0; s < (bulk ? STATEMENTS_PER_TRANSACTION : 1) && i <= rows; s += 1) {
      const count = Math.min(perStatement, rows - i + 1);
      await sql.query(`INSERT INTO t VALUES ${Array.from({ length: count }, (_, j) => row(i + j)).join(',')}`);
      i += count;
    }
    if (bulk) await sql.query('COMMIT');
  }
}

function cpuSeconds(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

function say(name: string, rows: number, cpu: number, bytes: number): void {
  process.stdout.write(
    `${name.padEnd(40)} ${rows} rows  ${cpu.toFixed(2)} CPU s  ${Math.round(rows / cpu / 1000)}k rows/CPU s  ${Math.round(bytes / rows)} bytes/row\n`,
  );
}

interface Job {
  readonly port: number;
  readonly database: string;
  readonly rows: number;
  readonly from: { file: string; offset: number; gtidSet: string };
  readonly what: 'stream' | 'memory';
  readonly name: string;
}

async function child(job: Job): Promise<void> {
  const source = createMysqlSource({
    name: 'bench',
    hosts: [{ host: '127.0.0.1', port: job.port }],
    user: 'mysync',
    password: 'mysync',
    captures: (ref) => ref.database === job.database,
    tableRule: () => ({ noKey: 'row-hash' }),
  });
  const recorded: { table: TranscribedTable; rows: RowsEvent; place: EventPlace }[] = [];
  if (job.what === 'memory') {
    const { transcribe } = RowsTranscriber.prototype;
    RowsTranscriber.prototype.transcribe = function record(table, rows, place, records) {
      const buffer = Buffer.from(rows.buffer.subarray(rows.start, rows.end));
      recorded.push({ table, rows: { ...rows, buffer, start: 0, end: buffer.length }, place });
      return transcribe.call(this, table, rows, place, records);
    };
    await stream(source, job);
    RowsTranscriber.prototype.transcribe = transcribe;
    const transcriber = new RowsTranscriber();
    const once = (work: (event: (typeof recorded)[number], out: EncodedRow[]) => void): [number, number] => {
      let rows = 0;
      let bytes = 0;
      for (const event of recorded) {
        const out: EncodedRow[] = [];
        work(event, out);
        rows += out.length;
        bytes += event.rows.end;
      }
      return [rows, bytes];
    };
    const ways: [string, (event: (typeof recorded)[number], out: EncodedRow[]) => void][] = [
      ['transcribed', ({ table, rows, place }, out) => transcriber.transcribe(table, rows, place, out)],
      ['reference', (event, out) => plain(event, out)],
    ];
    for (const [name, work] of ways) {
      once(work);
      const start = process.cpuUsage();
      let total = 0;
      let bytes = 0;
      for (let i = 0; i < 5; i += 1) {
        const [rows, size] = once(work);
        total += rows;
        bytes += size;
      }
      say(`${job.name}, memory, ${name}`, total, cpuSeconds(start), bytes);
    }
  } else {
    // what comes with the first batch is warming up
    let start = process.cpuUsage();
    let early = 0;
    const [rows, bytes] = await stream(source, job, (count) => {
      start = process.cpuUsage();
      early = count;
    });
    say(`${job.name}, socket`, rows - early, cpuSeconds(start), (bytes / rows) * (rows - early));
  }
  await source.close();
}

const encoder = new RowEncoder();

function plain(event: { table: TranscribedTable; rows: RowsEvent; place: EventPlace }, out: EncodedRow[]): void {
  const { table, rows, place } = event;
  const reader = new RowReader(table.readers);
  reader.open(rows.buffer, 0);
  let { ordinal } = place;
  while (reader.at < rows.end) {
    const after = reader.read();
    const change = {
      operation: rows.operation,
      eventFile: place.file,
      eventOffset: place.offset,
      ordinal,
      before: null,
      after,
    };
    ordinal += encoder.rowChange(table.plan, place.block, change, out);
  }
}

async function stream(
  source: ReturnType<typeof createMysqlSource>,
  job: Job,
  began?: (rows: number) => void,
): Promise<[number, number]> {
  const stop = new AbortController();
  let rows = 0;
  let bytes = 0;
  let isFirst = true;
  for await (const items of source.stream({ from: job.from, signal: stop.signal })) {
    for (const item of items) {
      if (item.kind !== 'row') continue;
      rows += 1;
      bytes += item.bytes;
    }
    if (isFirst && rows > 0) {
      isFirst = false;
      began?.(rows);
    }
    if (rows >= job.rows) stop.abort();
  }
  return [rows, bytes];
}

async function run(job: Job): Promise<void> {
  const process = fork(fileURLToPath(import.meta.url), ['--child', JSON.stringify(job)]);
  await new Promise<void>((resolve) => process.once('exit', () => resolve()));
}

async function main(rows: number, flavors: readonly string[]): Promise<void> {
  for (const flavor of flavors as ('mariadb' | 'mysql')[]) {
    const server = await sharedServer(flavor);
    const port = Number(server.get('MYSQL_PORT'));
    const sql = await createConnection({ host: '127.0.0.1', port, user: 'mysync', password: 'mysync' });
    for (const bulk of [true, false]) {
      const database = randomName('bench');
      await sql.query(`CREATE DATABASE ${database}`);
      await sql.query(`USE ${database}`);
      await sql.query(`CREATE TABLE t ${TABLE}`);
      const [status] = await sql.query(flavor === 'mysql' ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS');
      const [{ File: file, Position: offset }] = status as [{ File: string; Position: number }];
      const count = bulk ? rows : Math.ceil(rows / 10);
      await fill(sql, count, bulk);
      const job = { port, database, rows: count, from: { file, offset: Number(offset), gtidSet: '' } };
      const name = `${flavor}, ${bulk ? `${PER_STATEMENT} rows an INSERT` : 'a transaction per row'}`;
      await run({ ...job, what: 'stream', name });
      if (bulk) await run({ ...job, what: 'memory', name });
      await sql.query(`DROP DATABASE ${database}`);
    }
    await sql.end();
  }
}

if (process.argv[2] === '--child') await child(JSON.parse(process.argv[3] ?? '') as Job);
else
  await main(
    Number(process.argv[2] ?? 300_000),
    process.argv[3] === undefined ? ['mariadb', 'mysql'] : [process.argv[3]],
  );
