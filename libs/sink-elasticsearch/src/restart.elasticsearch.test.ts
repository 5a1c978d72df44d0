/** The server dies and comes back, on a server of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError, type MysyncError } from '@mysync/core';
import { startServer, until } from '@mysync/harness';
import type { ApplyOutcome } from '@mysync/sink';
import { column, del, EsBench, put, schema, TestWriter } from './bench.fixture.ts';

test('H3: Elasticsearch is killed and comes back: retriable meanwhile, then nothing is lost and older changes stay refused', async () => {
  await using server = await startServer('elasticsearch');
  const bench = new EsBench(server.get('ELASTICSEARCH_URL'));
  const table = schema([column('id', 'int', 'int', 1), column('v', 'int', 'int')], { table: 'restart' });
  const sink = bench.sink({}, { requestTimeoutMs: 20_000 });
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  await sink.prepare(table);
  const writer = new TestWriter(sink, bench.stream);
  const ids = Array.from({ length: 500 }, (_, at) => at);
  await writer.apply(...ids.map((id) => put(table, [id, 1], id + 1)));
  await writer.apply(del(table, [0, 1], 1000));

  await server.kill();
  const batch = writer.batch(...ids.slice(1).map((id) => put(table, [id, 2], 1000 + id)));
  const codes = new Set<string>();
  for (let attempt = 0; attempt < 5; attempt++) {
    await assert.rejects(sink.apply(batch, new AbortController().signal), (error) => {
      assert.ok(isMysyncError(error) && error.retriable, String(error));
      codes.add(error.code);
      return true;
    });
  }
  assert.deepEqual([...codes], ['SINK_UNREACHABLE']);
  const findings = await sink.check();
  assert.deepEqual(
    findings.map(({ level, code }) => [level, code]),
    [['error', 'SINK_UNREACHABLE']],
  );

  await server.up();
  const errors: MysyncError[] = [];
  const outcome = await until<ApplyOutcome>('the batch is applied', async () => {
    try {
      return await writer.send(batch);
    } catch (error) {
      if (!isMysyncError(error) || !error.retriable) return assert.fail(String(error));
      errors.push(error);
      return undefined;
    }
  });
  assert.deepEqual(outcome, { status: 'applied', stale: 0 });
  assert.ok(doubts.length > 0);
  assert.deepEqual(await writer.apply(put(table, [0, 9], 999), put(table, [1, 9], 500)), {
    status: 'applied',
    stale: 2,
  });
  const documents = await bench.documents(`${bench.prefix}-shop-restart`);
  assert.equal(documents.size, 499);
  for (const { v } of documents.values()) assert.equal(v, '2');
  await sink.close();
});
