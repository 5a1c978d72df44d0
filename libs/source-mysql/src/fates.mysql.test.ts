/** What became of tables that were captured once: only the server's word that there is none counts as gone. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TableRef } from '@mysync/core';
import type { SourceItem } from './port.ts';
import { createMysqlSource } from './source.ts';
import { FLAVORS, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`fates of tables of ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    before(async () => {
      db = await TestDatabase.create(flavor);
      await db.run('CREATE TABLE there (id INT PRIMARY KEY)', 'CREATE TABLE hidden (id INT PRIMARY KEY)');
      await db.run('CREATE VIEW looks AS SELECT * FROM there');
    });
    after(async () => {
      await db.close();
    });
    const ref = (table: string): TableRef => ({ database: db.name, table });

    it('gone, hidden, left and there are told apart', async () => {
      const source = db.source({ captures: ({ table }) => table !== 'left' });
      const asked = ['there', 'hidden', 'looks', 'gone', 'left'].map(ref);
      const fates = await source.fates([...asked, { database: `${db.name}_none`, table: 't' }]);
      assert.deepEqual(
        fates.map(({ fate }) => fate),
        ['there', 'there', 'there', 'gone', 'left', 'gone'],
      );
      const user = `${db.name}_blind`;
      await db.run(`CREATE USER ${user}@'%' IDENTIFIED BY 'blind'`, `GRANT SELECT ON ${db.name}.there TO ${user}@'%'`);
      const blind = createMysqlSource(db.sourceOptions({ user, password: 'blind', captures: () => true }));
      try {
        const seen = await blind.fates([...asked, { database: `${db.name}_none`, table: 't' }]);
        assert.deepEqual(
          seen.map(({ fate }) => fate),
          ['there', 'uncertain', 'uncertain', 'uncertain', 'uncertain', 'uncertain'],
        );
      } finally {
        await blind.close();
        await db.run(`DROP USER ${user}@'%'`);
      }
    });

    it('a view of a table that is gone tells so, one of what is no table tells nothing', async () => {
      const source = db.source();
      const told = async (table: string): Promise<string[]> => {
        const options = { only: [ref(table)], onProgress: () => undefined, signal: new AbortController().signal };
        const snapshot = await source.snapshot(options);
        const items: SourceItem[] = [];
        for await (const batch of snapshot.items) items.push(...batch);
        return items.map((item) => item.kind);
      };
      assert.deepEqual(await told('gone'), ['truncate']);
      assert.deepEqual(await told('looks'), []);
      assert.deepEqual(await told('there'), ['sweep']);
    });
  });
}
