/** Three brokers: one frozen while the reader is killed (D2), and each restarted in turn under load (G3). */
import { after, before, test } from 'node:test';
import { Pipeline, startServer, type TestServer } from '@mysync/harness';

const NODES = ['n1', 'n2', 'n3'] as const;
let kafka: TestServer;

before(async () => {
  kafka = await startServer('kafka', { env: { NODES: '3' } });
});
after(() => kafka?.wipe());

async function pipelineOf(): Promise<Pipeline> {
  const pipeline = await Pipeline.create({ transport: 'kafka', sinks: ['redis'], servers: { kafka }, partitions: 6 });
  await pipeline.sql.query(
    'CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(80)); CREATE TABLE counter (id INT PRIMARY KEY, n INT)',
  );
  await pipeline.sql.query('INSERT INTO counter VALUES ?', [Array.from({ length: 50 }, (_, id) => [id, 0])]);
  return pipeline;
}

test('D2: one statement of 1000 rows over all partitions, a leader frozen, the reader killed', async () => {
  await using pipeline = await pipelineOf();
  const { sql } = pipeline;
  const writer = pipeline.start('writer --sink redis');
  const reader = pipeline.start('reader');
  await pipeline.equal(['counter']);
  await reader.logged(/"msg":"reading the log"/);
  await kafka.pause('n1');
  try {
    await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: 1000 }, (_, id) => [id, `row ${id}`])]);
    await sql.query('UPDATE counter SET n = n + 1');
    await reader.kill();
  } finally {
    await kafka.resume('n1');
  }
  const again = pipeline.start('reader');
  await pipeline.equal(['bulk', 'counter']);
  await pipeline.stopped(again);
  await pipeline.stopped(writer);
});

test('G3: a rolling restart of the three brokers under load', async () => {
  await using pipeline = await pipelineOf();
  const { sql } = pipeline;
  const mysync = pipeline.start('run');
  await pipeline.equal(['counter']);
  let id = 0;
  let done = false;
  const load = async (): Promise<void> => {
    while (!done) {
      await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: 20 }, () => [id++, `row ${id}`])]);
      await sql.query('UPDATE counter SET n = n + 1; DELETE FROM bulk WHERE id < ? AND id % 3 = 0', [id - 100]);
    }
  };
  const loading = load();
  const other = await pipeline.connect();
  for (const [round, node] of NODES.entries()) {
    await kafka.kill(node);
    await kafka.upPart(node);
    // a row committed after the restart arrives, whatever the brokers were up to
    await other.query('CREATE TABLE seen_?? (id INT PRIMARY KEY)'.replace('??', String(round)));
    await other.query('INSERT INTO seen_?? VALUES (1)'.replace('??', String(round)));
    await pipeline.equal([`seen_${round}`], 60_000);
  }
  done = true;
  await loading;
  await pipeline.equal(['bulk', 'counter']);
  await pipeline.stopped(mysync);
});
