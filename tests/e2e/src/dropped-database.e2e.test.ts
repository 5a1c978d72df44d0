/** A database is dropped while nobody reads its log: the catalogue no longer says what was in it, the log names the database only. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Pipeline, sharedServer, type TestServer } from '@mysync/harness';

let mariadb: TestServer;

before(async () => {
  mariadb = await sharedServer('mariadb');
});

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: sinks lose the rows of its tables, those that are made again have the new ones only`, {
    timeout: 300_000,
  }, async () => {
    await using pipeline = await Pipeline.create({ transport, sinks: ['redis'], servers: { mariadb }, partitions: 2 });
    const { sql, database } = pipeline;
    await sql.query('CREATE TABLE old (id INT PRIMARY KEY, v INT); INSERT INTO old VALUES (1, 1), (2, 2)');
    const first = pipeline.start('run');
    await pipeline.equal(['old']);
    // known by its statement, not by the catalogue at the start
    await sql.query('CREATE TABLE young (id INT PRIMARY KEY, v INT); INSERT INTO young VALUES (1, 1), (2, 2)');
    await pipeline.equal(['old', 'young']);
    await pipeline.stopped(first);

    await sql.query(`INSERT INTO old VALUES (3, 3); DROP DATABASE ${database}; CREATE DATABASE ${database}`);
    await sql.query(`USE ${database}; CREATE TABLE other (id INT PRIMARY KEY)`);
    // a life that has seen the catalogue, and dies before it has seen the statement
    const second = pipeline.start('run');
    await second.logged(/"msg":"reader started"/);
    await second.kill();

    const third = pipeline.start('run');
    for (const table of ['old', 'young']) {
      await sql.query(`CREATE TABLE ${table} (id INT PRIMARY KEY, v INT); INSERT INTO ${table} VALUES (9, 9)`);
    }
    await pipeline.equal(['old', 'young']);
    await pipeline.stopped(third);
    assert.deepEqual(await pipeline.differences('redis', ['old', 'young']), []);
  });
}
