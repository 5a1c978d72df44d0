/** The source's server between two lives of the reader: another one stands in its place, or its old files are purged while nothing of ours changes. */
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { assertClean, assertTold, Pipeline, runMysync, startServer, until } from '@mysync/harness';

test('E2: the checkpoint of idle tables follows the log, so that old files may be purged', async () => {
  const mariadb = await startServer('mariadb');
  try {
    await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], servers: { mariadb } });
    await pipeline.configure({
      ...pipeline.options,
      sourceConfig: { tables: [`${pipeline.database}.t`] },
      config: { reader: { idleCheckpointMs: 200 } },
    });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE busy (id INT PRIMARY KEY)');
    await sql.query("INSERT INTO t VALUES (1, 'one')");
    const first = pipeline.start('run');
    await pipeline.equal(['t']);
    for (let id = 0; id < 300; id += 1) {
      await sql.query('INSERT INTO busy VALUES (?)', [id]);
      if (id % 100 === 99) await sql.query('FLUSH BINARY LOGS');
    }
    const names = async (): Promise<string[]> => {
      const [files] = await sql.query('SHOW BINARY LOGS');
      return (files as { Log_name: string }[]).map((file) => file.Log_name);
    };
    // the server keeps a file as long as it is sent to somebody
    await until('the old files are gone', async () => {
      await sql.query('PURGE BINARY LOGS TO ?', [(await names()).at(-1)]);
      return (await names()).length === 1;
    });
    await until('the checkpoint is in the newest file', async () => {
      const text = readFileSync(pipeline.checkpointFile, 'utf8');
      return text.includes(`"${(await names())[0]}"`);
    });
    await first.kill();
    await sql.query("UPDATE t SET v = 'unseen'; INSERT INTO t VALUES (2, 'two')");
    const second = pipeline.start('run');
    await pipeline.equal(['t']);
    await pipeline.stopped(second);
    assertClean(second.stderr, []);
  } finally {
    await mariadb.wipe();
  }
});

test('another server in place of the one that the checkpoint is of: nothing is read of it, and the former one goes on', async () => {
  const other = await startServer('mariadb');
  try {
    await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'] });
    const { sql, database } = pipeline;
    await sql.query("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO t VALUES (1, 'one')");
    const first = pipeline.start('run');
    await pipeline.equal(['t']);
    await pipeline.stopped(first);
    await other.client('sql', [
      '-e',
      `CREATE DATABASE ${database}; CREATE TABLE ${database}.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO ${database}.t VALUES (9, 'foreign')`,
    ]);
    await sql.query("INSERT INTO t VALUES (2, 'two')");
    const hosts = [`${other.get('MYSQL_HOST')}:${other.get('MYSQL_PORT')}`];
    await pipeline.configure({ ...pipeline.options, sourceConfig: { hosts } });
    const { stderr } = await runMysync(['reader', '--config', pipeline.configFile]);
    assertTold(stderr, {
      code: 'READER_SERVER_CHANGED',
      where: [new RegExp(database)],
      remedy: /Connect the server that the checkpoint is of.*start-again\.md/,
    });
    await pipeline.configure();
    const second = pipeline.start('run');
    await pipeline.equal(['t']);
    await pipeline.stopped(second);
    assertClean(second.stderr, []);
  } finally {
    await other.wipe();
  }
});
