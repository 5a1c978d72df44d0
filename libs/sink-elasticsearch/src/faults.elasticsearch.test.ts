/** Failures of items, of requests and of connections: a proxy makes them, a real Elasticsearch stands behind it. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type Clock, isMysyncError, systemClock } from '@mysync/core';
import { TlsProxy } from '@mysync/harness';
import { column, del, EsBench, never, put, schema, TestWriter } from './bench.fixture.ts';
import { type ProxiedAnswer, type ProxiedRequest, TestProxy } from './proxy.fixture.ts';

let bench: EsBench;
let proxy: TestProxy;
let index = 0;
let table = schema([]);
before(async () => {
  bench = await EsBench.open();
  proxy = await TestProxy.start(bench.url);
});
after(async () => {
  await bench.close();
  await proxy.close();
});
beforeEach(() => {
  proxy.onRequest = ({ body }) => body;
  proxy.onAnswer = (_, answer) => answer;
  proxy.requests.length = 0;
  table = schema([column('id', 'int', 'int', 1), column('v', 'text', 'text')], { table: `faults${++index}` });
});

const isBulk = ({ path }: ProxiedRequest): boolean => path.startsWith('/_bulk');
const isMarkerMove = ({ method, path }: ProxiedRequest): boolean =>
  method === 'PUT' && path.startsWith(`/${bench.markerIndex}/_doc/`);
const idsOf = ({ body }: ProxiedRequest): string[] =>
  [...body.matchAll(/"_id":"([^"]*)"/g)].map((match) => match[1] ?? '');
const bulks = (): string[][] => proxy.requests.filter(isBulk).map(idsOf);
const rejectsWith = async (promise: Promise<unknown>, code: string, retriable: boolean): Promise<void> => {
  await assert.rejects(promise, (error) => {
    assert.ok(isMysyncError(error, code), String(error));
    assert.equal(error.retriable, retriable);
    return true;
  });
};

async function writerThroughProxy(options: Parameters<EsBench['sink']>[1] = {}): Promise<TestWriter> {
  const sink = bench.sink({}, { nodes: [proxy.url], ...options });
  await sink.prepare(table);
  const writer = new TestWriter(sink, { ...bench.stream, partition: index });
  await writer.apply();
  proxy.requests.length = 0;
  return writer;
}

async function stored(): Promise<Record<string, string | undefined>> {
  const documents = await bench.documents(`${bench.prefix}-shop-${table.table}`);
  return Object.fromEntries([...documents].map(([id, { v }]) => [id, v]));
}

/** The items of these ids fail, although they are not stored: their lines are cut out of the request. */
function failItems(ids: readonly string[], status: number, type: string): void {
  const lines = (body: string): string[][] =>
    body
      .trimEnd()
      .split('\n')
      .reduce<string[][]>((items, line) => {
        if (/^\{"(index|delete)":\{"_index"/.test(line)) items.push([line]);
        else items.at(-1)?.push(line);
        return items;
      }, []);
  const fails = (item: readonly string[]): boolean => ids.some((id) => item[0]?.includes(`"_id":"${id}"`));
  proxy.onRequest = (request) => {
    if (!isBulk(request)) return request.body;
    const rest = lines(request.body).filter((item) => !fails(item));
    return rest.length === 0 ? { status: 200, body: '{"errors":false,"items":[]}' } : `${rest.flat().join('\n')}\n`;
  };
  proxy.onAnswer = (request, answer): ProxiedAnswer => {
    if (!isBulk(request)) return answer;
    const { items } = JSON.parse(answer.body) as { items: unknown[] };
    const all = lines(request.body).map((item) =>
      fails(item) ? { index: { status, error: { type, reason: 'made by the test' } } } : items.shift(),
    );
    return { status: 200, body: JSON.stringify({ errors: true, items: all }) };
  };
}

test('H3: items that fail for now are sent again, only those, and the marker waits', async () => {
  const writer = await writerThroughProxy();
  const batch = writer.batch(...[1, 2, 3, 4].map((id) => put(table, [id, `v${id}`], id)), del(table, [5, ''], 5));
  for (const [status, type] of [
    [429, 'es_rejected_execution_exception'],
    [503, 'unavailable_shards_exception'],
  ] as const) {
    failItems(['2', '4', '5'], status, type);
    await rejectsWith(writer.send(batch), 'SINK_OVERLOADED', true);
    assert.equal(proxy.requests.some(isMarkerMove), false);
    assert.deepEqual(await stored(), { 1: '"v1"', 3: '"v3"' });
  }
  failItems(['4'], 429, 'cluster_block_exception');
  await rejectsWith(writer.send(batch), 'ES_READ_ONLY', true);
  proxy.onRequest = ({ body }) => body;
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
  assert.deepEqual(bulks(), [['1', '2', '3', '4', '5'], ['2', '4', '5'], ['2', '4', '5'], ['4']]);
  assert.deepEqual(await stored(), { 1: '"v1"', 2: '"v2"', 3: '"v3"', 4: '"v4"' });
  assert.equal(await writer.sink.readMarker(writer.stream), batch.marker.next);
});

test('a refused item is named once the rest is done, also when others had to wait', async () => {
  const writer = await writerThroughProxy();
  const batch = writer.batch(put(table, [1, 'a'], 1), put(table, [2, 'b'], 2));
  let rounds = 0;
  proxy.onAnswer = (request, answer) => {
    if (!isBulk(request)) return answer;
    const error = (type: string): object => ({ type, reason: 'made by the test' });
    const [first, second] =
      rounds++ === 0
        ? [
            { status: 400, error: error('document_parsing_exception') },
            { status: 429, error: error('x') },
          ]
        : [{ status: 200 }, undefined];
    const items = [first, second].filter((item) => item !== undefined).map((item) => ({ index: item }));
    return { status: 200, body: JSON.stringify({ errors: rounds === 1, items }) };
  };
  await rejectsWith(writer.send(batch), 'SINK_OVERLOADED', true);
  const outcome = await writer.send(batch);
  assert.equal(outcome.status === 'refused' && outcome.refusals.length === 1 && outcome.refusals[0]?.index === 0, true);
  assert.deepEqual(bulks(), [['1', '2'], ['2']]);
});

test('whole requests: overloaded, away, denied; the marker stays', async () => {
  const writer = await writerThroughProxy();
  const batch = writer.batch(put(table, [1, 'a'], 1));
  for (const [status, code, retriable] of [
    [429, 'SINK_OVERLOADED', true],
    [503, 'SINK_OVERLOADED', true],
    [500, 'SINK_UNREACHABLE', true],
    [502, 'SINK_UNREACHABLE', true],
    [504, 'SINK_UNREACHABLE', true],
    [401, 'SINK_DENIED', true],
    [403, 'SINK_DENIED', true],
    [400, 'ES_REQUEST_REFUSED', false],
  ] as const) {
    proxy.onRequest = (request) =>
      isBulk(request) ? { status, body: '{"error":{"type":"made_by_test","reason":"x"}}' } : request.body;
    await rejectsWith(writer.send(batch), code, retriable);
  }
  assert.equal(proxy.requests.some(isMarkerMove), false);
  proxy.onRequest = ({ body }) => body;
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
});

test('wrong credentials are said to be so, by every call and by check', async () => {
  proxy.onRequest = () => ({
    status: 401,
    body: '{"error":{"type":"security_exception","reason":"unable to authenticate user [mysync] for REST request [/]"},"status":401}',
  });
  const auth = { username: 'mysync', password: 'sesame-7391' };
  const sink = bench.sink({}, { nodes: [proxy.url], auth });
  await rejectsWith(sink.prepare(table), 'SINK_DENIED', true);
  assert.equal(proxy.requests[0]?.authorization, `Basic ${Buffer.from('mysync:sesame-7391').toString('base64')}`);
  const keyed = bench.sink({}, { nodes: [proxy.url], auth: { apiKey: 'a2V5' } });
  await rejectsWith(keyed.readMarker(bench.stream), 'SINK_DENIED', true);
  assert.equal(proxy.requests.at(-1)?.authorization, 'ApiKey a2V5');
  await rejectsWith(sink.readMarker(bench.stream), 'SINK_DENIED', true);
  const findings = await sink.check();
  assert.deepEqual(
    findings.map(({ level, code }) => [level, code]),
    [['error', 'SINK_DENIED']],
  );
  await sink.readMarker(bench.stream).catch((error: unknown) => {
    assert.ok(isMysyncError(error));
    assert.ok(!`${error.toString()}${JSON.stringify(error)}`.includes(auth.password));
  });
  assert.throws(
    () => bench.sink({}, { nodes: ['http://u:sesame-7391@h:1'] }),
    (error) => {
      assert.ok(isMysyncError(error, 'ES_OPTION_INVALID') && !String(error).includes('sesame'));
      return true;
    },
  );
});

test('what is not Elasticsearch, and versions that are not supported', async () => {
  proxy.onAnswer = (request, answer) =>
    request.path === '/' ? { status: 200, body: answer.body.replace(/"number":"[^"]*"/, '"number":"7.17.0"') } : answer;
  const old = await bench.sink({}, { nodes: [proxy.url] }).check();
  assert.ok(old.some((finding) => finding.level === 'error' && finding.code === 'ES_VERSION_UNSUPPORTED'));
  const { createServer } = await import('node:http');
  const other = createServer((_, response) => response.end('{}'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const sink = bench.sink({}, { nodes: [`http://127.0.0.1:${port}`] });
  await rejectsWith(sink.readMarker(bench.stream), 'ES_VERSION_UNSUPPORTED', false);
  other.closeAllConnections();
  other.close();
});

test('a certificate that is not trusted, or of another name, is final; the name of an index that cannot be is', async () => {
  await using secure = await TlsProxy.open(Number(new URL(bench.url).port));
  const [name, other] = [`https://localhost:${secure.port}`, `https://127.0.0.1:${secure.port}`];
  const tls = { ca: secure.certificate };
  await rejectsWith(bench.sink({}, { nodes: [name] }).readMarker(bench.stream), 'SINK_TLS_FAILED', false);
  await rejectsWith(bench.sink({}, { nodes: [other], tls }).readMarker(bench.stream), 'SINK_TLS_FAILED', false);
  assert.equal(await bench.sink({}, { nodes: [name], tls }).readMarker(bench.stream), null);
  const nobody = bench.sink({}, { nodes: ['https://localhost:1'], tls });
  await rejectsWith(nobody.readMarker(bench.stream), 'SINK_UNREACHABLE', true);
  for (const markerIndex of ['Markers', 'mark,ers', '_markers', 'mark ers']) {
    const sink = bench.sink({}, { markerIndex });
    const batch = { stream: bench.stream, changes: [], marker: { expected: null, next: '{}' } };
    await assert.rejects(sink.apply(batch, never), (error) => {
      assert.ok(isMysyncError(error) && !error.retriable, `${markerIndex}: ${error}`);
      return true;
    });
  }
});

test('a bulk over the limit of the server is halved; a single document over it is refused', async () => {
  const writer = await writerThroughProxy();
  const limit = 3000;
  proxy.onRequest = (request) => (request.body.length > limit ? { status: 413, body: '' } : request.body);
  const rows = [1, 2, 3, 4, 5, 6, 7].map((id) => put(table, [id, 'x'.repeat(700)], id));
  assert.deepEqual(await writer.apply(...rows), { status: 'applied', stale: 0 });
  assert.equal(Object.keys(await stored()).length, 7);
  const sent = proxy.requests.filter((request) => isBulk(request) && request.body.length <= limit).map(idsOf);
  assert.deepEqual(sent.flat(), ['1', '2', '3', '4', '5', '6', '7']);
  const outcome = await writer.apply(put(table, [8, 'y'], 8), put(table, [9, 'x'.repeat(4000)], 9));
  assert.ok(outcome.status === 'refused');
  assert.deepEqual(
    outcome.refusals.map((refusal) => refusal.index),
    [1],
  );
  assert.ok(isMysyncError(outcome.refusals[0]?.error, 'SINK_VALUE_REFUSED'));
});

test('bulks are bounded, in order', async () => {
  const writer = await writerThroughProxy({ maxBulkBytes: 2000 });
  const ids = Array.from({ length: 30 }, (_, at) => at + 1);
  await writer.apply(...ids.map((id) => put(table, [id, 'x'.repeat(100)], id)));
  const requests = proxy.requests.filter(isBulk);
  assert.ok(requests.length > 3 && requests.every(({ body }) => body.length <= 2000));
  assert.deepEqual(requests.flatMap(idsOf), ids.map(String));
});

test('a connection that breaks after the bulk was stored: told as doubt, sent again, nothing twice or backward', async () => {
  const writer = await writerThroughProxy();
  const doubts: string[] = [];
  writer.sink.onDoubt(() => assert.fail('of a writer that was replaced'));
  writer.sink.onDoubt((reason) => doubts.push(reason));
  await writer.apply(put(table, [1, 'old'], 1), put(table, [2, 'old'], 2));
  const batch = writer.batch(put(table, [1, 'new'], 3), del(table, [2, ''], 4));
  proxy.onAnswer = (request, answer) => (isBulk(request) ? 'cut' : answer);
  await rejectsWith(writer.send(batch), 'SINK_UNREACHABLE', true);
  assert.deepEqual(doubts, []);
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
  assert.equal(doubts.length, 1);
  assert.deepEqual(await stored(), { 1: '"new"' });
});

test('a move of the marker whose answer is lost was a move', async () => {
  const writer = await writerThroughProxy();
  const batch = writer.batch(put(table, [1, 'a'], 1));
  proxy.onAnswer = (request, answer) => (isMarkerMove(request) ? 'cut' : answer);
  await rejectsWith(writer.send(batch), 'SINK_UNREACHABLE', true);
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
  const empty = writer.batch();
  proxy.onAnswer = (request, answer) => (isMarkerMove(request) ? 'cut' : answer);
  await rejectsWith(writer.send(empty), 'SINK_UNREACHABLE', true);
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(empty), { status: 'applied', stale: 0 });
});

test('abort ends a request at once, with the reason of the signal', async () => {
  const writer = await writerThroughProxy();
  const controller = new AbortController();
  const reason = new Error('revoked');
  proxy.onRequest = (request) => {
    if (isBulk(request)) controller.abort(reason);
    return request.body;
  };
  await assert.rejects(
    writer.send(writer.batch(put(table, [1, 'a'], 1)), controller.signal),
    (error) => error === reason,
  );
  await assert.rejects(writer.send(writer.batch(), controller.signal), (error) => error === reason);
});

test('H2: a writer that was frozen and replaced sends nothing, even when the deletion is forgotten', async () => {
  let skew = 0;
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skew };
  const frozen = await writerThroughProxy({ clock });
  await frozen.apply(put(table, [1, 'old'], 1));
  const successor = new TestWriter(bench.sink(), frozen.stream);
  await successor.sink.prepare(table);
  successor.marker = await successor.sink.readMarker(frozen.stream);
  await successor.apply(del(table, [1, ''], 3));
  // Forgotten at once, as after gc_deletes or an orderly restart of the server.
  const name = `${bench.prefix}-shop-${table.table}`;
  await bench.fetch('PUT', `/${name}/_settings`, { 'index.gc_deletes': '0s' });
  await bench.fetch('POST', `/${name}/_close`);
  await bench.fetch('POST', `/${name}/_open?wait_for_active_shards=1`);
  skew = 60_000;
  proxy.requests.length = 0;
  assert.deepEqual(await frozen.apply(put(table, [1, 'revived'], 2)), { status: 'marker-moved' });
  assert.deepEqual(bulks(), []);
  assert.deepEqual(await stored(), {});
});

test('while the marker moves nobody asks for it', async () => {
  const writer = await writerThroughProxy();
  for (let id = 1; id <= 5; id++) await writer.apply(put(table, [id, 'a'], id));
  assert.deepEqual(
    proxy.requests.map(({ method }) => method),
    Array.from({ length: 5 }, () => ['POST', 'PUT']).flat(),
  );
});

test('a block of a full disk is retriable, and goes through when it is lifted', async () => {
  const writer = await writerThroughProxy();
  const name = `${bench.prefix}-shop-${table.table}`;
  await bench.fetch('PUT', `/${name}/_settings`, { 'index.blocks.read_only_allow_delete': true });
  const batch = writer.batch(put(table, [1, 'a'], 1));
  await rejectsWith(writer.send(batch), 'ES_READ_ONLY', true);
  assert.ok((await writer.sink.check()).some(({ code, message }) => code === 'ES_READ_ONLY' && message.includes(name)));
  await bench.fetch('PUT', `/${name}/_settings`, { 'index.blocks.read_only_allow_delete': null });
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
});

test("a closed index is no row's fault: retriable, and goes through when it is opened", async () => {
  const writer = await writerThroughProxy();
  const name = `${bench.prefix}-shop-${table.table}`;
  await bench.fetch('POST', `/${name}/_close`);
  const batch = writer.batch(put(table, [1, 'a'], 1));
  await rejectsWith(writer.send(batch), 'ES_READ_ONLY', true);
  await bench.fetch('POST', `/${name}/_open`);
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
});

test('a clear goes on where it was broken off, and deletes nothing newer', async () => {
  const writer = await writerThroughProxy();
  await writer.apply(...[1, 2, 3, 4].map((id) => put(table, [id, 'a'], id)));
  const clear = writer.batch({ kind: 'clear', table, version: 4n, offset: 9 });
  proxy.onAnswer = (request, answer) => (isBulk(request) ? 'cut' : answer);
  await rejectsWith(writer.send(clear), 'SINK_UNREACHABLE', true);
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(clear), { status: 'applied', stale: 0 });
  assert.deepEqual(await stored(), { 4: '"a"' });
  assert.deepEqual(await writer.apply(put(table, [1, 'older'], 3), put(table, [2, 'newer'], 5)), {
    status: 'applied',
    stale: 1,
  });
  assert.deepEqual(await stored(), { 2: '"newer"', 4: '"a"' });
});

test('after a lost connection all of a batch is sent again, not only what had failed', async () => {
  const writer = await writerThroughProxy();
  const batch = writer.batch(put(table, [1, 'a'], 1), put(table, [2, 'b'], 2));
  failItems(['2'], 429, 'es_rejected_execution_exception');
  await rejectsWith(writer.send(batch), 'SINK_OVERLOADED', true);
  proxy.onRequest = ({ body }) => body;
  proxy.onAnswer = () => 'cut';
  await rejectsWith(writer.send(batch), 'SINK_UNREACHABLE', true);
  proxy.onAnswer = (_, answer) => answer;
  assert.deepEqual(await writer.send(batch), { status: 'applied', stale: 0 });
  assert.deepEqual(bulks().at(-1), ['1', '2']);
});

test('of two writers that find no marker one alone makes it', async () => {
  const sinks = [bench.sink(), bench.sink()];
  const stream = { ...bench.stream, partition: 1_000 };
  const writers = sinks.map((sink) => new TestWriter(sink, stream));
  for (const { sink } of writers) assert.equal(await sink.readMarker(stream), null);
  const outcomes = await Promise.all(writers.map(async (writer) => await writer.apply()));
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['applied', 'marker-moved']);
  const [winner] = writers.filter(({ marker }) => marker !== null);
  assert.equal(await sinks[0]?.readMarker(stream), winner?.marker);
});
