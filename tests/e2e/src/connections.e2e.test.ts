/** Connections that freeze or go silent, and readers that get in each other's way. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  assertTold,
  MysyncProcess,
  Pipeline,
  type PipelineOptions,
  runMysync,
  startServer,
  TcpProxy,
  type TestServer,
} from '@mysync/harness';

let mariadb: TestServer;

before(async () => {
  mariadb = await startServer('mariadb');
});
after(() => mariadb?.wipe());

async function pipelineOf(options: Partial<PipelineOptions> = {}): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    partitions: 2,
    ...options,
  });
  await pipeline.sql.query("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO t VALUES (1, 'one')");
  return pipeline;
}

test('F1: two sources with one server id: the second refuses, the first does not notice', async () => {
  await using first = await pipelineOf({ sourceConfig: { serverId: 424_242 } });
  await using second = await pipelineOf({ sourceConfig: { serverId: 424_242 } });
  const mysync = first.start('run');
  await mysync.logged(/"msg":"reading the log"/);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { code, stderr } = await runMysync(['reader', '--config', second.configFile]);
    assert.equal(code, 1, stderr);
    assertTold(stderr, { code: 'SOURCE_SERVER_ID_IN_USE', where: [/424242/, /host 127\.0\.0\.1/], remedy: /serverId/ });
  }
  await first.sql.query("INSERT INTO t VALUES (2, 'two')");
  await first.equal(['t']);
  assert.equal(mysync.stderr.match(/"msg":"reading the log"/g)?.length, 1, 'the first was thrown out');
  await first.stopped(mysync);
  const freed = second.start('run');
  await second.equal(['t']);
  await second.stopped(freed);
});

test('F1: a second reader of a source is locked out by the checkpoint', async () => {
  await using pipeline = await pipelineOf();
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reading the log"/);
  const { code, stderr } = await runMysync(['reader', '--config', pipeline.configFile]);
  assert.equal(code, 1);
  assertTold(stderr, {
    code: 'CHECKPOINT_LOCKED',
    where: [new RegExp(`process ${mysync.pid}\\b`), new RegExp(`path ${pipeline.folder}`)],
    remedy: /Stop the process/,
  });
  await pipeline.sql.query("INSERT INTO t VALUES (2, 'two')");
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

test('F1: a second reader with a copy of the checkpoint takes over; the older one ends and stays away', async () => {
  await using pipeline = await pipelineOf({ config: { reader: { heartbeatMs: 200, checkpointMs: 100 } } });
  const { sql, folder } = pipeline;
  const writer = pipeline.start('writer --sink redis');
  const older = pipeline.start('reader');
  await pipeline.equal(['t']);
  await older.logged(/"msg":"reading the log"/);
  const copy = join(folder, 'copied-checkpoints');
  cpSync(pipeline.checkpointFile, join(copy, `${pipeline.database}.json`));
  await using newer = new MysyncProcess(['reader', '--config', pipeline.configFile, `--checkpoint.path=${copy}`]);
  await newer.logged(/"msg":"reading the log"/);
  for (let id = 100; id < 200; id += 1) await sql.query('INSERT INTO t VALUES (?, ?)', [id, 'while both ran']);
  assert.deepEqual(await older.ended(), { code: 1, signal: null });
  assertTold(older.stderr, {
    code: 'TRANSPORT_FENCED',
    where: [new RegExp(pipeline.database)],
    remedy: /Another reader of the same source is active.*Stop one/,
  });
  await sql.query("UPDATE t SET v = 'afterwards' WHERE id % 2 = 0");
  await pipeline.equal(['t']);
  assert.equal((await newer.stop()).code, 0, newer.stderr);
  await pipeline.stopped(writer);
});

test('F2: the server freezes for more than three heartbeats, and goes on', async () => {
  await using pipeline = await pipelineOf({ sourceConfig: { heartbeatMs: 300, connectionTimeoutMs: 1000 } });
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reading the log"/);
  await pipeline.sql.query("INSERT INTO t VALUES (2, 'two')");
  await pipeline.equal(['t']);
  await mariadb.pause();
  try {
    await mysync.logged(/SOURCE_CONNECTION_LOST.*the stream of the log broke off/);
  } finally {
    await mariadb.resume();
  }
  await pipeline.sql.query("INSERT INTO t VALUES (3, 'three'); UPDATE t SET v = 'thawed' WHERE id = 1");
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

test('F2: a connection that goes silent without a word is replaced', async () => {
  await using proxy = await TcpProxy.open(Number(mariadb.get('MYSQL_PORT')));
  const hosts = [`127.0.0.1:${proxy.port}`];
  await using pipeline = await pipelineOf({ sourceConfig: { hosts, heartbeatMs: 300, connectionTimeoutMs: 1000 } });
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reading the log"/);
  for (let round = 0; round < 3; round += 1) {
    const connections = proxy.connections;
    proxy.blackHole();
    await pipeline.sql.query("INSERT INTO t VALUES (?, 'unseen at first')", [100 + round]);
    await pipeline.equal(['t']);
    assert.ok(proxy.connections > connections, 'no new connection was made');
  }
  await pipeline.stopped(mysync);
});
