/** Leaders that freeze and wake (J1), lag as operators see it (J4; a clock 5 s off, 30 with MYSYNC_SLOW=1), and an orderly stop in the middle of a slow write (J8). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MysyncProcess, Pipeline, type PipelineOptions, runMysync, until } from '@mysync/harness';
import { CheckpointDatabase } from './checkpoint-database.fixture.ts';

/** How far the clocks of writers are off. */
const OFF_SECONDS = process.env['MYSYNC_SLOW'] === '1' ? 30 : 5;

/** The largest of a gauge's values in a process, or undefined before it has one. */
async function gauge(process: MysyncProcess, name: string): Promise<number | undefined> {
  const values = await process.values(name);
  return values.length === 0 ? undefined : Math.max(...values);
}

async function frozenLeader(options: Pick<PipelineOptions, 'transport' | 'config'>): Promise<void> {
  await using pipeline = await Pipeline.create({ sinks: ['redis'], ...options });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT)');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 100 }, (_, id) => [id, 0])]);
  const writer = pipeline.start('writer --sink redis');
  const first = pipeline.start('reader');
  await pipeline.equal(['t']);
  await first.logged(/"msg":"reading the log"/);
  first.signal('SIGSTOP');
  // it wakes with these still before it
  await sql.query('UPDATE t SET n = n + 1');
  const second = pipeline.start('reader');
  await second.logged(/"msg":"reading the log"/);
  await sql.query('UPDATE t SET n = n + 1; DELETE FROM t WHERE id < 10');
  first.signal('SIGCONT');
  for (let round = 0; round < 20; round += 1) await sql.query('UPDATE t SET n = n + 1');
  assert.deepEqual(await first.ended(), { code: 1, signal: null });
  assert.match(first.stderr, /"code":"(CHECKPOINT|TRANSPORT)_FENCED"/);
  await sql.query('UPDATE t SET n = n + 1; INSERT INTO t VALUES (5, 5)');
  await pipeline.equal(['t']);
  // What the successor saved is what the next one begins with.
  await pipeline.stopped(second);
  const third = pipeline.start('reader');
  await sql.query('UPDATE t SET n = n + 1');
  await pipeline.equal(['t']);
  await pipeline.stopped(third);
  await pipeline.stopped(writer);
}

for (const transport of ['kafka', 'log'] as const) {
  test(`J1: ${transport}, checkpoints in its topic: a leader that wakes behind its successor writes nothing and ends`, async () => {
    await frozenLeader({ transport, config: { checkpoint: { kind: 'topic' }, reader: { checkpointMs: 50 } } });
  });
}

test('J1: kafka, checkpoints in MySQL: a leader that wakes behind its successor writes nothing and ends', async () => {
  await using database = await CheckpointDatabase.create();
  await frozenLeader({ transport: 'kafka', config: { checkpoint: database.config, reader: { checkpointMs: 50 } } });
});

test('J4: lag is near 0 at idle, also after a restart, grows while the sink is stuck, and is never negative', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    config: { reader: { heartbeatMs: 200 } },
  });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT)');
  await sql.query('INSERT INTO t VALUES (1, 1)');
  let mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  const negative: string[] = [];
  const lag = async (of: string): Promise<number> => {
    const seconds = (await gauge(mysync, `mysync_${of}_lag_seconds`)) ?? Number.NaN;
    if (seconds < 0) negative.push(`${of}: ${seconds}`);
    return seconds;
  };
  /** Looks over four seconds: a value that crept up with the clock would be out of it. */
  const idle = async (): Promise<void> => {
    for (const of of ['reader', 'writer']) {
      let row = 0;
      const probe = async (): Promise<boolean> => {
        row = (await lag(of)) < 2 ? row + 1 : 0;
        return row === 20;
      };
      await until(`the ${of} shows the present`, probe, { everyMs: 200 });
    }
  };
  await idle();
  await pipeline.stopped(mysync);
  mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reading the log"/);
  await idle();
  await pipeline.redis?.pause();
  try {
    await sql.query('UPDATE t SET n = 2');
    await until('the lag of the stuck sink grows', async () => (await lag('writer')) > 4);
    assert.ok((await lag('reader')) < 4, 'the reader is not behind');
  } finally {
    await pipeline.redis?.resume();
  }
  await idle();
  await pipeline.equal(['t']);
  assert.deepEqual(negative, []);
  await pipeline.stopped(mysync);
});

test(`J4: writers whose clocks are ${OFF_SECONDS} s off, one either way: near 0 at idle, grows while the sink is stuck, never negative`, async () => {
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    config: { reader: { heartbeatMs: 200 } },
  });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT)');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 100 }, (_, id) => [id, 0])]);
  const reader = pipeline.start('reader');
  const writers = [OFF_SECONDS, -OFF_SECONDS].map((off) => {
    const clock = `const now = Date.now; Date.now = () => now() + ${off * 1000};`;
    const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(clock)}`];
    return { off, process: pipeline.start('writer --sink redis', { nodeArgs }) };
  });
  await pipeline.equal(['t']);
  const negative: number[] = [];
  const lag = async (writer: MysyncProcess): Promise<number> => {
    const seconds = await writer.values('mysync_writer_lag_seconds');
    negative.push(...seconds.filter((value) => value < 0));
    return seconds.length === 0 ? Number.NaN : Math.max(...seconds);
  };
  const idle = async (): Promise<void> => {
    for (const { off, process } of writers) {
      let row = 0;
      const probe = async (): Promise<boolean> => {
        row = (await lag(process)) < 1 ? row + 1 : 0;
        return row === 10;
      };
      await until(`the writer that is ${off} s off shows the present`, probe, { everyMs: 200 });
    }
  };
  await idle();
  await pipeline.redis?.pause();
  try {
    await sql.query('UPDATE t SET n = 1');
    const [ahead, behind] = writers.map(({ process }) => process) as [MysyncProcess, MysyncProcess];
    const apart = async (): Promise<boolean> => (await lag(ahead)) > (await lag(behind)) + OFF_SECONDS;
    await until('the clocks are seen to be apart', apart, { timeoutMs: 90_000 });
    for (const { off, process } of writers) {
      // it shows nothing for as long as its clock is behind
      const grown = async (): Promise<boolean> => (await lag(process)) > Math.max(off, 0) + 2;
      await until(`the lag of the writer that is ${off} s off grows`, grown, { timeoutMs: 90_000 });
    }
  } finally {
    await pipeline.redis?.resume();
  }
  await idle();
  await pipeline.equal(['t']);
  assert.deepEqual(negative, []);
  for (const { process } of writers) await pipeline.stopped(process);
  await pipeline.stopped(reader);
});

async function answer(pipeline: Pipeline, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMysync([...args, '--config', pipeline.configFile]);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

/** The offset of the newest update in the log, of one partition. */
async function lastUpdate(pipeline: Pipeline): Promise<number> {
  const lines = (await answer(pipeline, 'tail')).split('\n').map((line) => JSON.parse(line));
  return lines.findLast(({ operation }) => operation === 'update').offset;
}

/** What the group has committed of the one partition, while no writer runs. */
async function committed(pipeline: Pipeline): Promise<number> {
  const [sink] = JSON.parse(await answer(pipeline, 'status', '--json')).sinks;
  return sink.partitions[0].nextOffset;
}

for (const transport of ['log', 'kafka'] as const) {
  test(`J8: ${transport}: SIGTERM in the middle of a write of ten seconds: it is finished and committed, the process ends with 0`, async () => {
    const sinkConfig = { handoverMs: 20_000, commandTimeoutMs: 20_000 };
    await using pipeline = await Pipeline.create({ transport, sinks: ['redis'], partitions: 1, sinkConfig });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT)');
    await sql.query('INSERT INTO t VALUES (1, 1)');
    const reader = pipeline.start('reader');
    const writer = pipeline.start('writer --sink redis');
    await pipeline.equal(['t']);
    await pipeline.redis?.pause();
    try {
      await sql.query('UPDATE t SET n = 2');
      await until('the write is under way', async () => {
        return ((await gauge(writer, 'mysync_writer_backlog_messages')) ?? 0) > 0;
      });
      writer.signal('SIGTERM');
      await sleep(10_000);
      assert.ok(writer.running, `it did not wait for its write: ${writer.stderr.slice(-2000)}`);
    } finally {
      await pipeline.redis?.resume();
    }
    assert.deepEqual(await writer.ended(), { code: 0, signal: null });
    // Without another process: the write arrived.
    await pipeline.equal(['t'], 1_000);
    const offset = await lastUpdate(pipeline);
    assert.ok((await committed(pipeline)) > offset, `committed behind ${offset}`);
    const next = pipeline.start('writer --sink redis');
    await sql.query('UPDATE t SET n = 3');
    await pipeline.equal(['t']);
    await pipeline.stopped(next);
    await pipeline.stopped(reader);
  });
}
