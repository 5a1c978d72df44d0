/** G4: one write to the sink takes far longer than the session of a group member: partitions are kept or given up in order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pipeline, until } from '@mysync/harness';

const STANDSTILL_MS = 40_000;
/** The least that a broker accepts by default. */
const SESSION_MS = 6_000;

/** What the group gave a writer last. */
function lastJoin(log: string): { partitions: number; generation: number } | undefined {
  const line = log.split('\n').findLast((each) => each.includes('"msg":"joined the group"'));
  return line === undefined ? undefined : JSON.parse(line);
}

test('Redis stands still for 40 s under two writers, of which one is stopped meanwhile', async (context) => {
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    sinkConfig: { handoverMs: 3_000 },
  });
  const kafka = pipeline.transportConfig['kafka'] as object;
  const transport = { ...pipeline.transportConfig, kafka: { ...kafka, sessionTimeoutMs: SESSION_MS } };
  await pipeline.configure({ ...pipeline.options, config: { transport } });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT)');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 400 }, (_, id) => [id, 0])]);
  const reader = pipeline.start('reader');
  const writers = [pipeline.start('writer --sink redis'), pipeline.start('writer --sink redis')] as const;
  await pipeline.equal(['t']);
  // in one generation: one of them may still be about to join the next
  await until('each writer holds its half', () => {
    const [one, other] = writers.map(({ stderr }) => lastJoin(stderr));
    return one?.partitions === 2 && other?.partitions === 2 && one.generation === other.generation;
  });
  const joins = (): number[] => writers.map(({ stderr }) => stderr.match(/"msg":"joined the group"/g)?.length ?? 0);
  const before = joins();

  await pipeline.redis?.pause();
  const began = performance.now();
  try {
    const load = async (end: number): Promise<void> => {
      while (performance.now() - began < end) {
        await sql.query('UPDATE t SET n = n + 1');
        await sleep(200);
      }
    };
    await load(STANDSTILL_MS / 2);
    assert.deepEqual(joins(), before, 'the group was formed anew although nobody left');
    const exit = await writers[0].stop();
    assert.equal(exit.code, 0, writers[0].stderr.slice(-3000));
    await load(STANDSTILL_MS);
    context.diagnostic(`joins before ${before}, after ${joins()}`);
    assert.ok((joins()[1] ?? 0) <= (before[1] ?? 0) + 2, `the group is formed again and again: ${joins()}`);
  } finally {
    await pipeline.redis?.resume();
  }
  await pipeline.equal(['t']);
  assert.doesNotMatch(writers[1].stderr, /"msg":"partition halted"/);
  await pipeline.stopped(writers[1]);
  await pipeline.stopped(reader);
});
