import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { FileCheckpointStore } from '@mysync/checkpoint';
import { isMysyncError, type MysyncError, parseBinlogPosition } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { failureOf, TestDatabase } from '../testing.fixture.ts';
import { answerQuestion, type DdlAnswer, describeHistory } from './answers.ts';
import { afterImages, SCANTY, Script, shown, TestHistory } from './history.fixture.ts';

/** Statements that the interpreter leaves to others, since a conversion and a new column are one statement. */
const UNKNOWN = 'ALTER TABLE t CONVERT TO CHARACTER SET latin1, ADD c VARCHAR(10)';

for (const { flavor, metadata } of SCANTY) {
  describe(`${flavor}, row metadata ${metadata}: what cannot be decided`, () => {
    let server: TestServer;
    before(async () => {
      server = await startServer(flavor, { args: [`--binlog-row-metadata=${metadata}`] });
    });
    after(() => server.wipe());

    async function answer(
      db: TestDatabase,
      history: TestHistory,
      stop: MysyncError,
      said: DdlAnswer,
      position = String(stop.where['position']),
    ): Promise<void> {
      const checkpoints = await FileCheckpointStore.open({ path: history.path });
      const hosts = [{ host: '127.0.0.1', port: db.port }];
      const noKey = { noKey: 'row-hash' } as const;
      try {
        await answerQuestion({
          source: {
            name: 'test',
            hosts,
            user: 'mysync',
            password: 'mysync',
            captures: () => true,
            tableRule: () => noKey,
          },
          store: await checkpoints.schemaHistory(),
          position: parseBinlogPosition(position),
          table: String(stop.where['table']),
          answer: said,
          by: 'somebody@here',
          now: new Date(),
        });
      } finally {
        await checkpoints.close();
      }
    }

    async function stopOf(work: Promise<unknown>, code: string): Promise<MysyncError> {
      const error = await failureOf(work);
      assert.ok(isMysyncError(error, code), String(error));
      return error;
    }

    it('a statement that is not followed is left to the catalogue, when it is the last of its table', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      const script = new Script(db);
      await script.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))');
      const start = await db.source().currentPosition();
      await history.read(db, start);
      await script.row("INSERT INTO t VALUES (1, 'é')", 'SELECT * FROM t WHERE id = 1');
      await script.run(UNKNOWN);
      await script.row("INSERT INTO t VALUES (2, 'é', 'ü')", 'SELECT * FROM t WHERE id = 2');
      assert.deepEqual(afterImages(await history.read(db, start)), script.expected);
    });

    it('with a later one it stops with statement and place, and an answer lets it go on', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      const script = new Script(db);
      await script.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))');
      const start = await db.source().currentPosition();
      await history.read(db, start);
      await script.row("INSERT INTO t VALUES (1, 'é')", 'SELECT * FROM t WHERE id = 1');
      await script.run(UNKNOWN);
      const [create] = await shown(db, 'SHOW CREATE TABLE t');
      await script.row("INSERT INTO t VALUES (2, 'é', 'ü')", 'SELECT * FROM t WHERE id = 2');
      await script.run('ALTER TABLE t DROP v');
      await script.row("INSERT INTO t VALUES (3, 'ß')", 'SELECT * FROM t WHERE id = 3');
      const stop = await stopOf(history.read(db, start), 'SOURCE_DDL_UNDECIDED');
      const place = String(stop.where['position']);
      assert.equal(stop.where['table'], `${db.name}.t`);
      assert.equal(stop.where['statement'], UNKNOWN);
      const table = `${db.name}.t`;
      assert.ok(
        stop.remedy.includes(`mysync ddl accept --source test --position ${place} --table ${table} --definition FILE`),
      );
      assert.ok(stop.remedy.includes(`mysync ddl skip --source test --position ${place} --table ${table}`));
      const open = async (): Promise<number> =>
        describeHistory(await history.entries()).filter((line) => line.kind === 'open').length;
      assert.equal(await open(), 1);
      // asked again, it is one question still
      await stopOf(history.read(db, start), 'SOURCE_DDL_UNDECIDED');
      assert.equal(await open(), 1);

      const wrong = await failureOf(answer(db, history, stop, { kind: 'skip' }, `${place}1`));
      assert.ok(isMysyncError(wrong, 'SOURCE_DDL_QUESTION_NONE') && wrong.remedy.includes(place), String(wrong));
      const bad = await failureOf(
        answer(db, history, stop, { kind: 'accept', createTable: 'CREATE VIEW x AS SELECT 1' }),
      );
      assert.ok(isMysyncError(bad, 'SOURCE_DEFINITION_INVALID'), String(bad));
      await answer(db, history, stop, { kind: 'accept', createTable: create?.['Create Table'] ?? '' });
      assert.equal(await open(), 0);
      assert.deepEqual(afterImages(await history.read(db, start)), script.expected);
      const twice = await failureOf(answer(db, history, stop, { kind: 'skip' }));
      assert.ok(isMysyncError(twice, 'SOURCE_DDL_QUESTION_NONE'), String(twice));
    });

    it('a statement that changed nothing is skipped', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      const script = new Script(db);
      await script.run('CREATE TABLE t (id INT PRIMARY KEY, v TEXT CHARACTER SET utf8mb4) CHARACTER SET utf8mb4');
      const start = await db.source().currentPosition();
      await history.read(db, start);
      await script.run('ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, MODIFY v TEXT');
      await script.row("INSERT INTO t VALUES (1, 'é')", 'SELECT * FROM t WHERE id = 1');
      await script.run('ALTER TABLE t ADD w INT');
      await script.row("INSERT INTO t VALUES (2, 'é', 3)", 'SELECT * FROM t WHERE id = 2');
      const stop = await stopOf(history.read(db, start), 'SOURCE_DDL_UNDECIDED');
      await answer(db, history, stop, { kind: 'skip' });
      assert.deepEqual(afterImages(await history.read(db, start)), script.expected);
    });

    it('rows from before anything was known stop it, and are read once somebody has said what the table was like', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      const script = new Script(db);
      await script.run('CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)');
      const start = await db.source().currentPosition();
      const [create] = await shown(db, 'SHOW CREATE TABLE t');
      await script.row('INSERT INTO t VALUES (1, 10, 20)', 'SELECT * FROM t WHERE id = 1');
      await script.run('ALTER TABLE t CHANGE a b INT, CHANGE b a INT');
      await script.row('INSERT INTO t VALUES (2, 10, 20)', 'SELECT * FROM t WHERE id = 2');
      const stop = await stopOf(history.read(db, start), 'SOURCE_SCHEMA_UNKNOWN');
      const skip = await failureOf(answer(db, history, stop, { kind: 'skip' }));
      assert.ok(isMysyncError(skip, 'SOURCE_DDL_QUESTION_NONE'), String(skip));
      await answer(db, history, stop, { kind: 'accept', createTable: create?.['Create Table'] ?? '' });
      assert.deepEqual(afterImages(await history.read(db, start)), script.expected);
    });

    it('a definition that does not fit stops it; the catalogue may be the answer', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      const script = new Script(db);
      await script.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10) CHARACTER SET latin1)');
      const start = await db.source().currentPosition();
      await history.read(db, start);
      // somebody's history says that the column is longer than it is
      const checkpoints = await FileCheckpointStore.open({ path: history.path });
      const store = await checkpoints.schemaHistory();
      const stored = await store.load();
      const edited = JSON.parse(JSON.stringify(stored?.entries[0]).replace('"length":10', '"length":11'));
      await store.append([edited]);
      await checkpoints.close();
      await script.row("INSERT INTO t VALUES (1, 'é')", 'SELECT * FROM t WHERE id = 1');
      const stop = await stopOf(history.read(db, start), 'SOURCE_SCHEMA_MISFIT');
      assert.match(stop.message, /column v .* length 10 in the table map, 11 in the definition/);
      await answer(db, history, stop, { kind: 'accept', createTable: null });
      assert.deepEqual(afterImages(await history.read(db, start)), script.expected);
      const listed = describeHistory(await history.entries());
      assert.ok(listed.some((line) => line.kind === 'definition' && line.text.startsWith('operator (somebody@here)')));
    });

    it('without a history such a log is refused, with the option that allows it in the remedy', async () => {
      await using db = await TestDatabase.create(flavor, server);
      await using history = await TestHistory.create();
      await db.run('CREATE TABLE t (id INT PRIMARY KEY)');
      const start = await db.source().currentPosition();
      await db.run('INSERT INTO t VALUES (1)');
      const stop = await stopOf(history.read(db, start, { rowMetadata: 'full' }), 'SOURCE_ROW_METADATA_MISSING');
      assert.match(stop.remedy, /rowMetadata: history/);
      const levels = async (rowMetadata: 'full' | 'history'): Promise<string | undefined> =>
        (await db.source({ rowMetadata }).check()).find((each) => each.code === 'SOURCE_ROW_METADATA_NOT_FULL')?.level;
      assert.equal(await levels('full'), 'error');
      assert.equal(await levels('history'), 'warning');
    });
  });
}
