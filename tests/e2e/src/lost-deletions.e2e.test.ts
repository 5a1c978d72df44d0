/**
 * A writer that was away for longer than the log keeps deletions: it stops, goes on by an operator's word only, and its sink is right again once
 * `mysync verify` has mended it; what is killed in between is done again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline, runMysync, type SinkName, startServer, until } from '@mysync/harness';
import { Kafka, logLevel } from 'kafkajs';
import type { Connection } from 'mysql2/promise';
import { dlq } from './dlq.fixture.ts';

/** Longer than a writer that has nothing to do leaves its marker as it is, and notices that it was moved. */
const RETENTION_MS = 20_000;
const PARTITIONS = 2;

/** Rows come and go until the log has forgotten that row 10 was deleted. */
async function forgotten(pipeline: Pipeline, sql: Connection): Promise<void> {
  const pad = 'z'.repeat(380);
  const args = ['tail', '--source', pipeline.database, '--config', pipeline.configFile];
  await until(
    'the log has forgotten the deletions',
    async () => {
      for (let round = 0; round < 8; round += 1) {
        const rows = Array.from({ length: 500 }, (_, i) => [9_000_000 + i, pad]);
        await sql.query('REPLACE INTO churn VALUES ?', [rows]);
        await sql.query('DELETE FROM churn');
      }
      const { code, stdout, stderr } = await runMysync(args);
      assert.equal(code, 0, stderr);
      const lines = stdout.split('\n').filter((line) => line.includes('"table":"item"'));
      const said = lines.filter((line) => line.includes('"operation":"delete"') || line.includes('"tombstone":true'));
      // what came behind the deletions is there
      return lines.some((line) => line.includes('came back')) && said.length === 0;
    },
    { timeoutMs: 90_000, everyMs: 500 },
  );
}

/** Flags for a user of the source that may read one table only. */
async function blindUser(
  { database }: Pipeline,
  sql: Connection,
  table: string,
): Promise<{ readonly blind: readonly string[]; forget(): Promise<void> }> {
  const user = `${database}_blind`;
  await sql.query(
    `CREATE USER ${user}@'%' IDENTIFIED BY 'blind'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user}@'%'; GRANT SELECT ON ${database}.${table} TO ${user}@'%'`,
  );
  const key = `sources.${database}`;
  return {
    blind: ['--set', `${key}.user=${user}`, '--set', `${key}.password=blind`],
    forget: async () => void (await sql.query(`DROP USER ${user}@'%'`)),
  };
}

async function shown(pipeline: Pipeline, sink: SinkName): Promise<readonly string[]> {
  return (await pipeline.differences(sink, ['item'])).map(({ key }) => key).sort();
}

async function makeTopic(brokers: string, topic: string): Promise<void> {
  const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin({
    retry: { retries: 10 },
  });
  await admin.connect();
  try {
    const configEntries = Object.entries({
      'cleanup.policy': 'compact',
      'segment.ms': '1000',
      'min.cleanable.dirty.ratio': '0.01',
      'max.compaction.lag.ms': '1000',
      'file.delete.delay.ms': '1000',
      'delete.retention.ms': `${RETENTION_MS}`,
      'message.timestamp.type': 'LogAppendTime',
    }).map(([name, value]) => ({ name, value }));
    await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, configEntries }], waitForLeaders: true });
  } finally {
    await admin.disconnect();
  }
}

for (const [transport, sink, redisCluster] of [
  ['log', 'elasticsearch', false],
  ['kafka', 'redis', false],
  ['log', 'redis', true],
] as const) {
  test(`${transport}, ${sink}${redisCluster ? ' cluster' : ''}: deletions that the log has forgotten are mended by verify, by an operator's word only`, async () => {
    await using broker = transport === 'kafka' ? await startServer('kafka') : null;
    await using pipeline = await Pipeline.create({
      transport,
      sinks: [sink],
      redisCluster,
      partitions: PARTITIONS,
      ...(broker === null ? {} : { servers: { kafka: broker } }),
      sinkConfig: { onPoison: 'park' },
      config: { reader: { checkpointMs: 200, heartbeatMs: 500 } },
    });
    const made = pipeline.transportConfig;
    const more = { log: { ...(made['log'] as object), compactionIntervalMs: 300 } };
    await pipeline.configure({
      ...pipeline.options,
      config: {
        ...pipeline.options.config,
        transport: {
          deleteRetentionMs: RETENTION_MS,
          minCompactionLagMs: 0,
          allowWeakerTopic: true,
          ...(transport === 'log' ? more : {}),
        },
      },
    });
    if (broker !== null) await makeTopic(broker.get('KAFKA_BROKERS'), pipeline.database);
    const { sql, database } = pipeline;
    await sql.query(
      'CREATE TABLE item (id INT PRIMARY KEY, v VARCHAR(250)); CREATE TABLE churn (id INT PRIMARY KEY, v VARCHAR(400))',
    );
    await sql.query('INSERT INTO item VALUES ?', [Array.from({ length: 60 }, (_, id) => [id, 'first'])]);
    const reader = pipeline.start('reader');
    await pipeline.snapshotDone();
    let writer = pipeline.start(`writer --sink ${sink}`);
    await pipeline.equal(['item', 'churn']);
    const parks = sink === 'redis';
    if (parks) {
      // a row whose change is set aside, and which is deleted while nobody looks
      const redis = (...args: string[]): Promise<unknown> => pipeline.redis?.client('cli', args) ?? Promise.resolve();
      await redis('DEL', `${database}:item:5`);
      await redis('RPUSH', `${database}:item:5`, 'a', 'list');
      await sql.query("UPDATE item SET v = 'newer' WHERE id = 5");
      await until('it is set aside', async () => (await dlq<unknown[]>(pipeline, ['list'])).length === 1);
      await redis('DEL', `${database}:item:5`);
    }
    await writer.kill();

    await sql.query('DELETE FROM item WHERE id BETWEEN 10 AND 17 OR id = 5');
    await sql.query("INSERT INTO item VALUES (16, 'came back'), (17, 'came back')");
    await sql.query("UPDATE item SET v = 'newer' WHERE id > 50");
    await forgotten(pipeline, await pipeline.connect());
    const gone = [...(parks ? [] : [5]), 10, 11, 12, 13, 14, 15];

    writer = pipeline.start(`writer --sink ${sink}`);
    await writer.logged(/WRITER_TOMBSTONES_LOST/);
    assert.match(await writer.metrics(), /^mysync_writer_halted\{.*\} 1$/m);
    const verify = ['verify', '--sink', sink, '--config', pipeline.configFile];
    const refused = await runMysync([...verify, '--repair']);
    assert.equal(refused.code, 1, refused.stdout + refused.stderr);
    assert.match(refused.stderr, /VERIFY_DELETIONS_LOST.*|WRITER_TOMBSTONES_LOST/);
    const partial = await runMysync([...verify, '--repair', '--lost-deletions', '--table', `${database}.item`]);
    assert.equal(partial.code, 2, partial.stderr);

    // a user that cannot see a table: no partition is let go on whose deleted rows nobody would remove
    const { blind, forget } = await blindUser(pipeline, sql, 'churn');
    const refusedBlind = await runMysync([...verify, ...blind, '--repair', '--lost-deletions']);
    assert.equal(refusedBlind.code, 1, refusedBlind.stdout + refusedBlind.stderr);
    assert.match(refusedBlind.stderr, /^VERIFY_TABLES_UNREADABLE: .*item$/m);
    assert.match(await writer.metrics(), /^mysync_writer_halted\{.*\} 1$/m);

    // killed as soon as the writer goes on
    const killed = pipeline.start(`verify --sink ${sink} --repair --lost-deletions --rate 1`);
    await writer.logged(/the applied marker was moved/);
    await until('no partition stands', async () => !/^mysync_writer_halted\{.*\} 1$/m.test(await writer.metrics()));
    await killed.kill();
    let keys: readonly string[] = [];
    await until('surviving changes are applied, deleted rows stand', async () => {
      keys = await shown(pipeline, sink);
      return keys.length === gone.length && gone.every((id) => keys.includes(String(id)));
    }).catch((cause: unknown) => {
      throw new Error(`the sink differs in ${keys}`, { cause });
    });
    assert.match(await writer.metrics(), /^mysync_writer_deletions_lost\{.*\} 1$/m);
    // and the next owner of the partition knows it, too
    await writer.kill();
    writer = pipeline.start(`writer --sink ${sink}`);

    // nor is anything cleared: what is not compared is named
    const unseen = await runMysync([...verify, ...blind, '--repair', '--json']);
    assert.equal(unseen.code, 1, unseen.stdout + unseen.stderr);
    const [partly] = JSON.parse(unseen.stdout).reports;
    assert.deepEqual(
      partly.uncompared.map(({ table, error }: { table: { table: string }; error: { code: string } }) => [
        table.table,
        error.code,
      ]),
      [['item', 'SOURCE_GRANT_MISSING']],
    );
    await forget();
    assert.match(await writer.metrics(), /^mysync_writer_deletions_lost\{.*\} 1$/m);

    const mended = await runMysync([...verify, '--repair', '--lost-deletions', '--json']);
    assert.equal(mended.code, 0, mended.stdout + mended.stderr);
    const [report] = JSON.parse(mended.stdout).reports;
    const item = report.tables.find((each: { table: { table: string } }) => each.table.table === 'item');
    // of the row that is set aside Redis has the version still
    const extra = gone.length + (parks ? 1 : 0);
    assert.deepEqual([item.extra, item.repaired, item.unremoved], [extra, extra, 0]);
    assert.deepEqual(report.lostDeletions.standing, []);
    assert.ok(report.lostDeletions.mended.length > 0);
    await pipeline.equal(['item', 'churn']);
    if (parks) assert.deepEqual(await dlq(pipeline, ['list']), []);
    const again = await runMysync([...verify, '--repair', '--json']);
    assert.equal(again.code, 0, again.stdout + again.stderr + writer.stderr);
    assert.equal(JSON.parse(again.stdout).reports[0].lostDeletions, null);

    // what was removed comes back when it is inserted anew
    await sql.query(
      "INSERT INTO item VALUES (10, 'anew'), (5, 'anew'); UPDATE item SET v = 'last' WHERE id > 40; DELETE FROM item WHERE id = 16",
    );
    await pipeline.equal(['item', 'churn']);
    await until('nobody says that deleted rows may stand', async () => {
      const metrics = await writer.metrics();
      return !/^mysync_writer_(deletions_lost|halted)\{.*\} 1$/m.test(metrics);
    });
    await pipeline.stopped(writer);
    await pipeline.stopped(reader);
    assertClean(writer.stderr, []);
  });
}
