import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { FileCheckpointStore } from '@mysync/checkpoint';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { failureOf, readItems, readSnapshot, replay, rowsOf, TestDatabase } from '../testing.fixture.ts';
import { answerQuestion } from './answers.ts';
import { afterImages, Script, TestHistory, type TextRecord } from './history.fixture.ts';

const FULL = { rowMetadata: 'full' } as const;
const A = '00112233-4455-6677-8899-aabbccddeeff';
const B = '123e4567-e89b-12d3-a456-426614174000';
/** A statement that is not followed, and leaves the table as it is. */
const UNKNOWN = 'ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, MODIFY e VARCHAR(10)';

describe('mariadb, full row metadata: types that the log does not tell', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer('mariadb');
  });
  after(() => server.wipe());

  /** A reader is there while `prepare` runs, then away; what it reads of the backlog is what the server showed of each row. */
  async function backlog(
    prepare: readonly string[],
    unread: (script: Script, db: TestDatabase) => Promise<unknown>,
  ): Promise<TextRecord[]> {
    await using db = await TestDatabase.create('mariadb', server);
    await using history = await TestHistory.create();
    const script = new Script(db);
    await script.run(...prepare);
    const start = await db.source().currentPosition();
    await history.read(db, start, FULL);
    await unread(script, db);
    const rows = afterImages(await history.read(db, start, FULL));
    assert.deepEqual(rows, script.expected);
    assert.deepEqual(afterImages(await history.read(db, start, FULL)), rows, 'read again, with what was noted');
    return rows;
  }

  it('a UUID key that is renamed in the backlog: its rows keep their kind', async () => {
    await backlog(['CREATE TABLE t (id UUID PRIMARY KEY, i4 INET4, i6 INET6)'], async (script) => {
      await script.row(`INSERT INTO t VALUES ('${A}', '1.2.3.4', '::ffff:1.2.3.4')`, 'SELECT * FROM t');
      await script.run('ALTER TABLE t CHANGE id uid UUID, CHANGE i4 a INET4');
      await script.row(
        `INSERT INTO t VALUES ('${B}', '255.0.0.1', '2001:db8::1')`,
        `SELECT * FROM t WHERE uid = '${B}'`,
      );
      await script.run('ALTER TABLE t DROP COLUMN a');
    });
  });

  it('BINARY that becomes UUID and INET in the backlog, and the other way round', async () => {
    const shown = 'SELECT id, LOWER(HEX(b)) AS b, LOWER(HEX(f)) AS f FROM t WHERE id =';
    const rows = await backlog(['CREATE TABLE t (id INT PRIMARY KEY, b BINARY(16), f BINARY(4))'], async (script) => {
      await script.row("INSERT INTO t VALUES (1, x'00112233445566778899aabbccddeeff', x'01020304')", `${shown} 1`);
      await script.run('ALTER TABLE t MODIFY b UUID, MODIFY f INET4');
      await script.row(`INSERT INTO t VALUES (2, '${B}', '9.8.7.6')`, 'SELECT * FROM t WHERE id = 2');
      await script.run('ALTER TABLE t MODIFY b BINARY(16), MODIFY f BINARY(4)');
      await script.row("INSERT INTO t VALUES (3, x'ff112233445566778899aabbccddee00', x'05')", `${shown} 3`);
      await script.run('ALTER TABLE t MODIFY b INET6');
    });
    assert.equal(rows.length, 3);
  });

  it('tables that are dropped, renamed, made anew and put in place by a ghost-table tool', async () => {
    await backlog(['CREATE TABLE t (id UUID PRIMARY KEY)', 'CREATE TABLE u LIKE t'], async (script) => {
      await script.row(`INSERT INTO t VALUES ('${A}')`, 'SELECT * FROM t');
      await script.row(`INSERT INTO u VALUES ('${B}')`, 'SELECT * FROM u');
      await script.run(
        'CREATE TABLE _t_gho LIKE t',
        'ALTER TABLE _t_gho ADD COLUMN b BINARY(16)',
        'RENAME TABLE t TO _t_del, _t_gho TO t',
        'DROP TABLE u',
        'CREATE TABLE u (id BINARY(16) PRIMARY KEY, x TEXT(100), y VARCHAR(16000))',
      );
      await script.row(`INSERT INTO t VALUES ('${A}', '0123456789abcdef')`, 'SELECT id, LOWER(HEX(b)) AS b FROM t');
      await script.row("INSERT INTO u (id) VALUES ('0123456789abcdef')", 'SELECT LOWER(HEX(id)) AS id, x, y FROM u');
      await script.run('DROP TABLE t', 'DROP TABLE u', 'DROP TABLE _t_del');
    });
  });

  it('a statement that is not followed puts only the columns in doubt that it names', async () => {
    await backlog(
      ['CREATE TABLE t (id UUID PRIMARY KEY, e VARCHAR(9) CHARACTER SET latin1, b BINARY(4))'],
      async (script) => {
        await script.run(UNKNOWN);
        await script.row(`INSERT INTO t VALUES ('${A}', 'ö', '0123')`, 'SELECT id, e, LOWER(HEX(b)) AS b FROM t');
        await script.run('ALTER TABLE t ADD COLUMN z INT');
      },
    );
  });

  it('one that names such a column stops with statement, place and the way out', async () => {
    await using db = await TestDatabase.create('mariadb', server);
    await using history = await TestHistory.create();
    const script = new Script(db);
    await script.run('CREATE TABLE t (id INT PRIMARY KEY, e VARCHAR(9) CHARACTER SET latin1, b BINARY(16))');
    const start = await db.source().currentPosition();
    await history.read(db, start, FULL);
    const statement = `${UNKNOWN}, MODIFY b UUID`;
    await script.run(statement);
    const [[, create] = []] = await db.select('SHOW CREATE TABLE t');
    await script.row(`INSERT INTO t VALUES (1, 'ö', '${A}')`, 'SELECT * FROM t');
    await script.run('ALTER TABLE t ADD COLUMN z INT');
    const stop = await failureOf(history.read(db, start, FULL));
    assert.ok(isMysyncError(stop, 'SOURCE_DDL_UNDECIDED'), String(stop));
    assert.equal(stop.where['statement'], statement);
    const place = String(stop.where['position']);
    assert.ok(stop.remedy.includes(`mysync ddl accept --source test --position ${place} --table ${db.name}.t`));
    const store = await FileCheckpointStore.open({ path: history.path });
    const [file = '', offset] = place.split(':');
    await answerQuestion({
      source: {
        name: 'test',
        hosts: [{ host: '127.0.0.1', port: db.port }],
        user: 'mysync',
        password: 'mysync',
        captures: () => true,
        tableRule: () => ({ noKey: 'row-hash' }),
      },
      store: await store.schemaHistory(),
      position: { file, offset: Number(offset) },
      table: `${db.name}.t`,
      answer: { kind: 'accept', createTable: create ?? '' },
      by: 'somebody',
      now: new Date(0),
    });
    await store.close();
    assert.deepEqual(afterImages(await history.read(db, start, FULL)), script.expected);
  });

  it('a reader that knows nothing from before stops at rows in doubt, and at no others', async () => {
    await using db = await TestDatabase.create('mariadb', server);
    await db.run('CREATE TABLE t (id UUID PRIMARY KEY)', 'CREATE TABLE u (id CHAR(16) PRIMARY KEY, b BINARY(15))');
    const start = await db.source().currentPosition();
    await db.run("INSERT INTO u VALUES ('a', 'b')", 'ALTER TABLE u ADD COLUMN z INT', 'DROP TABLE u');
    assert.equal(rowsOf(await readItems(db.source(), start)).length, 1);
    await db.run(`INSERT INTO t VALUES ('${A}')`);
    assert.equal(rowsOf(await readItems(db.source(), start))[1]?.after?.['id'], A);
    await db.run('ALTER TABLE t CHANGE id uid UUID');
    const stop = await failureOf(readItems(db.source(), start));
    assert.ok(isMysyncError(stop, 'SOURCE_SCHEMA_UNKNOWN'), String(stop));
    assert.equal(stop.where['table'], `${db.name}.t`);
    assert.match(String(stop.where['position']), /^\S+:\d+$/);
  });
});

describe('mariadb 11.8: VECTOR', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer('mariadb', { env: { MARIADB_VERSION: '11.8' } });
  });
  after(() => server.wipe());

  for (const metadata of ['FULL', 'NO_LOG'] as const) {
    it(`stream and snapshot say the same of it, row metadata ${metadata}`, async () => {
      await using db = await TestDatabase.create('mariadb', server);
      await using history = await TestHistory.create();
      await db.run(`SET GLOBAL binlog_row_metadata = '${metadata}'`);
      const start = await db.source().currentPosition();
      await db.run(
        'CREATE TABLE t (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR INDEX (v))',
        "INSERT INTO t VALUES (1, VEC_FromText('[1, 2.5, -3]'))",
        'ALTER TABLE t ADD COLUMN w VECTOR(2)',
        "INSERT INTO t VALUES (2, VEC_FromText('[0, 0, 0]'), VEC_FromText('[1e10, 0.1]'))",
        'UPDATE t SET id = id + 10',
        'ALTER TABLE t ADD COLUMN z INT',
      );
      const settings = metadata === 'FULL' ? FULL : {};
      const streamed = [...replay(await history.read(db, start, settings)).values()];
      const hex = await db.select('SELECT id, HEX(v), HEX(w) FROM t ORDER BY id');
      const bytes = (value: unknown): string | null =>
        value === null
          ? null
          : Buffer.from(value as Uint8Array)
              .toString('hex')
              .toUpperCase();
      const { items } = await readSnapshot(db.source());
      const read = rowsOf(items);
      for (const rows of [streamed, read]) {
        assert.deepEqual(
          rows.map(({ after }) => [String(after?.['id']), bytes(after?.['v']), bytes(after?.['w'])]).sort(),
          hex,
        );
      }
      const types = read[0]?.schema.columns.map(({ type }) => type);
      assert.deepEqual(types, ['int', 'varbinary(12)', 'varbinary(8)', 'int']);
      assert.deepEqual(
        streamed[0]?.schema.columns.map(({ type }) => type),
        types?.slice(0, 3),
      );
      await db.run("SET GLOBAL binlog_row_metadata = 'FULL'");
    });
  }
});
