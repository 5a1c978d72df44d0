/** Who is cut off looks so from outside: /readyz, metrics and status tell it while it is tried again, and it goes on by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, startServer, TcpProxy, until } from '@mysync/harness';

const LIMIT = { timeout: 240_000 };

interface Health {
  readonly code: number;
  readonly parts: readonly { readonly name: string; readonly ready: boolean; readonly detail: string }[];
}

async function get(process: MysyncProcess, path: string): Promise<Response> {
  return await fetch(`http://127.0.0.1:${process.telemetryPort}/${path}`);
}

async function readiness(process: MysyncProcess): Promise<Health> {
  const response = await get(process, 'readyz');
  return { code: response.status, ...((await response.json()) as Pick<Health, 'parts'>) };
}

/** The highest value of a metric's series; NaN when it has none. */
async function metric(process: MysyncProcess, name: string): Promise<number> {
  const values = [...(await process.metrics()).matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))];
  return values.length === 0 ? Number.NaN : Math.max(...values.map((match) => Number(match[1])));
}

const FIRST_ROW = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO t VALUES (1, 'one')";

/** Over the embedded log to one Redis. */
async function logToRedis(heartbeatMs: number): Promise<Pipeline> {
  const config = { reader: { heartbeatMs } };
  return await Pipeline.create({ transport: 'log', sinks: ['redis'], partitions: 1, config });
}

/** Waits until the process is not ready; gives what it says then. */
async function notReady(process: MysyncProcess): Promise<Health> {
  return await until('not ready', async () => {
    const health = await readiness(process);
    return health.code === 503 && health;
  });
}

async function lagGrows(writer: MysyncProcess): Promise<void> {
  await until('the lag grows', async () => (await metric(writer, 'mysync_writer_lag_seconds')) > 3);
}

test(
  'a reader whose way to MySQL swallows everything: not ready, down, late, with a cause; then it reads again',
  LIMIT,
  async () => {
    await using plain = await Pipeline.create({ transport: 'log', sinks: ['redis'], partitions: 1 });
    const [row] = (await plain.sql.query('SELECT @@port AS port'))[0] as unknown as { port: string }[];
    await using proxy = await TcpProxy.open(Number(row?.port));
    await plain.configure({
      ...plain.options,
      sourceConfig: { hosts: [`127.0.0.1:${proxy.port}`], heartbeatMs: 500, connectionTimeoutMs: 1_000 },
    });
    await plain.sql.query(FIRST_ROW);
    const mysync = plain.start('run');
    await plain.equal(['t']);
    await mysync.logged(/"msg":"reading the log"/);
    await until('ready', async () => (await readiness(mysync)).code === 200);
    assert.equal(await metric(mysync, 'mysync_reader_up'), 1);
    proxy.hold();
    const cutOff = await notReady(mysync);
    const reader = cutOff.parts.find(({ name }) => name.startsWith('reader'));
    assert.match(reader?.detail ?? '', /^disconnected: cut off from the source for \d+ s: .+/);
    assert.ok(
      cutOff.parts.every(({ name, ready }) => ready === name.startsWith('writer')),
      JSON.stringify(cutOff.parts),
    );
    assert.equal((await get(mysync, 'healthz')).status, 200, 'a restart would not help');
    assert.equal(await metric(mysync, 'mysync_reader_up'), 0);
    assert.ok((await metric(mysync, 'mysync_reader_lag_seconds')) > 15);
    const { readers } = (await (await get(mysync, 'status')).json()) as {
      readers: { state: string; detail: string }[];
    };
    assert.equal(readers[0]?.state, 'disconnected');
    await plain.sql.query("INSERT INTO t VALUES (2, 'unseen')");
    proxy.release();
    await plain.equal(['t']);
    await until('ready again', async () => (await readiness(mysync)).code === 200);
    assert.equal(await metric(mysync, 'mysync_reader_up'), 1);
    assert.ok((await metric(mysync, 'mysync_reader_source_reconnects_total')) >= 1);
    await plain.stopped(mysync);
  },
);

test(
  'a sink that dies while nothing is committed: told by its age; the first change that is committed then is the lag',
  LIMIT,
  async () => {
    await using pipeline = await logToRedis(500);
    const { redis } = pipeline;
    assert.ok(redis);
    await pipeline.sql.query(FIRST_ROW);
    const reader = pipeline.start('reader');
    const writer = pipeline.start('writer --sink redis');
    await pipeline.equal(['t']);
    await redis.pause();
    try {
      await until(
        'a heartbeat is tried again',
        async () => (await metric(writer, 'mysync_writer_stalled_seconds')) > 3,
      );
      assert.equal(await metric(writer, 'mysync_writer_lag_seconds'), 0, 'nothing that was committed waits');
      await pipeline.sql.query("INSERT INTO t VALUES (2, 'late')");
      const before = Date.now();
      await lagGrows(writer);
      // MariaDB's commit times are whole seconds
      assert.ok((await metric(writer, 'mysync_writer_lag_seconds')) <= (Date.now() - before) / 1000 + 1.5);
      const health = await notReady(writer);
      assert.match(health.parts[0]?.detail ?? '', /^partition 0: for \d+ s: /);

      await pipeline.stopped(writer);
      const again = pipeline.start('writer --sink redis');
      await again.logged(/"msg":"started"/);
      await lagGrows(again);
    } finally {
      await redis.resume();
    }
    await pipeline.equal(['t']);
    await pipeline.stopped(reader);
  },
);

test(
  'a writer that begins at the end of the log while its sink is away: what is committed then is the lag',
  LIMIT,
  async () => {
    await using pipeline = await logToRedis(30_000);
    const { redis } = pipeline;
    assert.ok(redis);
    await pipeline.sql.query(FIRST_ROW);
    const reader = pipeline.start('reader');
    const first = pipeline.start('writer --sink redis');
    await pipeline.equal(['t']);
    await until('all is applied', async () => (await metric(first, 'mysync_writer_backlog_messages')) === 0);
    await pipeline.stopped(first);
    await redis.pause();
    try {
      const writer = pipeline.start('writer --sink redis');
      await writer.logged(/"msg":"started"/);
      await until('it cannot begin', async () => (await metric(writer, 'mysync_writer_stalled_seconds')) > 1);
      await pipeline.sql.query("INSERT INTO t VALUES (2, 'late')");
      await lagGrows(writer);
      assert.ok((await metric(writer, 'mysync_writer_backlog_messages')) >= 1);
    } finally {
      await redis.resume();
    }
    await pipeline.equal(['t']);
    await pipeline.stopped(reader);
  },
);

test(
  'checkpoints in a topic, and nobody answers for Kafka: nothing has begun, and nothing is ready',
  LIMIT,
  async () => {
    await using pipeline = await Pipeline.create({
      transport: 'log',
      sinks: ['redis'],
      config: {
        transport: {
          kind: 'kafka',
          allowWeakerTopic: true,
          kafka: { brokers: ['127.0.0.1:1'], connectionTimeoutMs: 500 },
        },
        checkpoint: { kind: 'topic' },
      },
    });
    const mysync = pipeline.start('run');
    await mysync.logged(/"msg":"the checkpoint cannot be opened for now"/);
    const { code, parts } = await readiness(mysync);
    assert.equal(code, 503);
    assert.deepEqual(
      parts.map(({ name, ready }) => ({ name, ready })),
      [{ name: 'start', ready: false }],
    );
    assert.equal((await get(mysync, 'healthz')).status, 200);
    assert.equal(await metric(mysync, 'mysync_reader_up'), 0);
    assert.equal(await metric(mysync, 'mysync_writer_assigned_partitions'), 0);
  },
);

test(
  'brokers that say nothing more: the reader cannot publish and the writer has left its group, and both say so until they are answered',
  LIMIT,
  async () => {
    await using kafka = await startServer('kafka');
    await using pipeline = await Pipeline.create({
      transport: 'kafka',
      sinks: ['redis'],
      servers: { kafka },
      partitions: 1,
      config: { reader: { heartbeatMs: 500 } },
    });
    await pipeline.sql.query(FIRST_ROW);
    const reader = pipeline.start('reader');
    const writer = pipeline.start('writer --sink redis');
    await pipeline.equal(['t']);
    const ready = async (): Promise<boolean> =>
      (await readiness(reader)).code === 200 && (await readiness(writer)).code === 200;
    await until('both are ready', ready);
    await kafka.pause();
    try {
      await until(
        'no partition is held',
        async () => (await metric(writer, 'mysync_writer_assigned_partitions')) === 0,
      );
      const told = async (process: MysyncProcess, pattern: RegExp): Promise<void> => {
        const health = await notReady(process);
        assert.match(health.parts[0]?.detail ?? '', pattern);
      };
      await told(reader, /^streaming: cut off from the transport for \d+ s: /);
      assert.equal(await metric(reader, 'mysync_reader_up'), 0);
      assert.ok((await metric(reader, 'mysync_reader_lag_seconds')) > 10);
      await told(writer, /^cut off from its group for \d+ s: /);
      await pipeline.sql.query("INSERT INTO t VALUES (2, 'late')");
    } finally {
      await kafka.resume();
    }
    await pipeline.equal(['t']);
    await until('both are ready again', ready);
    assert.equal(await metric(reader, 'mysync_reader_up'), 1);
    await pipeline.stopped(writer);
    await pipeline.stopped(reader);
  },
);
