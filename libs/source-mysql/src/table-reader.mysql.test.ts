/** Rows of one table for comparing, and which tables can be read at all. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { formatTableRef, type TableRef } from '@mysync/core';
import { until } from '@mysync/harness';
import { decodeKey } from '@mysync/wire';
import type { SourceRow, TableReader } from './port.ts';
import { surveyTables } from './snapshot/survey.ts';
import { FLAVORS, TestDatabase } from './testing.fixture.ts';

const { signal } = new AbortController();

function keyOf({ key }: SourceRow) {
  const decoded = decodeKey(key);
  assert.ok(decoded.kind === 'row');
  return decoded.row;
}

for (const flavor of FLAVORS) {
  describe(`tables of ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    const ref = (table: string): TableRef => ({ database: db.name, table });
    before(async () => {
      db = await TestDatabase.create(flavor);
    });
    after(async () => {
      await db.close();
    });

    it('the chunks go on behind any row, in the order of the key', async () => {
      await db.run('CREATE TABLE keyed (a INT, b VARCHAR(9), v INT, PRIMARY KEY (a, b))');
      await db.run(
        `INSERT INTO keyed VALUES ${Array.from({ length: 30 }, (_, at) => `(${at % 4}, 'k${at}', ${at})`).join(',')}`,
      );
      const source = db.source();
      const reader = await source.openTable({ table: ref('keyed'), chunkRows: 7, signal });
      const read = async (chunks: ReturnType<TableReader['chunks']>): Promise<SourceRow[]> => {
        const rows: SourceRow[] = [];
        for await (const chunk of chunks) rows.push(...chunk);
        return rows;
      };
      assert.equal(reader.isCut, true);
      const all = await read(reader.chunks());
      const expected = (await db.select('SELECT a, b FROM keyed ORDER BY a, b')).map(([a, b]) => [Number(a), b]);
      assert.deepEqual(
        all.map((row) => keyOf(row).values),
        expected,
      );
      for (const at of [0, 6, 7, 17, 29]) {
        const rest = await read(reader.chunks(keyOf(all[at] as SourceRow)));
        assert.deepEqual(
          rest.map((row) => keyOf(row).values),
          expected.slice(at + 1),
          `behind row ${at}`,
        );
      }
      await reader.close();
      await db.run('CREATE TABLE hashed (v INT)');
      const hashed = await source.openTable({ table: ref('hashed'), chunkRows: 7, signal });
      assert.equal(hashed.isCut, false);
      await hashed.close();
      await source.close();
    });

    it('the server does not hang up on a reader that pauses', async () => {
      await db.run('CREATE TABLE paused (id INT PRIMARY KEY)', 'INSERT INTO paused VALUES (1)');
      const user = `${db.name}_slow`;
      await db.run(`CREATE USER ${user}@'%' IDENTIFIED BY 'slow'`, `GRANT SELECT ON ${db.name}.* TO ${user}@'%'`);
      const [[before] = []] = await db.select('SELECT @@GLOBAL.wait_timeout');
      // sessions of others keep what they began with
      await db.run('SET GLOBAL wait_timeout = 1');
      const source = db.source({ user, password: 'slow' });
      try {
        const reader = await source.openTable({ table: ref('paused'), chunkRows: 7, signal });
        await until('it has waited for longer than the server lets a session wait', async () => {
          const sessions = (await db.select('SHOW PROCESSLIST')).filter(([, name]) => name === user);
          assert.equal(sessions.length, 1, 'its session is there');
          return Number(sessions[0]?.[5]) >= 3;
        });
        const rows: SourceRow[] = [];
        for await (const chunk of reader.chunks()) rows.push(...chunk);
        assert.equal(rows.length, 1);
        await reader.close();
      } finally {
        await source.close();
        await db.run(`SET GLOBAL wait_timeout = ${before}`, `DROP USER ${user}@'%'`);
      }
    });

    it('every captured table that is there is told as readable or not, also one that the catalogue hides', async () => {
      await db.run(
        'CREATE TABLE open_one (id INT PRIMARY KEY)',
        'CREATE TABLE hidden (id INT PRIMARY KEY)',
        'CREATE TABLE write_only (id INT PRIMARY KEY)',
        'CREATE TABLE keyless (v INT)',
      );
      const user = `${db.name}_blind`;
      await db.run(
        `CREATE USER ${user}@'%' IDENTIFIED BY 'blind'`,
        `GRANT SELECT ON ${db.name}.open_one TO ${user}@'%'`,
        `GRANT SELECT ON ${db.name}.keyless TO ${user}@'%'`,
        `GRANT SELECT, CREATE ON ${db.name}.dropped TO ${user}@'%'`,
        `GRANT INSERT ON ${db.name}.write_only TO ${user}@'%'`,
      );
      const options = db.sourceOptions({ user, password: 'blind', tableRule: () => ({ noKey: 'refuse' }) });
      const known = ['open_one', 'hidden', 'dropped'].map(ref);
      try {
        const { schemas, unreadable } = await surveyTables(options, [...known, { database: 'elsewhere', table: 't' }]);
        assert.deepEqual(schemas.map(formatTableRef), [formatTableRef(ref('open_one'))]);
        const found = new Map(unreadable.map(({ table, error }) => [table.table, error.code]));
        assert.deepEqual(
          found,
          new Map([
            ['keyless', 'SOURCE_TABLE_WITHOUT_KEY'],
            ['write_only', 'SOURCE_GRANT_MISSING'],
            ['hidden', 'SOURCE_GRANT_MISSING'],
          ]),
        );
      } finally {
        await db.run(`DROP USER ${user}@'%'`);
      }
    });
  });
}
