/**
 * A new consumer group that begins with a compacted topic, of Kafka or of the embedded log, ends with exactly the table: thousands of rewrites and deletions of a few
 * hundred keys, moved primary keys, readers killed, a leader frozen in mid-send and generations begun anew, most of it compacted away.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pipeline, runMysync, startServer, until } from '@mysync/harness';
import kafkajs, { type Admin, Kafka, logLevel } from 'kafkajs';
import type { Connection } from 'mysql2/promise';

const KEYS = 300;
const ROUNDS = 36;
const PARTITIONS = 2;
const LAST = '987654';
/** Longer than a reader is away here: its tail must be whole. */
const COMPACTION_LAG_MS = 8_000;

/** One round: every row is rewritten, some are deleted and come back, some move to another key and back. */
async function rewrite(sql: Connection, round: number, padding = 150): Promise<void> {
  await sql.query('UPDATE item SET v = CONCAT(?, id, REPEAT(?, ?))', [`round ${round} of `, 'x', padding]);
  await sql.query('DELETE FROM item WHERE id % 5 = ? AND id < ?', [round % 5, KEYS]);
  await sql.query('UPDATE IGNORE item SET id = id + 1000 WHERE id < ? AND id % 7 = ?', [KEYS, round % 7]);
  await sql.query('UPDATE IGNORE item SET id = id - 1000 WHERE id >= 1000 AND id % 3 = ?', [round % 3]);
  const ids = Array.from({ length: KEYS }, (_, id) => [id, `again in round ${round}`]).filter(
    ([id]) => Number(id) % 4 < 2,
  );
  await sql.query('INSERT IGNORE INTO item VALUES ?', [ids]);
}

interface Census {
  readonly records: number;
  readonly tombstones: number;
  /** Offsets that the topic has given away. */
  readonly offsets: number;
  /** The row that was written last is there. */
  readonly complete: boolean;
}

/** What is in the topic, as kafkajs reads it. */
async function census(kafka: Kafka, admin: Admin, topic: string): Promise<Census> {
  const ends = await admin.fetchTopicOffsets(topic);
  const missing = new Map(ends.map(({ partition, high }) => [partition, Number(high)]));
  const groupId = `census-${Math.random()}`;
  const consumer = kafka.consumer({ groupId });
  let records = 0;
  let tombstones = 0;
  let complete = false;
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    consumer.on('consumer.crash', ({ payload }) => reject(payload.error));
    consumer
      .run({
        eachBatch: async ({ batch }) => {
          for (const { key, value } of batch.messages) {
            records += 1;
            if (key?.includes(LAST)) complete = true;
            if (value === null) tombstones += 1;
          }
          if (Number(batch.lastOffset()) + 1 >= (missing.get(batch.partition) ?? 0)) missing.delete(batch.partition);
          if (missing.size === 0) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return { records, tombstones, complete, offsets: ends.reduce((sum, { high }) => sum + Number(high), 0) };
}

async function setTopic(admin: Admin, topic: string, name: string, value: string): Promise<void> {
  const configEntries = [{ name, value }];
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      { type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries: [...topicSettings(), ...configEntries] },
    ],
  });
}

function topicSettings(): { name: string; value: string }[] {
  return Object.entries({
    'cleanup.policy': 'compact',
    'segment.ms': '1000',
    'min.cleanable.dirty.ratio': '0.01',
    'min.compaction.lag.ms': `${COMPACTION_LAG_MS}`,
    'max.compaction.lag.ms': `${COMPACTION_LAG_MS}`,
    'file.delete.delay.ms': '1000',
    'delete.retention.ms': `${7 * 86_400_000}`,
    'message.timestamp.type': 'LogAppendTime',
  }).map(([name, value]) => ({ name, value }));
}

test('kafka: a new group begins with a compacted topic and ends with exactly the table', async () => {
  await using broker = await startServer('kafka');
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    partitions: PARTITIONS,
    servers: { kafka: broker },
    config: { reader: { checkpointMs: 200, heartbeatMs: 500 } },
  });
  const { sql, database } = pipeline;
  await pipeline.configure({
    ...pipeline.options,
    config: {
      ...pipeline.options.config,
      transport: {
        minCompactionLagMs: COMPACTION_LAG_MS,
        kafka: { ...(pipeline.transportConfig['kafka'] as object), requestTimeoutMs: 2_000 },
      },
    },
  });
  const kafka = new Kafka({ brokers: broker.get('KAFKA_BROKERS').split(','), logLevel: logLevel.NOTHING });
  const admin = kafka.admin({ retry: { retries: 10 } });
  await admin.connect();
  try {
    const topics = [{ topic: database, numPartitions: PARTITIONS, configEntries: topicSettings() }];
    await admin.createTopics({ topics, waitForLeaders: true });
    await sql.query('CREATE TABLE item (id INT PRIMARY KEY, v VARCHAR(250))');
    let reader = pipeline.start('reader');
    await pipeline.snapshotDone();
    await sql.query('INSERT INTO item VALUES ?', [Array.from({ length: KEYS }, (_, id) => [id, 'first'])]);
    for (let round = 0; round < ROUNDS; round += 1) {
      if (round % 12 === 3) {
        await reader.logged(/"msg":"reader started"/);
        // What piles up before the frozen leader makes batches that the topic does not take any more: all goes again under the next generation.
        await setTopic(admin, database, 'max.message.bytes', '6000');
        await broker.pause();
        try {
          for (let more = 0; more < 3; more += 1) await rewrite(sql, round);
          await reader.logged(/looking for the leaders|waiting for the producer id/);
        } finally {
          await broker.resume();
        }
        await reader.logged(/under the next generation/);
      }
      await rewrite(sql, round);
      if (round % 12 === 9) {
        await setTopic(admin, database, 'max.message.bytes', '1000000');
        await reader.kill();
        reader = pipeline.start('reader');
      }
    }
    await reader.logged(/"msg":"reader started"/);
    await sql.query('DELETE FROM item WHERE id % 11 = 0');
    await sql.query('INSERT INTO item VALUES (?, ?)', [LAST, 'the last']);

    let found: Census | null = null;
    const compacted = async (): Promise<Census | false> => {
      found = await census(kafka, admin, database);
      return found.complete && found.offsets > 10_000 && found.records < 2_500 && found;
    };
    const left = await until('the cleaner has removed what is superseded', compacted, {
      everyMs: 1_000,
      timeoutMs: 120_000,
    }).catch((cause: unknown) => {
      throw new Error(`still there: ${JSON.stringify(found)}`, { cause });
    });
    assert.ok(left.tombstones > 20, `${JSON.stringify(left)}: deletions are still told`);

    const writer = pipeline.start('writer --sink redis');
    await pipeline.equal(['item'], 60_000);
    const metrics = await writer.metrics();
    const verdicts = new Map<string, number>();
    for (const [, verdict = '', count] of metrics.matchAll(
      /^mysync_writer_guard_verdicts_total\{.*verdict="(\w+)".*\} (\d+)$/gm,
    )) {
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + Number(count));
    }
    const accepted = verdicts.get('accept') ?? 0;
    // The cleaner goes on after the census: what is sure to be left is one message a row.
    const [[{ rows }]] = (await sql.query('SELECT COUNT(*) AS `rows` FROM item')) as unknown as [[{ rows: number }]];
    assert.ok(
      accepted >= rows && accepted < left.offsets / 5,
      `${accepted} accepted across the gaps, of ${JSON.stringify(left)}, for ${rows} rows`,
    );
    assert.equal(verdicts.get('early') ?? 0, 0, 'no gap was waited for');
    assert.doesNotMatch(metrics, /^mysync_writer_open_gap_seconds\{.*\} [^0]/m);
    // And it follows on from there.
    await sql.query('UPDATE item SET v = ? WHERE id % 2 = 0; DELETE FROM item WHERE id % 13 = 1', ['last']);
    await pipeline.equal(['item'], 60_000);
    await pipeline.stopped(writer);
    await pipeline.stopped(reader);
  } finally {
    await admin.disconnect();
  }
});

test('log: a new group begins with a compacted log and ends with exactly the table', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: PARTITIONS,
    config: { reader: { checkpointMs: 200, heartbeatMs: 500 } },
  });
  const { sql } = pipeline;
  const { log } = pipeline.transportConfig as { log: object };
  await pipeline.configure({
    ...pipeline.options,
    config: {
      ...pipeline.options.config,
      transport: { minCompactionLagMs: COMPACTION_LAG_MS, log: { ...log, compactionIntervalMs: 200 } },
    },
  });
  await sql.query('CREATE TABLE item (id INT PRIMARY KEY, v VARCHAR(1500))');
  let reader = pipeline.start('reader');
  await pipeline.snapshotDone();
  await sql.query('INSERT INTO item VALUES ?', [Array.from({ length: KEYS }, (_, id) => [id, 'first'])]);
  for (let round = 0; round < ROUNDS; round += 1) {
    // a pass is worth it from 4 MiB on
    await rewrite(sql, round, 1_200);
    if (round % 6 === 3) {
      await reader.kill();
      reader = pipeline.start('reader');
    }
  }
  await reader.logged(/"msg":"reading the log"/);
  await sql.query('DELETE FROM item WHERE id % 11 = 0');
  await sql.query('INSERT INTO item VALUES (?, ?)', [LAST, 'the last']);
  const lines = await until(
    'what is superseded is gone',
    async () => {
      const { code, stdout, stderr } = await runMysync(['tail', '--config', pipeline.configFile]);
      assert.equal(code, 0, stderr);
      const found = stdout.trim().split('\n');
      return stdout.includes(LAST) && found.length < 2_500 && found;
    },
    { everyMs: 3_000, timeoutMs: 180_000 },
  );
  const read = lines.map((line) => JSON.parse(line) as { partition: number; offset: number; operation: string });
  const offsets = Math.max(...read.map(({ offset }) => offset)) * PARTITIONS;
  assert.ok(offsets > 5 * read.length, `${read.length} records are left of ${offsets}`);
  assert.ok(read.filter(({ operation }) => operation === 'delete').length > 20, 'deletions are still told');
  const writer = pipeline.start('writer --sink redis');
  await pipeline.equal(['item'], 60_000);
  await sql.query('UPDATE item SET v = ? WHERE id % 2 = 0; DELETE FROM item WHERE id % 13 = 1', ['last']);
  await pipeline.equal(['item'], 60_000);
  assert.doesNotMatch(writer.stderr, /"msg":"partition halted"/);
  await pipeline.stopped(writer);
  await pipeline.stopped(reader);
});
