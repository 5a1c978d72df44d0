/** The drained sink equals the source row by row, for both transports and both sinks, whatever happened on the way. */
import { describe, test } from 'node:test';
import { Pipeline, startServer } from '@mysync/harness';
import { changeEverything, createTables, fillBefore, KEYS, TABLES, truncateUnderLoad } from './workload.ts';

for (const transport of ['log', 'kafka'] as const) {
  describe(`${transport} to Redis and Elasticsearch`, () => {
    test('existing rows, then every kind of change, in one process', async () => {
      await using pipeline = await Pipeline.create({ transport, sinks: ['redis', 'elasticsearch'], keys: KEYS });
      const { sql } = pipeline;
      await createTables(sql);
      await fillBefore(sql);
      const mysync = pipeline.start('run');
      await pipeline.equal(TABLES);
      const other = await pipeline.connect();
      for (let round = 0; round < 2; round += 1) {
        await changeEverything(sql, round);
        await truncateUnderLoad(sql, other, round);
      }
      await pipeline.equal(TABLES);
      await pipeline.stopped(mysync);
    });

    test('restarts of reader and writers in the middle, and a sink that is down for a while', async () => {
      await using pipeline = await Pipeline.create({ transport, sinks: ['redis', 'elasticsearch'], keys: KEYS });
      const { sql } = pipeline;
      await createTables(sql);
      await fillBefore(sql);
      let reader = pipeline.start('reader');
      let redis = pipeline.start('writer --sink redis');
      const search = pipeline.start('writer --sink elasticsearch');
      await changeEverything(sql, 0);
      await pipeline.stopped(reader);
      await changeEverything(sql, 1);
      reader = pipeline.start('reader');
      await pipeline.stopped(redis);
      await changeEverything(sql, 2);
      redis = pipeline.start('writer --sink redis');
      await pipeline.redis?.kill();
      await changeEverything(sql, 3);
      await truncateUnderLoad(sql, await pipeline.connect(), 3);
      await pipeline.redis?.up();
      await changeEverything(sql, 4);
      await pipeline.equal(TABLES);
      for (const process of [search, redis, reader]) await pipeline.stopped(process);
    });
  });
}

test('MySQL to Redis through the embedded log', async () => {
  await using pipeline = await Pipeline.create({ source: 'mysql', transport: 'log', sinks: ['redis'], keys: KEYS });
  const { sql } = pipeline;
  await createTables(sql);
  await fillBefore(sql);
  const mysync = pipeline.start('run');
  const other = await pipeline.connect();
  for (let round = 0; round < 3; round += 1) {
    await changeEverything(sql, round);
    await truncateUnderLoad(sql, other, round);
  }
  await pipeline.equal(TABLES);
  await pipeline.stopped(mysync);
});

test('a broker that is killed and comes back in the middle of a load', async () => {
  await using kafka = await startServer('kafka');
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    keys: KEYS,
    servers: { kafka },
  });
  const { sql } = pipeline;
  await createTables(sql);
  await fillBefore(sql);
  const mysync = pipeline.start('run');
  await pipeline.equal(TABLES);
  await changeEverything(sql, 0);
  await kafka.kill();
  await changeEverything(sql, 1);
  await truncateUnderLoad(sql, await pipeline.connect(), 1);
  await kafka.up();
  await changeEverything(sql, 2);
  await pipeline.equal(TABLES);
  await pipeline.stopped(mysync);
});

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: a TRUNCATE under load that some of the four partitions see late`, async () => {
    await using pipeline = await Pipeline.create({ transport, sinks: ['redis'], keys: KEYS });
    const { sql } = pipeline;
    await createTables(sql);
    await fillBefore(sql);
    const reader = pipeline.start('reader');
    const writers = [pipeline.start('writer --sink redis'), pipeline.start('writer --sink redis')];
    await pipeline.equal(TABLES);
    // its partitions stand still, until the group gives them to the other one
    writers[0]?.signal('SIGSTOP');
    const other = await pipeline.connect();
    for (let round = 0; round < 3; round += 1) await truncateUnderLoad(sql, other, round);
    writers[0]?.signal('SIGCONT');
    await truncateUnderLoad(sql, other, 3);
    await pipeline.equal(TABLES);
    for (const process of [...writers, reader]) await pipeline.stopped(process);
  });
}
