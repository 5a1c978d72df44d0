/** `mysync drill`, on a set-up as a user has it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Pipeline, runMysync, startServer, type TestServer, until } from '@mysync/harness';

const SLOW = process.env['MYSYNC_SLOW'] === '1';
const FAULTS = [
  ...['source cut off', 'source silent', 'source slow', 'sink cut off', 'sink silent', 'sink slow'],
  ...['reader killed', 'reader frozen', 'writer killed', 'writer frozen'],
];

interface DrillReport {
  readonly ok: boolean;
  readonly lost: number;
  readonly wrong: number;
  readonly stale: number;
  readonly changes: number;
  readonly looks: number;
  readonly faults: readonly { readonly kind: string; readonly recoverySeconds: number }[];
  readonly omitted: readonly { readonly faults: string }[];
}

/** A fault of the user's own. */
interface Own {
  readonly name: string;
  readonly break: string;
  readonly mend: string;
}

/** All faults, and those of the user; the table is gone afterwards. */
async function drilled(pipeline: Pipeline, sink: string, own: readonly Own[]): Promise<DrillReport> {
  const { database, folder, configFile } = pipeline;
  const plan = join(folder, 'plan.json');
  await writeFile(plan, JSON.stringify(own.map((each) => ({ seconds: 0, ...each }))));
  const args = ['drill', '--sink', sink, '--folder', join(folder, 'drill'), '--config', configFile];
  const flags = ['--table', `${database}.drilled`, '--seconds', '1', '--plan', plan, '--json'];
  const { code, stdout, stderr } = await runMysync([...args, ...flags], { timeoutMs: 600_000 });
  assert.equal(code, 0, stderr);
  // the drill may have restarted the server
  const [tables] = await (await pipeline.connect()).query("SHOW TABLES LIKE 'drilled'");
  assert.deepEqual(tables, []);
  return JSON.parse(stdout) as DrillReport;
}

function assertSurvived(report: DrillReport, own: readonly Own[], left: readonly string[]): void {
  const { ok, lost, wrong, stale, faults: struck, omitted, changes, looks } = report;
  assert.deepEqual([ok, lost, wrong, stale], [true, 0, 0, 0]);
  assert.deepEqual(
    omitted.map(({ faults }) => faults),
    left,
  );
  assert.deepEqual(
    struck.map(({ kind }) => kind),
    [...FAULTS, ...own.map(({ name }) => name)],
  );
  assert.ok(changes > 100 && looks > 10, JSON.stringify(report));
}

test('every fault is survived, restarts of database and store as well, and the report says so', async () => {
  await using mariadb = await startServer('mariadb');
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    config: { reader: { checkpointMs: 200 } },
  });
  const { sql, database, folder, configFile } = pipeline;
  await sql.query('CREATE TABLE mine (id INT PRIMARY KEY, v INT); INSERT INTO mine VALUES (1, 1)');
  const foreign = await runMysync([
    ...['drill', '--sink', 'redis', '--folder', join(folder, 'drill'), '--config', configFile],
    ...['--table', `${database}.mine`],
  ]);
  assert.equal(foreign.code, 1);
  assert.match(foreign.stderr, /DRILL_TABLE_FOREIGN/);
  const { redis } = pipeline;
  assert.ok(redis !== null);
  // mended in the sense of a user's script: the server was told to start, and answers somewhat later
  const restart = (server: TestServer): Pick<Own, 'break' | 'mend'> => ({
    break: server.commandLine('kill'),
    mend: `(sleep 2; ${server.commandLine('up')}) >/dev/null 2>&1 &`,
  });
  const own = [
    { name: 'database restarted', ...restart(mariadb) },
    { name: 'store restarted', ...restart(redis) },
  ];
  assertSurvived(await drilled(pipeline, 'redis', own), own, []);
});

test('over Kafka into Elasticsearch, with a broker that is killed and started by commands of the user', {
  skip: SLOW ? false : 'MYSYNC_SLOW=1 runs it',
}, async () => {
  await using kafka = await startServer('kafka');
  await using pipeline = await Pipeline.create({ transport: 'kafka', sinks: ['elasticsearch'], servers: { kafka } });
  const own = [{ name: 'broker restarted', break: kafka.commandLine('kill'), mend: kafka.commandLine('up') }];
  assertSurvived(await drilled(pipeline, 'elasticsearch', own), own, ['brokers restarted, ways to them']);
});

test('a drill beside a reader that runs is refused before anything is broken', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'] });
  const { database, folder, configFile, sql } = pipeline;
  await sql.query('CREATE TABLE mine (id INT PRIMARY KEY)');
  await pipeline.start('reader').logged(/"msg":"started"/);
  const args = ['drill', '--sink', 'redis', '--table', `${database}.drilled`, '--folder', join(folder, 'drill')];
  const { code, stderr } = await runMysync([...args, '--config', configFile]);
  assert.equal(code, 1);
  assert.match(stderr, /CHECKPOINT_LOCKED/);
  assert.doesNotMatch(stderr, /1\/10|"level"/);
  const [tables] = await sql.query('SHOW TABLES');
  assert.equal((tables as unknown[]).length, 1);
});

test('a drill that is killed leaves nothing running: its reader and writer stop in order', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'] });
  const { database, folder } = pipeline;
  const logs = join(folder, 'drill');
  const drill = pipeline.start(`drill --sink redis --table ${database}.drilled --seconds 1 --folder ${logs}`);
  const logOf = async (name: string): Promise<string> => await readFile(join(logs, `${name}.log`), 'utf8');
  for (const name of ['reader', 'writer']) {
    await until(`the ${name} runs`, async () => (await logOf(name)).includes('"msg":"started"'));
  }
  await drill.kill();
  for (const name of ['reader', 'writer']) {
    await until(`the ${name} has stopped`, async () => (await logOf(name)).trimEnd().endsWith('"msg":"stopped"}'));
  }
});
