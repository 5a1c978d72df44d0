/** The reader on each store of checkpoints: killed again and again under load, nothing is lost; whoever looks on sees the position. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, type PipelineOptions, runMysync } from '@mysync/harness';
import { CheckpointDatabase } from './checkpoint-database.fixture.ts';

const LIVES = 4;

async function livesOf(options: PipelineOptions): Promise<void> {
  await using pipeline = await Pipeline.create(options);
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 200 }, (_, id) => [id, 0])]);
  const writer = pipeline.start('writer --sink redis');
  let reader: MysyncProcess | undefined;
  for (let life = 1; life <= LIVES; life++) {
    reader = pipeline.start('reader');
    await reader.logged(life === 1 ? /"msg":"started"/ : /"msg":"reading the log"/);
    for (let n = 0; n < 20; n++) {
      await sql.query('UPDATE t SET n = n + 1 WHERE id % 20 = ?', [n]);
      await sql.query('DELETE FROM t WHERE id = ?', [life * 10 + n]);
      await sql.query('INSERT INTO t VALUES (?, ?)', [life * 1000 + n, n]);
    }
    if (life < LIVES) await reader.kill();
  }
  await pipeline.equal(['t']);
  const status = await runMysync(['status', '--json', '--config', pipeline.configFile]);
  assert.equal(status.code, 0, status.stderr);
  const [source] = JSON.parse(status.stdout).sources;
  assert.match(source.checkpoint, /:\d+$/);
  // the first may have been killed before it had one
  assert.ok(source.epoch >= LIVES - 1, `epoch ${source.epoch}`);
  if (reader !== undefined) await pipeline.stopped(reader);
  await pipeline.stopped(writer);
}

for (const transport of ['kafka', 'log'] as const) {
  test(`a topic of the transport ${transport}`, async () => {
    await livesOf({
      transport,
      sinks: ['redis'],
      config: { checkpoint: { kind: 'topic' }, reader: { checkpointMs: 50 } },
    });
  });
}

test('a table of the very server that is read', async () => {
  await using database = await CheckpointDatabase.create();
  await livesOf({
    transport: 'log',
    sinks: ['redis'],
    config: { checkpoint: database.config, reader: { checkpointMs: 50 } },
  });
});
