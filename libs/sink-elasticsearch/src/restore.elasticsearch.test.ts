/** Indices that come back from a snapshot, with and without the markers; on a server of its own that can take snapshots. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer, until } from '@mysync/harness';
import { column, EsBench, put, schema, TestWriter } from './bench.fixture.ts';

let server: TestServer;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mysync-snapshots-'));
  server = await startServer('elasticsearch', { args: [`path.repo=${folder}`] });
});
after(async () => {
  await server.wipe();
  await rm(folder, { recursive: true, force: true });
});

const table = schema([column('id', 'int', 'int', 1), column('v', 'int', 'int')], { table: 'restored' });
const isLost = (error: unknown): boolean =>
  isMysyncError(error, 'ES_INDEX_LOST') && /verify --sink \S+ --repair/.test(error.remedy);

/** A sink with one document, a snapshot of everything, and another document. */
async function filled(options: Parameters<EsBench['sink']>[1] = {}) {
  const bench = new EsBench(server.get('ELASTICSEARCH_URL'));
  const repository = `${bench.prefix}-backups`;
  await ask('PUT', `/_snapshot/${repository}`, { type: 'fs', settings: { location: join(folder, repository) } });
  const documents = `${bench.prefix}-shop-restored`;
  const sink = bench.sink({}, options);
  await sink.holders();
  await sink.prepare(table);
  const writer = new TestWriter(sink, bench.stream);
  await writer.apply(put(table, [1, 1], 1));
  const backup = writer.marker;
  await ask('PUT', `/_snapshot/${repository}/first?wait_for_completion=true`, { indices: `${bench.prefix}-*` });
  const later = writer.batch(put(table, [2, 2], 2));
  await writer.send(later);

  async function ask(method: string, path: string, body?: unknown): Promise<void> {
    const { status, text } = await bench.fetch(method, path, body);
    assert.ok(status < 300, `${method} ${path}: ${text}`);
  }
  return {
    bench,
    sink,
    writer,
    backup,
    documents,
    /** Puts indices back, over the closed ones or once they are deleted. */
    restore: async (names: readonly string[], how: 'closed' | 'deleted'): Promise<void> => {
      await ask(how === 'closed' ? 'POST' : 'DELETE', `/${names.join(',')}${how === 'closed' ? '/_close' : ''}`);
      const body = { indices: names.join(',') };
      await ask('POST', `/_snapshot/${repository}/first/_restore?wait_for_completion=true`, body);
    },
    [Symbol.asyncDispose]: () => bench.close(),
  };
}

for (const how of ['closed', 'deleted'] as const) {
  test(`documents restored without their markers (${how} before): every writer halts, and may be let go on`, async () => {
    await using room = await filled();
    const { bench, sink, documents, restore } = room;
    const holders = await sink.holders();
    await restore([documents], how);
    const next = bench.sink();
    await assert.rejects(next.holders(), isLost);
    await assert.rejects(next.prepare(table), isLost);
    // what the remedy says, for those who keep what is there
    const error = await next.holders().then(
      () => assert.fail('it was not noticed'),
      (reason: unknown) => reason,
    );
    const path = isMysyncError(error) ? (/DELETE (\S+),/.exec(error.remedy)?.[1] ?? '') : '';
    assert.equal((await bench.fetch('DELETE', path)).status, 200);
    assert.equal(await next.holders(), holders);
    await next.prepare(table);
  });

  test(`documents and markers restored together (${how} before): other holders, and the writer goes on from the marker of then`, async () => {
    await using room = await filled();
    const { bench, sink, documents, backup, restore } = room;
    const holders = await sink.holders();
    await restore([documents, bench.markerIndex], how);
    const next = bench.sink();
    assert.equal(await next.readMarker(bench.stream), backup);
    assert.notEqual(await next.holders(), holders);
    await next.prepare(table);
    const again = new TestWriter(next, bench.stream);
    again.marker = backup;
    assert.deepEqual(await again.apply(put(table, [1, 1], 1), put(table, [2, 2], 2)), { status: 'applied', stale: 0 });
    assert.equal((await bench.documents(documents)).size, 2);
    // noted anew: restored alone it is lost from now on
    await next.holders();
    await restore([documents], how);
    await assert.rejects(bench.sink().holders(), isLost);
  });
}

test('markers restored alone are older than the documents: nothing is lost, and nothing halts', async () => {
  await using room = await filled();
  const { bench, documents, restore } = room;
  await restore([bench.markerIndex], 'closed');
  const next = bench.sink();
  await next.readMarker(bench.stream);
  await next.holders();
  await next.prepare(table);
  await restore([documents], 'closed');
  await assert.rejects(bench.sink().holders(), isLost);
});

test('whoever has nothing to write notices a restore all the same', async () => {
  await using room = await filled({ restoreCheckMs: 20 });
  const { bench, sink, writer, documents, restore } = room;
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  // it has looked at least once when an index that it watches is another one: so it is made another one until it says so
  await until('the sink is in doubt', async () => {
    await restore([documents, bench.markerIndex], 'closed');
    return doubts.some((reason) => reason.includes(documents) || reason.includes(bench.markerIndex));
  });
  writer.marker = await sink.readMarker(bench.stream);
  await sink.holders();
  await sink.prepare(table);
  assert.equal((await writer.apply(put(table, [3, 3], 3))).status, 'applied');
});

test('a restart of the server is no restore', async () => {
  await using room = await filled();
  const { bench, sink } = room;
  const holders = await sink.holders();
  await server.kill();
  await server.up();
  const next = bench.sink();
  assert.equal(await next.holders(), holders);
  await next.prepare(table);
});

test('more indices than one request names are all looked at', async () => {
  await using room = await filled();
  const { bench, sink } = room;
  const long = randomBytes(90).toString('hex');
  const names = Array.from({ length: 20 }, (_, at) => `${bench.prefix}-shop-${long}${at}`);
  for (let at = 0; at < names.length; at += 1) {
    await sink.prepare(schema([column('id', 'int', 'int', 1)], { table: `${long}${at}` }));
  }
  const last = names.at(-1) ?? '';
  await bench.fetch('DELETE', `/${last}`);
  await bench.fetch('PUT', `/${last}`);
  await assert.rejects(bench.sink().holders(), isLost);
});
