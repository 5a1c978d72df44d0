/**
 * Foreign keys that InnoDB follows by itself (innodb_native_foreign_keys, as every MySQL before 9.6): the log holds the parent's rows only, and the
 * source tells which tables were changed unseen. The same statements on a server that logs such rows tell nothing.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { FileCheckpointStore } from '@mysync/checkpoint';
import { startServer, type TestServer } from '@mysync/harness';
import { TestHistory } from './history/history.fixture.ts';
import type { BinlogSource, SourceItem } from './port.ts';
import { connect, readItems, TestDatabase } from './testing.fixture.ts';

/** Tables told as changed unseen, by transaction; those without are left out. */
function toldBy(items: readonly SourceItem[]): string[] {
  const told: string[] = [];
  let tables: string[] = [];
  for (const item of items) {
    if (item.kind === 'unseen') tables.push(`${item.table.table}${item.cause === 'cascade' ? '' : ` (${item.cause})`}`);
    if (item.kind !== 'commit') continue;
    if (tables.length > 0) told.push(tables.sort().join(' '));
    tables = [];
  }
  return told;
}

async function nextOf(stream: AsyncIterator<readonly SourceItem[]>): Promise<readonly SourceItem[]> {
  const { value, done } = await stream.next();
  if (done === true) throw new Error('the stream ended');
  return value;
}

for (const args of [[], ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF']]) {
  describe(`rows that InnoDB changes by foreign keys ${args.join(' ')}`, { timeout: 300_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let source: BinlogSource;
    before(async () => {
      server = await startServer('mysql', { args: ['--innodb-native-foreign-keys=ON', ...args] });
    });
    after(() => server?.wipe());
    afterEach(() => db.close());
    beforeEach(async () => {
      db = await TestDatabase.create('mysql', server);
      source = db.source();
      await db.run(`
        CREATE TABLE parent (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, n INT, j JSON, t TEXT);
        CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE coded (id INT PRIMARY KEY, c VARCHAR(20), FOREIGN KEY (c) REFERENCES parent (code) ON UPDATE CASCADE ON DELETE SET NULL);
        CREATE TABLE plain (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
        CREATE TABLE grand (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE of_coded (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES coded (id) ON DELETE CASCADE);
        INSERT INTO parent VALUES (1, 'a', 1, '{"x": 1}', 'text'), (2, 'b', 2, '{"x": 2}', NULL), (3, 'c', 3, NULL, 't'), (4, 'd', 4, '{}', 'u');
        INSERT INTO child VALUES (1, 1), (2, 2), (3, 3);
        INSERT INTO coded VALUES (1, 'a'), (2, 'b'), (3, 'c');
        INSERT INTO grand VALUES (1, 1), (2, 2);
        INSERT INTO of_coded VALUES (1, 1), (2, 2)`);
    });

    const streamed = async (statements: readonly string[], by = source): Promise<string[]> => {
      const from = await by.currentPosition();
      await db.run(...statements);
      return toldBy(await readItems(by, from));
    };

    it('the log has no row of them', async () => {
      const from = await source.currentPosition();
      await db.run('DELETE FROM parent WHERE id = 1');
      const items = await readItems(source, from);
      assert.equal(items.filter(({ kind }) => kind === 'row').length, 1);
      assert.deepEqual(await db.select('SELECT COUNT(*) FROM child'), [['2']]);
      assert.deepEqual(await db.select('SELECT COUNT(*) FROM grand'), [['1']]);
    });

    it('deletions reach as far as their actions do', async () => {
      // coded keeps its rows, so that of_coded does
      assert.deepEqual(await streamed(['DELETE FROM parent WHERE id = 1']), ['child coded grand']);
      assert.deepEqual(await streamed(['DELETE FROM coded WHERE id = 2']), ['of_coded']);
      assert.deepEqual(await streamed(["REPLACE INTO parent VALUES (2, 'b', 9, NULL, NULL)"]), ['child coded grand']);
      assert.deepEqual(await streamed(['INSERT INTO parent (id, code) VALUES (9, "z")', 'DELETE FROM grand']), []);
    });

    it('updates of a column that is referred to, and of no other', async () => {
      assert.deepEqual(
        await streamed([
          'UPDATE parent SET n = n + 1, t = REPEAT("x", 300)',
          'UPDATE parent SET code = code, id = id, n = 7',
        ]),
        [],
      );
      assert.deepEqual(await streamed(['UPDATE parent SET id = 20 WHERE id = 2']), ['child']);
      assert.deepEqual(await streamed(["UPDATE parent SET code = 'cc', n = 5 WHERE id = 3"]), ['coded']);
      assert.deepEqual(await streamed(['UPDATE child SET id = 10 WHERE id = 1']), ['grand']);
      assert.deepEqual(
        await streamed(['INSERT INTO parent (id, code) VALUES (1, "a") ON DUPLICATE KEY UPDATE code = "aa"']),
        ['coded'],
      );
    });

    for (const image of ['MINIMAL', 'NOBLOB']) {
      it(`updates whose images are ${image}`, async () => {
        const any = db.source({ tableRule: () => ({ noKey: 'row-hash', onPartialRow: 'reread' }) });
        await db.run(`SET SESSION binlog_row_image = ${image}`);
        assert.deepEqual(
          await streamed(['UPDATE parent SET n = n + 1, t = "y"', 'UPDATE parent SET j = NULL'], any),
          [],
        );
        assert.deepEqual(await streamed(['UPDATE parent SET id = 20 WHERE id = 2'], any), ['child']);
        assert.deepEqual(await streamed(["UPDATE parent SET code = 'cc' WHERE id = 3"], any), ['coded']);
        assert.deepEqual(await streamed(['DELETE FROM parent WHERE id = 1'], any), ['child coded grand']);
      });
    }

    it('partial updates and compressed transactions', async () => {
      const set = 'UPDATE parent SET j = JSON_SET(j, "$.x", 5)';
      for (const captures of ['child', 'parent'].map((name) => [name, 'child', 'coded'])) {
        const some = db.source({ captures: ({ database, table }) => database === db.name && captures.includes(table) });
        await db.run("SET SESSION binlog_row_value_options = 'PARTIAL_JSON', binlog_transaction_compression = ON");
        assert.deepEqual(await streamed([`${set}, n = 8`], some), []);
        assert.deepEqual(await streamed([`${set}, code = CONCAT(code, 'x') WHERE id < 3`], some), ['coded']);
        assert.deepEqual(await streamed([`${set}, id = id + 100 WHERE id = 4`], some), ['child']);
        await db.run('UPDATE parent SET id = 4 WHERE id = 104');
      }
      await db.run("SET SESSION binlog_row_value_options = '', binlog_transaction_compression = OFF");
    });

    it('parents that are not captured, chains over such tables, and other databases', async () => {
      const other = `${db.name}_other`;
      await db.run(
        `CREATE DATABASE ${other};
         CREATE TABLE ${other}.far (id INT PRIMARY KEY, n INT);
         CREATE TABLE ${other}.near (id INT PRIMARY KEY, f INT UNIQUE, FOREIGN KEY (f) REFERENCES ${other}.far (id) ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE leaf (id INT PRIMARY KEY, f INT, FOREIGN KEY (f) REFERENCES ${other}.near (f) ON DELETE SET NULL ON UPDATE CASCADE);
         INSERT INTO ${other}.far VALUES (1, 1), (2, 2);
         INSERT INTO ${other}.near VALUES (1, 1), (2, 2);
         INSERT INTO leaf VALUES (1, 1), (2, 2)`,
      );
      try {
        assert.deepEqual(await streamed([`UPDATE ${other}.far SET n = 5`]), []);
        assert.deepEqual(await streamed([`UPDATE ${other}.far SET id = 20 WHERE id = 2`]), ['leaf']);
        assert.deepEqual(await streamed([`DELETE FROM ${other}.far WHERE id = 1`]), ['leaf']);
        assert.deepEqual(await db.select('SELECT * FROM leaf ORDER BY id'), [
          ['1', null],
          ['2', '20'],
        ]);
        const only = db.source({ captures: ({ table }) => table === 'parent' });
        assert.deepEqual(await streamed(['DELETE FROM parent WHERE id < 3'], only), []);
      } finally {
        await db.run(`DROP TABLE leaf; DROP DATABASE ${other}`);
      }
    });

    it('a table that is its own parent', async () => {
      await db.run(
        `CREATE TABLE staff (id INT PRIMARY KEY, boss INT, FOREIGN KEY (boss) REFERENCES staff (id) ON DELETE CASCADE ON UPDATE CASCADE);
         INSERT INTO staff VALUES (1, NULL), (2, 1), (3, 2), (4, NULL)`,
      );
      assert.deepEqual(
        await streamed(['UPDATE staff SET boss = 4 WHERE id = 2', 'UPDATE staff SET id = 9 WHERE id = 3']),
        [],
      );
      assert.deepEqual(await streamed(['DELETE FROM staff WHERE id = 4']), ['staff']);
      assert.deepEqual(await db.select('SELECT COUNT(*) FROM staff'), [['1']]);
    });

    it('sessions without foreign key checks change nothing', async () => {
      const told = await streamed([
        'SET foreign_key_checks = 0',
        'DELETE FROM parent WHERE id = 1; UPDATE parent SET id = 30 WHERE id = 3',
        'SET foreign_key_checks = 1',
      ]);
      assert.deepEqual(told, []);
      assert.deepEqual(await db.select('SELECT COUNT(*) FROM child'), [['3']]);
    });

    it('statements logged as text reach the children of the tables that they name', async () => {
      await db.run('SET SESSION binlog_format = STATEMENT');
      assert.deepEqual(await streamed(['DELETE FROM parent WHERE id = 1']), ['child coded grand parent (statement)']);
      const some = db.source({ captures: ({ table }) => table === 'grand' });
      assert.deepEqual(await streamed(['DELETE FROM parent WHERE id = 2'], some), ['grand']);
      assert.deepEqual(await streamed(["INSERT INTO parent (id, code) VALUES (77, 'q')"], some), []);
      await db.run('SET SESSION binlog_format = ROW');
    });

    it('keys that come while the log is read', async () => {
      await db.run('CREATE TABLE late (id INT PRIMARY KEY, p INT); INSERT INTO late VALUES (1, 1), (2, 2), (3, 3)');
      const stop = new AbortController();
      const items: SourceItem[] = [];
      const from = await source.currentPosition();
      const stream = source.stream({ from, signal: stop.signal })[Symbol.asyncIterator]();
      /** Until a row of `parent` has come, and its transaction's end. */
      const nextOfParent = async (): Promise<string[]> => {
        items.length = 0;
        for (;;) {
          items.push(...(await nextOf(stream)));
          if (items.some(({ kind }) => kind === 'row') && items.at(-1)?.kind !== 'row') return toldBy(items);
        }
      };
      await db.run('UPDATE parent SET n = 1 WHERE id = 4');
      assert.deepEqual(await nextOfParent(), []);
      for (let round = 0; round < 10; round += 1) {
        await db.run('ALTER TABLE late ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE CASCADE');
        await db.run(`UPDATE parent SET id = id + ${round % 2 === 0 ? 50 : -50} WHERE code = 'c'`);
        assert.deepEqual(await nextOfParent(), ['child late']);
        await db.run('ALTER TABLE late DROP FOREIGN KEY f');
        await db.run(`UPDATE parent SET n = n + 100 WHERE code = 'c'`);
        assert.deepEqual(await nextOfParent(), []);
      }
      stop.abort();
      await stream.return?.();
    });

    it('keys that are gone by the time the log is read', async () => {
      const from = await source.currentPosition();
      await db.run(
        'DELETE FROM parent WHERE id = 1',
        'ALTER TABLE child DROP FOREIGN KEY child_ibfk_1',
        'UPDATE parent SET id = 20 WHERE id = 2',
        'ALTER TABLE parent RENAME COLUMN code TO word',
        'RENAME TABLE parent TO renamed',
        'SET foreign_key_checks = 0',
        'DROP TABLE coded',
        'SET foreign_key_checks = 1',
      );
      const told = toldBy(await readItems(source, from));
      // of the child once, where its key goes: whatever the key did before is mended there
      assert.deepEqual(told, ['child grand', 'renamed (rename)', 'of_coded']);
    });

    it('a key of a parent that was renamed meanwhile', async () => {
      const from = await source.currentPosition();
      await db.run('UPDATE parent SET id = 20 WHERE id = 2', 'RENAME TABLE parent TO renamed');
      assert.deepEqual(toldBy(await readItems(source, from)), ['child coded grand renamed (rename)']);
    });

    it('rolled back to a savepoint, prepared as XA, and in one transaction with rows of their own', async () => {
      const told = await streamed([
        "XA START 'x'; DELETE FROM parent WHERE id = 1; XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'",
        'BEGIN; INSERT INTO child VALUES (8, 2); DELETE FROM parent WHERE id = 2; DELETE FROM parent WHERE id = 3; COMMIT',
      ]);
      assert.deepEqual(told, ['child coded grand', 'child coded grand']);
    });

    it('check names the tables that are changed so, and those above them that the user cannot see', async () => {
      const user = `u${db.name}`.slice(0, 30);
      await db.run(
        `CREATE TABLE root (id INT PRIMARY KEY);
         CREATE TABLE middle (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES root (id) ON DELETE CASCADE);
         CREATE TABLE leaf (id INT PRIMARY KEY, m INT, n INT,
           FOREIGN KEY (m) REFERENCES middle (id) ON DELETE CASCADE,
           FOREIGN KEY (n) REFERENCES middle (id) ON DELETE SET NULL);
         CREATE USER ${user} IDENTIFIED BY 'secret';
         GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user};
         GRANT SELECT ON ${db.name}.leaf TO ${user}`,
      );
      const findings = async (grant: string): Promise<string[]> => {
        if (grant !== '') await db.run(`GRANT SELECT ON ${db.name}.${grant} TO ${user}`);
        const by = db.source({ user, password: 'secret', captures: ({ table }) => table === 'leaf' });
        const found = (await by.check()).filter(({ level, code }) => level === 'warning' && /CASCADE|GRANT/.test(code));
        await by.close();
        return found.map(({ message, remedy }) => `${message.replaceAll(`${db.name}.`, '')} | ${remedy}`);
      };
      const changed = ['leaf_ibfk_1', 'leaf_ibfk_2'].map(
        (name) =>
          new RegExp(
            `^the foreign key ${name} lets the server change rows of leaf with those of middle, which the log does not show`,
          ),
      );
      const unseen = (table: string): RegExp =>
        new RegExp(`^the user cannot see ${table}, .* GRANT SELECT ON .${db.name}.\\..${table}. TO '${user}'@'%';$`);
      const expected: [string, RegExp[]][] = [
        ['', [...changed, unseen('middle')]],
        ['middle', [...changed, unseen('root')]],
        ['root', changed],
      ];
      for (const [grant, patterns] of expected) {
        const found = await findings(grant);
        assert.equal(found.length, patterns.length, found.join('\n'));
        for (const [i, pattern] of patterns.entries()) assert.match(found[i] ?? '', pattern);
      }
      await db.run(`DROP USER ${user}`);
    });

    it('where the log does not name columns', async () => {
      const sql = await connect(server);
      await sql.query("SET GLOBAL binlog_row_metadata = 'MINIMAL'");
      await using folder = await TestHistory.create();
      const store = await FileCheckpointStore.open({ path: folder.path });
      const history = db.source({ rowMetadata: 'history', schemaHistory: await store.schemaHistory() });
      const stop = new AbortController();
      try {
        await db.run('UPDATE parent SET n = 50');
        const from = await history.currentPosition();
        const stream = history.stream({ from, signal: stop.signal })[Symbol.asyncIterator]();
        const told = async (statement: string): Promise<string[]> => {
          await db.run(statement);
          const items: SourceItem[] = [];
          while (!items.some(({ kind }) => kind === 'commit')) items.push(...(await nextOf(stream)));
          return toldBy(items);
        };
        // the stream is open: behind here the columns have the places that the catalogue told
        await nextOf(stream);
        assert.deepEqual(await told('UPDATE parent SET n = 100'), []);
        assert.deepEqual(await told('UPDATE parent SET id = 20 WHERE id = 2'), ['child']);
        assert.deepEqual(await told('ALTER TABLE parent ADD COLUMN first INT FIRST'), []);
        // the catalogue is asked after it: whether the columns had their places then is not known
        assert.deepEqual(await told('UPDATE parent SET n = 200'), ['child coded']);
        assert.deepEqual(await told('UPDATE parent SET n = 300'), []);
        assert.deepEqual(await told("UPDATE parent SET code = 'e' WHERE id = 20"), ['coded']);
        stop.abort();
        await stream.return?.();
      } finally {
        stop.abort();
        await history.close();
        await store.close();
        await sql.query("SET GLOBAL binlog_row_metadata = 'FULL'");
        await sql.end();
      }
    });
  });
}
