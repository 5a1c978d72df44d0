/** Tables that left the configuration, and what became of them meanwhile: sinks lose the rows of those that are gone, and of no others; what goes stale is told. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Pipeline, type PipelineOptions, runMysync, type SinkName, until } from '@mysync/harness';

const FAST = { reader: { checkpointMs: 200, heartbeatMs: 500 } };
const SINKS: readonly SinkName[] = ['redis'];

function options(given: Partial<PipelineOptions>): PipelineOptions {
  return { transport: 'log', sinks: SINKS, partitions: 2, config: FAST, ...given };
}

/** Names in the checkpoint of tables that consumers may hold rows of. */
function known({ checkpointFile }: Pipeline): readonly string[] {
  const { snapshot } = JSON.parse(readFileSync(checkpointFile, 'utf8').split('\n')[1] ?? '') as {
    snapshot: { knownTables: readonly { database: string; table: string }[] };
  };
  return snapshot.knownTables.map(({ table }) => table).sort();
}

async function keys({ redis }: Pipeline, database: string, table: string): Promise<string> {
  return ((await redis?.client('cli', ['--scan', '--pattern', `${database}:${table}:*`])) ?? '').trim();
}

async function codes(pipeline: Pipeline): Promise<readonly string[]> {
  const { stdout } = await runMysync(['check', '--json', '--config', pipeline.configFile]);
  const { findings } = JSON.parse(stdout) as { findings: { code: string; level: string }[] };
  return findings.flatMap(({ code, level }) => (level === 'warning' ? [code] : []));
}

for (const source of ['mariadb', 'mysql'] as const) {
  test(`${source}: tables that are dropped, made anew, or changed while they are not captured`, {
    timeout: 300_000,
  }, async () => {
    await using pipeline = await Pipeline.create(options({ source }));
    const { sql, database } = pipeline;
    const other = `${database}_other`;
    const sinkConfig = { tables: [{ match: [`${database}*.*`], as: 'hash', key: '{database}:{table}:{column:id}' }] };
    const capture = async (...tables: readonly string[]): Promise<void> => {
      const sourceConfig = { heartbeatMs: 500, tables: [`${database}.*`, `${other}.*`, ...tables] };
      await pipeline.configure({ ...pipeline.options, sourceConfig, sinkConfig });
    };
    await sql.query(`CREATE DATABASE ${other}`);
    for (const table of ['keep', 'dropped', 'anew', 'away', 'old_name', `${other}.x`]) {
      await sql.query(`CREATE TABLE ${table} (id INT PRIMARY KEY, v INT); INSERT INTO ${table} VALUES (1, 1), (2, 2)`);
    }
    await capture();
    const first = pipeline.start('run');
    await pipeline.equal(['keep', 'dropped', 'anew', 'away', 'old_name']);
    await until('the rows of the other database are there', async () => (await keys(pipeline, other, 'x')) !== '');
    await sql.query('RENAME TABLE old_name TO new_name');
    await sql.query('ALTER TABLE new_name RENAME TO newer_name');
    await pipeline.equal(['newer_name']);
    await pipeline.stopped(first);
    assert.deepEqual(known(pipeline), ['anew', 'away', 'dropped', 'keep', 'newer_name', 'x']);

    await capture(`!${database}.dropped`, `!${database}.anew`, `!${database}.away`, `!${other}.*`);
    const second = pipeline.start('run');
    await second.logged(/"code":"READER_TABLE_LEFT"[^\n]*away/);
    await sql.query(`DROP TABLE dropped; DROP TABLE anew; DROP DATABASE ${other}; UPDATE away SET v = 7`);
    await sql.query('INSERT INTO keep VALUES (3, 3)');
    await pipeline.equal(['keep']);
    await pipeline.stopped(second);
    assert.ok((await codes(pipeline)).includes('READER_TABLE_LEFT'));

    // still ahead in the log at the next start
    await sql.query('CREATE TABLE anew (id INT PRIMARY KEY, v INT); INSERT INTO anew VALUES (9, 9)');
    await capture();
    const third = pipeline.start('run');
    await until('the rows of what was dropped are gone', async () => {
      return `${await keys(pipeline, database, 'dropped')}${await keys(pipeline, other, 'x')}` === '';
    });
    await pipeline.equal(['keep', 'anew', 'away', 'newer_name']);
    // one of that name begins anew
    await sql.query('CREATE TABLE dropped (id INT PRIMARY KEY, v INT); INSERT INTO dropped VALUES (5, 5)');
    await pipeline.equal(['dropped']);
    const verified = await runMysync(['verify', '--sink', 'redis', '--config', pipeline.configFile]);
    assert.equal(verified.code, 0, verified.stdout);
    await pipeline.stopped(third);
    assert.deepEqual(known(pipeline), ['anew', 'away', 'dropped', 'keep', 'newer_name']);
    assert.deepEqual(
      (await codes(pipeline)).filter((code) => code.startsWith('READER_')),
      [],
    );
  });

  test(`${source}: a table that the user may no longer see keeps its rows`, { timeout: 300_000 }, async () => {
    await using pipeline = await Pipeline.create(options({ source }));
    const { sql, database } = pipeline;
    for (const table of ['seen', 'hidden', 'dropped']) {
      await sql.query(`CREATE TABLE ${table} (id INT PRIMARY KEY, v INT); INSERT INTO ${table} VALUES (1, 1)`);
    }
    const user = `u${database.slice(-12)}`;
    await sql.query(`CREATE USER ${user}@'%' IDENTIFIED BY 'secret'`);
    await sql.query(`GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.* TO ${user}@'%'`);
    for (const table of ['seen', 'hidden', 'dropped'])
      await sql.query(`GRANT SELECT ON ${database}.${table} TO ${user}@'%'`);
    const sourceConfig = { user, password: 'secret', heartbeatMs: 500 };
    await pipeline.configure({ ...pipeline.options, sourceConfig });
    const first = pipeline.start('run');
    await pipeline.equal(['seen', 'hidden', 'dropped']);
    await pipeline.snapshotDone();
    await pipeline.stopped(first);

    await pipeline.configure({
      ...pipeline.options,
      sourceConfig: { ...sourceConfig, tables: [`${database}.*`, `!${database}.dropped`] },
    });
    await sql.query(`REVOKE SELECT ON ${database}.hidden FROM ${user}@'%'`);
    await sql.query('DROP TABLE dropped');
    const second = pipeline.start('run');
    await second.logged(/"code":"READER_TABLE_UNCERTAIN"[^\n]*hidden/);
    await sql.query('INSERT INTO seen VALUES (2, 2)');
    await pipeline.equal(['seen']);
    await pipeline.stopped(second);

    await pipeline.configure({ ...pipeline.options, sourceConfig });
    const third = pipeline.start('run');
    await third.logged(/consumers were told that the table is gone/);
    await until(
      'the rows of what was dropped are gone',
      async () => (await keys(pipeline, database, 'dropped')) === '',
    );
    assert.notEqual(await keys(pipeline, database, 'hidden'), '');
    assert.ok((await codes(pipeline)).includes('READER_TABLE_UNCERTAIN'));
    const verified = await runMysync(['verify', '--sink', 'redis', '--config', pipeline.configFile]);
    assert.notEqual(verified.code, 0, verified.stdout);
    assert.match(verified.stdout, /hidden: NOT COMPARED: SOURCE_GRANT_MISSING/);
    await pipeline.stopped(third);
    await sql.query(`DROP USER ${user}@'%'`);
  });
}
