/** `mysync drill`, on a set-up as a user has it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Pipeline, runMysync, until } from '@mysync/harness';

test('every fault is survived, and the report says so', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    config: { reader: { checkpointMs: 200 } },
  });
  const { sql, database, folder, configFile } = pipeline;
  await sql.query('CREATE TABLE mine (id INT PRIMARY KEY, v INT); INSERT INTO mine VALUES (1, 1)');
  const plan = join(folder, 'plan.json');
  await writeFile(plan, JSON.stringify([{ name: 'a fault of mine', break: 'true', mend: 'true', seconds: 0 }]));
  const common = ['drill', '--sink', 'redis', '--folder', join(folder, 'drill'), '--config', configFile];
  const foreign = await runMysync([...common, '--table', `${database}.mine`]);
  assert.equal(foreign.code, 1);
  assert.match(foreign.stderr, /DRILL_TABLE_FOREIGN/);
  const args = [...common, '--table', `${database}.drilled`, '--seconds', '1', '--plan', plan, '--json'];
  const { code, stdout, stderr } = await runMysync(args, { timeoutMs: 600_000 });
  assert.equal(code, 0, stderr);
  const report = JSON.parse(stdout);
  assert.deepEqual([report.ok, report.lost, report.wrong, report.stale], [true, 0, 0, 0]);
  assert.deepEqual(
    report.faults.map((fault: { kind: string }) => fault.kind),
    [
      ...['source cut off', 'source silent', 'source slow', 'sink cut off', 'sink silent', 'sink slow'],
      ...['reader killed', 'reader frozen', 'writer killed', 'writer frozen', 'a fault of mine'],
    ],
  );
  assert.deepEqual(report.omitted, []);
  assert.ok(report.changes > 100 && report.looks > 10, stdout);
  const [tables] = await sql.query('SHOW TABLES');
  assert.equal((tables as unknown[]).length, 1, 'the table of the drill is gone');
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
