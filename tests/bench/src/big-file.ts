/**
 * A real file of MariaDB's log past 4 GiB: one transaction that makes it so long, and two more that were committed in the same group and so stand
 * behind it in the same file. It is read whole and held against the server's own rows, then from the places behind the large transaction, which no
 * dump request can ask for.
 */
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { SourcePosition } from '@mysync/core';
import { startServer, textConnection, until } from '@mysync/harness';
import { type BinlogSource, createMysqlSource } from '@mysync/source-mysql';
import { MessageDecoder } from '@mysync/wire';
import { usageOf } from './meter.ts';

const DATABASE = 'big_file';
const ROWS = 512;
const ROW_BYTES = 1 << 20;
/** Each logs every row before and after it. */
const UPDATES = 4;
const FOUR_GIB = 2 ** 32;

interface Read {
  readonly rows: number;
  readonly commits: readonly SourcePosition[];
  /** `n:crc32(v)` by id, as it is at the end. */
  readonly state: ReadonlyMap<string, string>;
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

function say(text: string): void {
  process.stderr.write(`${performance.now().toFixed(0).padStart(8)} ms  ${text}\n`);
}

/** Everything up to the end of the transaction that sets this row. */
async function read(source: BinlogSource, from: SourcePosition, last: string): Promise<Read> {
  const decoder = new MessageDecoder();
  const state = new Map<string, string>();
  const commits: SourcePosition[] = [];
  let rows = 0;
  const startedAt = performance.now();
  const { cpuSeconds } = usageOf(process.pid);
  const stop = new AbortController();
  for await (const items of source.stream({ from, signal: stop.signal })) {
    for (const item of items) {
      if (item.kind === 'row') {
        rows += 1;
        const message = decoder.decode(item.payload);
        if (!('after' in message)) throw new Error(`a row is ${message.operation}`);
        const [id, n, v] = message.after ?? [];
        state.set(String(id), `${n}:${crc32(v as Uint8Array)}`);
      } else if (item.kind === 'commit') {
        commits.push(item.position);
        if (state.has(last)) stop.abort();
      }
    }
  }
  const wallSeconds = (performance.now() - startedAt) / 1000;
  return { rows, commits, state, cpuSeconds: usageOf(process.pid).cpuSeconds - cpuSeconds, wallSeconds };
}

function require(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const server = await startServer('mariadb');
try {
  const address = {
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user: server.get('MYSQL_USER'),
    password: server.get('MYSQL_PASSWORD'),
  };
  const [admin, large, second, third] = await Promise.all(Array.from({ length: 4 }, () => textConnection(address)));
  if (admin === undefined || large === undefined || second === undefined || third === undefined) throw new Error();
  const source = createMysqlSource({
    name: 'big-file',
    hosts: [address],
    user: address.user,
    password: address.password,
    captures: ({ database }) => database === DATABASE,
    tableRule: () => ({ noKey: 'row-hash' }),
  });
  await admin.query(`CREATE DATABASE ${DATABASE}`);
  // two: who inserts beside rows that a transaction holds waits for it, and the group does not wait for who waits
  for (const table of ['t', 'small']) {
    await admin.query(`CREATE TABLE ${DATABASE}.${table} (id INT PRIMARY KEY, n INT NOT NULL, v MEDIUMBLOB NOT NULL)`);
  }
  const from = await source.currentPosition();
  say('one transaction of more than 4 GiB is made');
  await large.query('BEGIN');
  await large.query(
    `INSERT INTO ${DATABASE}.t SELECT seq, 0, REPEAT(CHAR(65 + seq % 26), ${ROW_BYTES}) FROM ${DATABASE}.seq_1_to_${ROWS}`,
  );
  for (let i = 0; i < UPDATES; i += 1) {
    await large.query(`UPDATE ${DATABASE}.t SET n = n + id, v = REPEAT(CHAR(97 + (id + n) % 26), ${ROW_BYTES})`);
    say(`update ${i + 1} of ${UPDATES}`);
  }
  await admin.query('SET GLOBAL binlog_commit_wait_count = 3');
  await admin.query('SET GLOBAL binlog_commit_wait_usec = 600000000');
  const committing = async (count: number): Promise<void> => {
    await until(
      `${count} wait for their group`,
      async () => {
        const [rows] = await admin.query(
          "SELECT 1 FROM information_schema.processlist WHERE command = 'Query' AND (info = 'COMMIT' OR info LIKE 'INSERT%') AND time_ms > 500",
        );
        return (rows as unknown[]).length >= count;
      },
      { timeoutMs: 120_000, everyMs: 100 },
    );
  };
  const commits = [large.query('COMMIT')];
  await committing(1);
  commits.push(second.query(`INSERT INTO ${DATABASE}.small VALUES (1001, 1, 'second')`));
  await committing(2);
  commits.push(third.query(`INSERT INTO ${DATABASE}.small VALUES (1002, 2, 'third')`));
  await Promise.all(commits);
  const [files] = await admin.query('SHOW BINARY LOGS');
  const size = Number(
    (files as { Log_name: string; File_size: string }[]).find((f) => f.Log_name === from.file)?.File_size,
  );
  say(`${from.file} has ${size} bytes`);
  const [expected] = await admin.query(
    `SELECT id, n, CRC32(v) AS sum FROM ${DATABASE}.t UNION ALL SELECT id, n, CRC32(v) FROM ${DATABASE}.small`,
  );
  const rows = expected as { id: string; n: string; sum: string }[];

  const whole = await read(source, from, '1002');
  require(whole.rows === ROWS * (1 + UPDATES) + 2, `${whole.rows} rows`);
  require(whole.commits.length === 3, `${whole.commits.length} transactions`);
  require(rows.length === whole.state.size, `${whole.state.size} ids, the table has ${rows.length}`);
  for (const { id, n, sum } of rows) require(whole.state.get(id) === `${n}:${sum}`, `row ${id} is another one`);
  const [afterLarge, afterSecond, end] = whole.commits as [SourcePosition, SourcePosition, SourcePosition];
  for (const { file, offset } of [afterLarge, afterSecond, end]) {
    require(file === from.file && offset > FOUR_GIB, `a transaction ends at ${file}:${offset}`);
  }
  say(`read whole: ${whole.rows} rows in ${whole.wallSeconds.toFixed(1)} s`);
  const findings = await source.check({ snapshot: false, resume: { position: afterLarge, serverUuid: null } });
  for (const { level, code, message } of findings) require(level !== 'error', `${code}: ${message}`);
  const behind = await read(source, afterLarge, '1002');
  require([...behind.state.keys()].join() === '1001,1002', `behind ${afterLarge.offset}: ${[...behind.state.keys()]}`);
  require(behind.commits[1]?.offset === end.offset, `resumed, the end is at ${behind.commits[1]?.offset}`);
  const last = await read(source, afterSecond, '1002');
  require([...last.state.keys()].join() === '1002', `behind ${afterSecond.offset}: ${[...last.state.keys()]}`);
  const peak = Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
  const seconds = ({ cpuSeconds, wallSeconds }: Read): string =>
    `${cpuSeconds.toFixed(1)} CPU s, ${wallSeconds.toFixed(1)} s`;
  process.stdout.write(
    `${JSON.stringify({ fileBytes: size, rows: whole.rows, whole: seconds(whole), resumed: seconds(behind), offset: afterLarge.offset, rssMb: Math.round(peak) })}\n`,
  );
  await source.close();
  await Promise.all([admin.end(), large.end(), second.end(), third.end()]);
} finally {
  await server.wipe();
}
