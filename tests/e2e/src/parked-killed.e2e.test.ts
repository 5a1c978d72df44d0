/**
 * Rows that are refused now and taken later, while writers are killed and frozen, keys released and tables cleared: at the end, mended and released,
 * every sink equals the source, and nothing is set aside any more. A seed repeats the order of the deeds: MYSYNC_SEED=7.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, runMysync, type SinkName, until } from '@mysync/harness';
import { Redis } from 'ioredis';

const ROUNDS = 14;
const KEYS = 30;
const PARTITIONS = 2;

/** Numbers that a seed repeats. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What makes a sink refuse rows, and what ends it. */
interface Spoiler {
  /** What a row holds that the sink may refuse. */
  readonly bad: string;
  before(): Promise<void>;
  spoil(id: number): Promise<void>;
  mend(): Promise<void>;
}

function redisSpoiler(pipeline: Pipeline): Spoiler & AsyncDisposable {
  const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '');
  const key = (id: number): string => `${pipeline.database}:t:${id}`;
  return {
    bad: '1',
    before: () => Promise.resolve(),
    // Only where no row is.
    spoil: async (id) => {
      await redis.rpush(key(id), 'foreign').catch(() => 0);
    },
    mend: async () => {
      for (let id = 0; id < 2 * KEYS; id += 1) if ((await redis.type(key(id))) === 'list') await redis.del(key(id));
    },
    [Symbol.asyncDispose]: async () => {
      await redis.quit();
    },
  };
}

function elasticsearchSpoiler(pipeline: Pipeline): Spoiler & AsyncDisposable {
  const index = `${pipeline.elasticsearchUrl}/${pipeline.database}-t`;
  const put = async (path: string, ignore: boolean): Promise<void> => {
    const properties = { id: { type: 'integer' }, n: { type: 'long', ignore_malformed: ignore } };
    const body = JSON.stringify(path === '' ? { mappings: { properties } } : { properties });
    const answer = await fetch(`${index}${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body,
    });
    assert.equal(answer.status, 200, await answer.text());
  };
  return {
    bad: 'abc',
    before: () => put('', false),
    spoil: () => Promise.resolve(),
    mend: () => put('/_mapping', true),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function dlq(pipeline: Pipeline, args: readonly string[]): Promise<readonly { result?: string; key: string }[]> {
  const { code, stdout, stderr } = await runMysync(['dlq', ...args, '--json', '--config', pipeline.configFile]);
  assert.ok(code === 0 || (code === 1 && stdout !== ''), `${args.join(' ')}: ${stdout}${stderr}`);
  return JSON.parse(stdout);
}

for (const sink of ['redis', 'elasticsearch'] as const satisfies readonly SinkName[]) {
  for (const onPoison of ['park', 'dead-letter'] as const) {
    test(`${sink}, ${onPoison}: writers killed and frozen, keys released, tables cleared`, async () => {
      const seed = Number(process.env['MYSYNC_SEED'] ?? Math.floor(Math.random() * 1e6));
      const random = generator(seed);
      await using pipeline = await Pipeline.create({
        transport: 'log',
        sinks: [sink],
        partitions: PARTITIONS,
        sinkConfig: { onPoison, ...(sink === 'elasticsearch' ? { templates: false } : {}) },
      });
      const { sql } = pipeline;
      await pipeline.configure({
        ...pipeline.options,
        config: {
          transport: {
            kind: 'log',
            partitions: PARTITIONS,
            log: { path: `${pipeline.folder}/log`, memberLeaseMs: 2_000 },
          },
        },
      });
      await using spoiler = sink === 'redis' ? redisSpoiler(pipeline) : elasticsearchSpoiler(pipeline);
      await spoiler.before();
      await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(20))');
      const reader = pipeline.start('reader');
      await reader.logged(/"msg":"reader started"/);
      const verb = `writer --sink ${sink}`;
      const writers: (MysyncProcess | undefined)[] = [pipeline.start(verb), pipeline.start(verb)];
      for (let round = 0; round < ROUNDS; round += 1) {
        for (let count = 5 + random(20); count > 0; count -= 1) await change(pipeline, random, spoiler);
        const which = random(2);
        const writer = writers[which];
        switch (random(7)) {
          case 0:
          case 1:
            await writer?.kill();
            writers[which] = pipeline.start(verb);
            break;
          case 2:
            writer?.signal('SIGSTOP');
            await change(pipeline, random, spoiler);
            // One that was frozen in the middle of a commit to the embedded log keeps everybody else from it.
            await Promise.all([
              dlq(pipeline, ['retry', '--all']),
              sql.query('SELECT SLEEP(3)').then(() => writer?.signal('SIGCONT')),
            ]);
            break;
          case 3:
            // Longer than its lease: the other one takes its partitions over.
            writer?.signal('SIGSTOP');
            await sql.query('SELECT SLEEP(3)');
            writer?.signal('SIGCONT');
            break;
          case 4:
            await dlq(pipeline, ['retry', '--all']);
            break;
          case 5:
            if (random(3) === 0) await sql.query('TRUNCATE t');
            break;
          default:
            await dlq(pipeline, ['list']);
        }
      }
      await spoiler.mend();
      try {
        await until(
          'everything is released',
          async () => {
            await spoiler.mend();
            await dlq(pipeline, ['retry', '--all']);
            const differences = await pipeline.differences(sink, ['t']);
            return differences.length === 0 && (await dlq(pipeline, ['list'])).length === 0;
          },
          { timeoutMs: 120_000, everyMs: 500 },
        );
      } catch (cause) {
        const differences = await pipeline.differences(sink, ['t']);
        const logs = [reader, ...writers].map((each) => each?.stderr.slice(-4000)).join('\n---\n');
        const { stdout } = await runMysync(['status', '--config', pipeline.configFile]);
        throw new Error(`MYSYNC_SEED=${seed}: ${JSON.stringify(differences)}\n${stdout}\n${logs}`, { cause });
      }
      const told = pipeline.processes.map(({ stderr }) => stderr).join('');
      assert.match(told, onPoison === 'park' ? /key set aside/ : /dead letter/, `MYSYNC_SEED=${seed}`);
      for (const writer of writers) if (writer !== undefined) await pipeline.stopped(writer);
      await pipeline.stopped(reader);
    });
  }
}

async function change({ sql }: Pipeline, random: (below: number) => number, spoiler: Spoiler): Promise<void> {
  const id = random(KEYS);
  const value = random(3) === 0 ? spoiler.bad : String(random(1_000_000));
  switch (random(8)) {
    case 0:
      await sql.query('DELETE FROM t WHERE id = ?', [id]);
      await spoiler.spoil(id);
      break;
    case 1:
      await sql.query('DELETE FROM t WHERE id = ?', [id]);
      break;
    case 2:
      await sql.query('UPDATE IGNORE t SET id = id + ? WHERE id = ?', [KEYS, id]);
      break;
    case 3:
      await spoiler.spoil(id);
      break;
    default:
      await sql.query('INSERT INTO t VALUES (?, ?) ON DUPLICATE KEY UPDATE n = ?', [id, value, value]);
  }
}
