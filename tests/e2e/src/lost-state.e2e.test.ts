/** What MySync keeps is full, damaged, foreign or gone: it stops before it does harm, says what to do, and that is enough. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import {
  assertClean,
  assertTold,
  errorsIn,
  Pipeline,
  runMysync,
  sharedServer,
  type TestServer,
  until,
} from '@mysync/harness';
import { Kafka, logLevel } from 'kafkajs';

const ROWS = 200;
let mariadb: TestServer;

before(async () => {
  mariadb = await sharedServer('mariadb');
});

interface Start {
  readonly transport?: 'log' | 'kafka';
}

/** Reads a table to the end, stops in order, and leaves everything in place. */
async function drained({ transport = 'log' }: Start = {}): Promise<Pipeline> {
  const pipeline = await Pipeline.create({ transport, sinks: ['redis'], servers: { mariadb }, partitions: 2 });
  await pipeline.sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  await pipeline.sql.query('INSERT INTO t VALUES ?', [Array.from({ length: ROWS }, (_, id) => [id, 'before'])]);
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  return pipeline;
}

async function failing(pipeline: Pipeline, verb = 'reader'): Promise<string> {
  const { code, stderr } = await runMysync([...verb.split(' '), '--config', pipeline.configFile]);
  assert.equal(code, 1, stderr);
  return stderr;
}

/** Changes rows while nothing runs, then starts: nothing of it may be missing. */
async function goesOn(pipeline: Pipeline): Promise<void> {
  await pipeline.sql.query("UPDATE t SET v = 'after' WHERE id % 2 = 0; DELETE FROM t WHERE id % 7 = 0");
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
}

test('a checkpoint file that is cut, damaged or not ours: nothing is touched, and a copy of it mends', async () => {
  await using pipeline = await drained();
  const file = pipeline.checkpointFile;
  const good = readFileSync(file, 'utf8');
  const [header = '', body = ''] = good.split('\n');
  for (const [name, text] of [
    ['cut within its content', good.slice(0, good.length - 50)],
    ['cut within its header', good.slice(0, 20)],
    ['empty', ''],
    ['with another position', `${header}\n${body.replace(/"offset":\d/, '"offset":9')}\n`],
    ['of another program', '{"binlog":"binlog.000001","pos":4}\n'],
    ['bytes', '\x00\xff\x00'],
  ] as const) {
    writeFileSync(file, text);
    assertTold(await failing(pipeline), {
      code: 'CHECKPOINT_INVALID',
      where: [new RegExp(`path ${file}`)],
      remedy: /Put back a copy/,
      secrets: [],
    });
    assert.equal(readFileSync(file, 'utf8'), text, `${name}: the file was changed`);
  }
  writeFileSync(file, good);
  await goesOn(pipeline);
});

test('the checkpoint of another source', async () => {
  await using pipeline = await drained();
  await using other = await drained();
  const file = pipeline.checkpointFile;
  const good = readFileSync(file);
  cpSync(other.checkpointFile, file);
  assertTold(await failing(pipeline), {
    code: 'READER_CHECKPOINT_OF_OTHER_SOURCE',
    where: [new RegExp(other.database), new RegExp(`source ${pipeline.database}`)],
    remedy: /checkpoint\.path/,
  });
  writeFileSync(file, good);
  await goesOn(pipeline);
});

test('a log without its checkpoint: the checkpoint put back, or a new topic', async () => {
  await using pipeline = await drained();
  const file = pipeline.checkpointFile;
  const aside = `${file}.aside`;
  const expected = {
    code: 'READER_LOG_WITHOUT_CHECKPOINT',
    where: [new RegExp(`topic ${pipeline.database}`)],
    remedy: /Put the checkpoint back.*new topic.*start-again\.md/,
  };
  renameSync(file, aside);
  assertTold(await failing(pipeline), expected);
  renameSync(aside, file);
  await goesOn(pipeline);
  rmSync(file);
  assertTold(await failing(pipeline), expected);
  await pipeline.sql.query('DELETE FROM t WHERE id % 5 = 0');
  await pipeline.redis?.client('cli', ['FLUSHALL']);
  await pipeline.configure({ ...pipeline.options, sourceConfig: { topic: `${pipeline.database}-2` } });
  await goesOn(pipeline);
});

test('a log that was deleted and made anew', async () => {
  await using pipeline = await drained();
  rmSync(join(pipeline.folder, 'log'), { recursive: true });
  assertTold(await failing(pipeline), {
    code: 'READER_TOPIC_CHANGED',
    where: [new RegExp(`topic ${pipeline.database}`), /\bid\b/],
    remedy: /remove the checkpoint.*start-again\.md/,
  });
  await rebuild(pipeline);
});

test('a topic of Kafka that was deleted and made anew', async () => {
  await using pipeline = await drained({ transport: 'kafka' });
  const brokers = (await sharedServer('kafka')).get('KAFKA_BROKERS').split(',');
  const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await admin.deleteTopics({ topics: [pipeline.database] });
    await until('the topic is gone', async () => !(await admin.listTopics()).includes(pipeline.database));
  } finally {
    await admin.disconnect();
  }
  assertTold(await failing(pipeline), {
    code: 'READER_TOPIC_CHANGED',
    where: [new RegExp(`topic ${pipeline.database}`), /\bid\b/],
    remedy: /remove the checkpoint.*start-again\.md/,
  });
  await rebuild(pipeline);
});

/** As the remedies say: without checkpoint, a new snapshot; the writer refuses the old contents of its sink until it is rebuilt. */
async function rebuild(pipeline: Pipeline): Promise<void> {
  rmSync(pipeline.checkpointFile);
  await pipeline.sql.query('DELETE FROM t WHERE id % 5 = 0');
  const reader = pipeline.start('reader');
  await reader.logged(/"msg":"reader started"/);
  const writer = pipeline.start('writer --sink redis');
  await writer.logged(/"msg":"partition halted"/);
  assertTold(writer.stderr, {
    code: 'WRITER_TOPIC_CHANGED',
    where: [/sink redis/, new RegExp(`topic ${pipeline.database}`), /partition \d/],
    remedy: /empty the sink.*sinks\.NAME\.group/,
  });
  await pipeline.stopped(writer);
  await pipeline.redis?.client('cli', ['FLUSHALL']);
  await pipeline.configure({ ...pipeline.options, sinkConfig: { group: `rebuilt-${pipeline.database}` } });
  const again = pipeline.start('writer --sink redis');
  await pipeline.equal(['t']);
  await pipeline.sql.query("UPDATE t SET v = 'after' WHERE id % 2 = 0; DELETE FROM t WHERE id % 7 = 0");
  await pipeline.equal(['t']);
  await pipeline.stopped(again);
  await pipeline.stopped(reader);
  assertClean(`${reader.stderr}${again.stderr}`, []);
}

test('a sink that lost its data', async () => {
  await using pipeline = await drained();
  await pipeline.redis?.client('cli', ['FLUSHALL']);
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"partition halted"/);
  assertTold(mysync.stderr, {
    code: 'WRITER_SINK_LOST',
    where: [/sink redis/, /partition \d/],
    remedy: /sinks\.NAME\.group/,
  });
  await pipeline.stopped(mysync);
  await pipeline.configure({ ...pipeline.options, sinkConfig: { group: `rebuilt-${pipeline.database}` } });
  await goesOn(pipeline);
});

const noRoot = process.getuid?.() !== 0 ? 'mounting a small file system needs root' : undefined;

test('a full disk under the embedded log: reading pauses, and goes on once there is room', {
  skip: noRoot,
}, async (t) => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    partitions: 2,
  });
  const disk = join(pipeline.folder, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk], { stdio: 'pipe' });
  } catch (error) {
    t.skip(`no file system can be mounted here: ${String(error)}`);
    return;
  }
  try {
    const transport = { log: { path: join(disk, 'log'), minFreeBytes: 4 * 2 ** 20 } };
    await pipeline.configure({
      ...pipeline.options,
      config: { transport: { kind: 'log', partitions: 2, ...transport } },
    });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))');
    const mysync = pipeline.start('run');
    await mysync.logged(/"msg":"reader started"/);
    for (let from = 0; from < 20_000; from += 1000) {
      await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 1000 }, (_, n) => [from + n, 'x'.repeat(1500)])]);
    }
    await until('the full disk is told', () => {
      assert.ok(mysync.running, mysync.stderr);
      return errorsIn(mysync.stderr).some(({ code }) => code === 'TRANSPORT_DISK_FULL');
    });
    assertTold(mysync.stderr, {
      code: 'TRANSPORT_DISK_FULL',
      where: [new RegExp(disk), /bytes are free/],
      remedy: /Free disk space/,
    });
    assert.ok(statfsSync(disk).bavail > 0, 'some is kept free');
    const args = ['--config', pipeline.configFile, `--telemetry.port=${mysync.telemetryPort}`];
    const status = await runMysync(['status', ...args]);
    assert.match(status.stdout, new RegExp(`^source ${pipeline.database}: streaming: TRANSPORT_DISK_FULL`, 'm'));
    execFileSync('mount', ['-o', 'remount,size=200m', disk], { stdio: 'pipe' });
    await pipeline.equal(['t']);
    await sql.query('DELETE FROM t WHERE id % 3 = 0');
    await pipeline.equal(['t']);
    await pipeline.stopped(mysync);
    assertClean(mysync.stderr, []);
  } finally {
    for (const process of pipeline.processes) if (process.running) await process.kill();
    execFileSync('umount', [disk]);
  }
});
