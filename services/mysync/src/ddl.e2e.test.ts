/** A log without full row metadata through the real command: a statement that cannot be followed, and what an operator says to it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MysyncProcess, randomName, runMysync, startServer, type TestServer, until } from '@mysync/harness';

let mariadb: TestServer;
let env: Record<string, string> = {};
let config = '';
let folder = '';
let database = '';

before(async () => {
  mariadb = await startServer('mariadb', { args: ['--binlog-row-metadata=NO_LOG'] });
  env = { SHOP_PASSWORD: mariadb.get('MYSQL_PASSWORD') };
  await sql('CREATE DATABASE mysync');
});

after(async () => {
  await mariadb?.wipe();
});

const CHECKPOINTS = {
  file: () => ({ path: join(folder, 'checkpoints') }),
  mysql: () => ({
    kind: 'mysql',
    mysql: {
      host: `${mariadb.get('MYSQL_HOST')}:${mariadb.get('MYSQL_PORT')}`,
      user: mariadb.get('MYSQL_USER'),
      password: { env: 'SHOP_PASSWORD' },
    },
  }),
  topic: () => ({ kind: 'topic' }),
} as const;

async function configure(kind: keyof typeof CHECKPOINTS): Promise<string> {
  folder = mkdtempSync(join(tmpdir(), 'mysync-ddl-'));
  database = randomName('ddl');
  config = join(folder, 'mysync.yaml');
  await sql(`CREATE DATABASE ${database} CHARACTER SET utf8mb4`);
  await sql(`CREATE TABLE ${database}.t (id INT PRIMARY KEY, v VARCHAR(10))`);
  const content = {
    sources: {
      [database]: {
        hosts: `${mariadb.get('MYSQL_HOST')}:${mariadb.get('MYSQL_PORT')}`,
        user: mariadb.get('MYSQL_USER'),
        password: { env: 'SHOP_PASSWORD' },
        tables: `${database}.*`,
        rowMetadata: 'history',
        start: 'latest',
      },
    },
    transport: { partitions: 1, log: { path: join(folder, 'log') } },
    checkpoint: CHECKPOINTS[kind](),
    sinks: { cache: { kind: 'redis', url: 'redis://127.0.0.1:1', tables: { match: `${database}.*`, as: 'hash' } } },
    telemetry: { enabled: false },
  };
  writeFileSync(config, JSON.stringify(content));
  return `${database}.t`;
}

async function sql(statement: string): Promise<string> {
  return await mariadb.client('sql', ['-N', '-e', statement]);
}

async function ask(...args: string[]): ReturnType<typeof runMysync> {
  return await runMysync([...args, '-c', config], { env });
}

/** Rows as the log has them. */
async function published(): Promise<unknown[]> {
  const { stdout } = await ask('tail');
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line))
    .flatMap(({ operation, after: row }) => (operation === 'insert' ? [row] : []));
}

function reader(): MysyncProcess {
  return new MysyncProcess(['reader', '-c', config], { env });
}

for (const kind of ['file', 'mysql', 'topic'] as const) {
  test(`checkpoint in a ${kind}: a stop names the command that lets it go on; the command is refused where nobody asked`, async () => {
    const table = await configure(kind);
    const skip = ['ddl', 'skip', '--table', table, '--position', 'binlog.000001:4'] as const;
    {
      await using running = reader();
      await running.logged(/"msg":"reading the log"/);
      await sql(`INSERT INTO ${table} VALUES (1, 'one')`);
      await until('the first row is published', async () => (await published()).length === 1);
      const locked = await ask(...skip);
      assert.equal(locked.code, 1);
      // whoever opens a topic takes it over, so the question is asked first: the reader goes on
      assert.match(locked.stderr, kind === 'topic' ? /^SOURCE_DDL_QUESTION_NONE: /m : /^CHECKPOINT_LOCKED: /m);
      await sql(`INSERT INTO ${table} VALUES (11, 'eleven')`);
      await until('the reader goes on', async () => (await published()).length === 2);
      assert.equal((await running.stop()).code, 0);
    }
    const unasked = await ask(...skip);
    assert.equal(unasked.code, 1);
    assert.match(unasked.stderr, /^SOURCE_DDL_QUESTION_NONE: .*\n.*\n {2}what to do: No question is open/m);

    await sql(`ALTER TABLE ${table} CONVERT TO CHARACTER SET latin1, ADD c VARCHAR(10)`);
    const definition = (await mariadb.client('sql', ['-N', '-r', '-e', `SHOW CREATE TABLE ${table}`])).replace(
      /^\S+\t/,
      '',
    );
    await sql(`INSERT INTO ${table} VALUES (2, 'two', 'c')`);
    await sql(`ALTER TABLE ${table} DROP v`);
    await sql(`INSERT INTO ${table} VALUES (3, 'd')`);
    const stopped = await ask('reader');
    assert.equal(stopped.code, 1);
    const command = /mysync (ddl accept .*?) --definition FILE/.exec(stopped.stderr)?.[1];
    assert.ok(command !== undefined && stopped.stderr.includes('SOURCE_DDL_UNDECIDED'), stopped.stderr);
    const listed = JSON.parse((await ask('ddl', 'list', '--open', '--json')).stdout);
    assert.deepEqual(
      listed.entries.map((entry: { table: string; kind: string }) => [entry.table, entry.kind]),
      [[table, 'open']],
    );

    const file = join(folder, 'definition.sql');
    writeFileSync(file, definition);
    assert.equal((await ask(...command.split(' '))).code, 2, 'neither a definition nor the catalogue');
    const accepted = await ask(...command.split(' '), '--definition', file);
    assert.equal(accepted.code, 0, accepted.stderr);
    assert.match((await ask('ddl', 'list', '--open')).stdout, /^0 open questions$/m);
    await using running = reader();
    await until('all rows are published', async () => {
      if (!running.running) throw new Error(running.stderr);
      return (await published()).length === 4;
    });
    assert.deepEqual(await published(), [
      { id: 1, v: 'one' },
      { id: 11, v: 'eleven' },
      { id: 2, v: 'two', c: 'c' },
      { id: 3, c: 'd' },
    ]);
    assert.equal((await running.stop()).code, 0);
    rmSync(folder, { recursive: true });
  });
}
