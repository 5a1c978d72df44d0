/**
 * Rows of a view are those of its place: many views beside many commits, plain ones and XA. What was committed where is told by the
 * server's own SHOW BINLOG EVENTS.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, type SourcePosition, type TableRef } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { quoteTable } from '../server/dialect.ts';
import { ServerSession } from '../server/session.ts';
import { connect, FLAVORS, TestDatabase } from '../testing.fixture.ts';
import { openConsistentView } from './consistent-view.ts';

const WRITERS = 6;
const VIEWS = 60;

type Sessions = Readonly<Record<'reader' | 'control', ServerSession>>;

interface SeenView {
  readonly place: SourcePosition;
  /** By writer. */
  readonly rows: readonly number[];
}

for (const flavor of FLAVORS) {
  describe(`a view's place, ${flavor}`, { timeout: 180_000 }, () => {
    let server: TestServer;
    before(async () => {
      // its log is read as a whole
      server = await startServer(flavor, {});
    });
    after(async () => await server[Symbol.asyncDispose]());

    for (const kind of ['plain', 'xa'] as const) {
      for (const grants of ['all', 'LOCK TABLES'] as const) {
        it(`holds what was committed before it and nothing else: ${kind} commits, granted ${grants}`, async () => {
          await using db = await TestDatabase.create(flavor, server);
          await db.run('CREATE TABLE t (id INT PRIMARY KEY, a INT)');
          for (let id = 0; id < WRITERS; id += 1) {
            // its own, by which the log tells whose commit is whose
            await db.run(
              `INSERT INTO t VALUES (${id}, 0)`,
              `CREATE TABLE t${id} (a INT); INSERT INTO t${id} VALUES (0)`,
            );
          }
          const user = grants === 'all' ? { user: 'mysync', password: 'mysync' } : await poorUser(db);
          const open = (): Promise<ServerSession> =>
            ServerSession.open(
              { ...user, connectionTimeoutMs: 10_000, tls: undefined },
              { host: '127.0.0.1', port: db.port },
            );
          const sessions = { reader: await open(), control: await open() };
          await db.run('FLUSH BINARY LOGS');
          const stop = new AbortController();
          const writing = Array.from({ length: WRITERS }, (_, id) => write(server, db.name, kind, id, stop.signal));
          const views: SeenView[] = [];
          try {
            const table = { database: db.name, table: 't' };
            while (views.length < VIEWS) views.push(await view(sessions, table, views.length % 2 === 0));
          } finally {
            stop.abort();
            await Promise.all(writing);
            sessions.reader.close();
            sessions.control.close();
          }
          const commits = await commitsOf(db, views[0]?.place.file ?? '');
          assert.ok(commits.length > VIEWS, `${commits.length} commits`);
          assert.ok(views.filter(({ place }) => place.offset < (commits.at(-1)?.end ?? 0)).length > VIEWS / 2);
          for (const { place, rows } of views) {
            const expected = new Array<number>(WRITERS).fill(0);
            for (const { end, id, count } of commits) if (end <= place.offset) expected[id] = count;
            assert.deepEqual(rows, expected, `at ${place.offset}`);
          }
        });
      }
    }
  });
}

/** May hold off nobody but who writes to the tables. */
async function poorUser(db: TestDatabase): Promise<{ user: string; password: string }> {
  const rights = 'SELECT, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT';
  await db.run(`CREATE USER IF NOT EXISTS poor@'%' IDENTIFIED BY 'poor'`, `GRANT ${rights} ON *.* TO poor@'%'`);
  return { user: 'poor', password: 'poor' };
}

async function write(
  server: TestServer,
  database: string,
  kind: 'plain' | 'xa',
  id: number,
  signal: AbortSignal,
): Promise<void> {
  const sql = await connect(server);
  await sql.query(`USE ${database}`);
  for (let count = 1; !signal.aborted; count += 1) {
    const name = `'${id}_${count}'`;
    const update = `UPDATE t SET a = ${count} WHERE id = ${id}; UPDATE t${id} SET a = ${count}`;
    await sql.query(
      kind === 'xa'
        ? `XA START ${name}; ${update}; XA END ${name}; XA PREPARE ${name}; XA COMMIT ${name}`
        : `BEGIN; ${update}; COMMIT`,
    );
  }
  await sql.end();
}

/** Tried again where locks are in the way. */
async function view(sessions: Sessions, table: TableRef, beside: boolean): Promise<SeenView> {
  const { reader } = sessions;
  for (;;) {
    try {
      const place = await openConsistentView({ ...sessions, tables: [table], beside });
      const rows = await reader.query(`SELECT a FROM ${quoteTable(table)} ORDER BY id`);
      return { place, rows: rows.map((row) => Number(row['a'])) };
    } catch (error) {
      if (!isMysyncError(error, 'SOURCE_SNAPSHOT_RESTART')) throw error;
    } finally {
      await reader.query('COMMIT');
    }
  }
}

interface Commit {
  readonly end: number;
  readonly id: number;
  readonly count: number;
}

/** XA COMMIT names its transaction; plain ones change a table that is their writer's own. */
async function commitsOf(db: TestDatabase, file: string): Promise<readonly Commit[]> {
  const commits: Commit[] = [];
  const counts = new Array<number>(WRITERS).fill(0);
  let id = 0;
  for (const [, , type, , end, info] of await db.select(`SHOW BINLOG EVENTS IN '${file}'`)) {
    const named = /^XA COMMIT X'([0-9a-f]+)'/.exec(info ?? '')?.[1];
    if (type === 'Table_map') id = Number(/\.t(\d+)\)/.exec(info ?? '')?.[1] ?? id);
    else if (named !== undefined) {
      const [writer = 0, count = 0] = Buffer.from(named, 'hex').toString().split('_').map(Number);
      commits.push({ end: Number(end), id: writer, count });
    } else if (type === 'Xid') {
      const count = (counts[id] ?? 0) + 1;
      counts[id] = count;
      commits.push({ end: Number(end), id, count });
    }
  }
  return commits;
}
