/** Tables that are read again beside the stream, with readers killed at any step, by the rules of docs/spec/table-resync.md. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  copy,
  type Effective,
  effective,
  Life,
  live,
  MemoryCheckpoints,
  PARTITIONS,
  type Place,
  readerOf,
  TestTopics,
} from './life.fixture.ts';
import { type Change, TestServer, type Transaction } from './source.fixture.ts';

let topics: TestTopics;

before(async () => {
  topics = await TestTopics.open();
});

after(async () => {
  await topics.close();
});

function placeOf(transactions: readonly Transaction[]): Place {
  const server = new TestServer();
  for (const transaction of transactions) server.commit(...transaction);
  return topics.placeOf(server);
}

const put = (id: number, state: string, table = 'a'): Change => ({ table, id, state });
const gone = (id: number, table = 'a'): Change => ({ table, id, state: null });
const tables = (server: TestServer): Record<string, string> => Object.fromEntries([...server.tables()].sort());

/**
 * What holds of every log: the copy equals the tables, whether a sink goes by versions or has only what compaction left (the newest record
 * of each key), and no row is ever seen in an older state: states are numbers that only rise.
 */
function assertExact(found: readonly Effective[], server: TestServer, where: string): void {
  const expected = tables(server);
  assert.deepEqual(copy(found), expected, where);
  assert.deepEqual(copy(compacted(found)), expected, `${where}, compacted`);
  const highest = new Map<string, number>();
  for (const { message } of found) {
    if (!('schema' in message) || message.operation === 'delete') continue;
    const key = `${message.schema.table}:${message.after?.[0]}`;
    const state = Number(message.after?.[1]);
    assert.ok(state >= (highest.get(key) ?? 0), `${where}: ${key} goes back from ${highest.get(key)} to ${state}`);
    highest.set(key, state);
  }
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const versions = found
      .filter((each) => each.partition === partition && each.message.operation !== 'heartbeat')
      .map(({ message }) => message.delivery.version);
    // rows of one view share a version; what a restart publishes again of a view has the same or a higher one
    for (const [index, version] of versions.entries()) assert.ok(version >= (versions[index - 1] ?? 0n), where);
  }
}

/** The newest message of each key alone, and every sweep and truncate. */
function compacted(found: readonly Effective[]): readonly Effective[] {
  const newest = new Map<string, Effective>();
  for (const each of found) {
    const { message, partition } = each;
    if ('schema' in message) {
      const image = message.operation === 'delete' ? message.before : message.after;
      newest.set(`${partition}:${message.schema.table}:${image?.[0]}`, each);
    } else if ('table' in message) newest.set(`${partition}:${message.operation}:${message.table.table}`, each);
  }
  return found.filter((each) => [...newest.values()].includes(each));
}

const UNSEEN: readonly Transaction[] = [
  [put(1, '1'), put(2, '1'), put(3, '1'), put(1, '1', 'b')],
  [put(1, '2')],
  // in the same transaction a row that the log shows and one that it does not, then one that goes unseen
  [put(2, '2'), { unseen: 'a', changes: [put(2, '3'), put(4, '3'), gone(3)] }],
  [put(1, '4'), put(2, '4', 'b')],
  [put(4, '5'), gone(2)],
  [put(5, '6', 'b')],
  [put(1, '7'), put(6, '7')],
];

test('what the log does not show is read, and later changes follow', async () => {
  for (const ahead of [0, 1, 2, 100]) {
    const place = placeOf(UNSEEN);
    await live(place, undefined, { captures: ['a', 'b'], ahead, beats: 0 });
    const found = await effective(place);
    assertExact(found, place.server, `ahead ${ahead}`);
    const reads = found.filter(({ message }) => message.operation === 'read');
    assert.ok(reads.length >= 2 && reads.length <= 4, `${reads.length} rows were read`);
    assert.equal(found.filter(({ message }) => message.operation === 'sweep').length, PARTITIONS);
    assert.equal(place.checkpoints.stored?.position.offset, place.server.position.offset);
    // every change that the log does show is there for subscribers, too
    assert.equal(found.filter(({ message }) => ['insert', 'update', 'delete'].includes(message.operation)).length, 13);
  }
});

test('killed at any step of it, once or twice', async () => {
  for (const ahead of [0, 2, 100]) {
    for (let at = 1; ; at += 1) {
      let lived = true;
      for (const late of [false, true]) {
        const place = placeOf(UNSEEN);
        const options = { captures: ['a', 'b'], ahead, windowMessages: 4 };
        const first = await live(place, { at, late }, options);
        const covered = place.checkpoints.stored?.position.offset ?? 0;
        lived = first.lived && lived;
        await live(place, { at: 5 + (at % 11), late: !late }, options);
        assert.ok((place.checkpoints.stored?.position.offset ?? 0) >= covered);
        assert.ok((await live(place, undefined, { ...options, beats: 0 })).lived);
        assertExact(await effective(place), place.server, `ahead ${ahead}, killed at ${at}, late ${late}`);
      }
      if (lived) break;
    }
  }
});

test('a checkpoint behind the cause names the table until its rows are acked', async () => {
  const place = placeOf(UNSEEN);
  const cause = place.server.positionAfter(2).offset;
  const met = { named: 0, whole: 0 };
  for (let at = 1; ; at += 1) {
    const attempt = { ...placeOf([]), server: place.server };
    place.server.happened = 0;
    const { lived } = await live(attempt, { at, late: false }, { captures: ['a', 'b'], ahead: 100, saves: 100 });
    const { stored } = attempt.checkpoints;
    if (stored === null || stored.position.offset <= cause) continue;
    const isNamed = stored.snapshot.wantedTables?.some(({ table }) => table === 'a') === true;
    const swept = (await effective(attempt)).filter(({ message }) => message.operation === 'sweep').length;
    if (isNamed) met.named += 1;
    else assert.equal(swept, PARTITIONS, `killed at ${at}`);
    if (swept === PARTITIONS) met.whole += 1;
    if (lived) break;
  }
  assert.ok(met.named > 0 && met.whole > 0, JSON.stringify(met));
});

test('the checkpoint moves on while tables are changed unseen all the time, and the tables are read by the next lives', async () => {
  const place = placeOf([[put(1, '1'), put(1, '1', 'b')]]);
  const captures = ['a', 'b'];
  for (let round = 2; round < 20; round += 1) {
    const table = round % 2 === 0 ? 'a' : 'b';
    const seen = put(2, String(round), table);
    place.server.commit(seen, { unseen: table, changes: [put(1, String(round), table)] });
  }
  // no view is ever read to its end
  const broken = Array.from({ length: 1000 }, () => 0);
  await live(place, undefined, { captures, ahead: 1, breaks: broken, beats: 0, saves: 100 });
  const { stored } = place.checkpoints;
  assert.equal(stored?.position.offset, place.server.position.offset);
  assert.deepEqual(stored?.snapshot.wantedTables?.map(({ table }) => table).sort(), captures);
  assert.deepEqual(
    (await effective(place)).filter(({ message }) => message.operation === 'read'),
    [],
  );
  for (const at of [8, 11, 14, 17]) await live(place, { at, late: at % 2 === 0 }, { captures, beats: 1 });
  await live(place, undefined, { captures, beats: 0 });
  assertExact(await effective(place), place.server, 'after all');
  assert.equal(place.checkpoints.stored?.snapshot.wantedTables, undefined);
  assert.deepEqual(place.checkpoints.stored?.snapshot.completeTables, ['shop.a', 'shop.b']);
});

test('a table that the checkpoint wants read: warn leaves it, and says so; one that is captured no more is forgotten', async () => {
  const place = placeOf(UNSEEN);
  const both = { captures: ['a', 'b'], beats: 0 };
  await live(place, undefined, { ...both, breaks: Array.from({ length: 1000 }, () => 0) });
  assert.deepEqual(place.checkpoints.stored?.snapshot.wantedTables, [{ database: 'shop', table: 'a' }]);
  const narrowed = { ...place, checkpoints: new MemoryCheckpoints() };
  narrowed.checkpoints.stored = place.checkpoints.stored;
  const stop = new AbortController();
  const { reader } = readerOf(place, new Life(), { ...both, onUnseenChange: 'warn', atEnd: () => stop.abort() });
  await reader.run(stop.signal);
  assert.deepEqual(reader.status().missingTables, ['shop.a', 'shop.b']);
  assert.equal(place.checkpoints.stored?.snapshot.wantedTables, undefined);
  await live(narrowed, undefined, { captures: ['b'], beats: 0 });
  assert.equal(narrowed.checkpoints.stored?.snapshot.wantedTables, undefined);
});

test('what the log holds of a table that is not captured for a while is not taken for whole', async () => {
  const place = placeOf([[put(1, '1'), put(1, '1', 'b')]]);
  await live(place, undefined, { captures: ['a', 'b'], start: 'snapshot', beats: 0 });
  place.server.commit(put(1, '2', 'b')).commit(put(1, '3'));
  await live(place, undefined, { captures: ['a'], fingerprint: 'config-2', beats: 0 });
  assert.deepEqual(place.checkpoints.stored?.snapshot.completeTables, ['shop.a']);
  await live(place, undefined, { captures: ['a', 'b'], beats: 0 });
  assertExact(await effective(place), place.server, 'captured again');
});

test('a view that breaks off is begun again', async () => {
  for (const first of [0, 1, 3, 4]) {
    const place = placeOf(UNSEEN);
    await live(place, undefined, { captures: ['a', 'b'], ahead: 0, breaks: [first, 0], beats: 1 });
    assertExact(await effective(place), place.server, `broken after ${first}`);
  }
});

test('a view that is older than what the stream handed over is not taken', async () => {
  for (const stale of [[1], [2, 1], [3, 3, 2]]) {
    const place = placeOf(UNSEEN);
    await live(place, undefined, { captures: ['a', 'b'], ahead: 0, beats: 0, stale });
    assertExact(await effective(place), place.server, `stale ${stale}`);
  }
});

test('a table that is emptied behind the cause needs no reading', async () => {
  const place = placeOf([[put(1, '1')], [{ unseen: 'a', changes: [put(2, '2')] }], [{ truncate: 'a' }], [put(3, '3')]]);
  await live(place, undefined, { ahead: 100, beats: 0 });
  const found = await effective(place);
  assertExact(found, place.server, 'emptied');
  assert.equal(found.filter(({ message }) => message.operation === 'read').length, 0);
});

test('a table that is captured later is read at the next start, from wherever it is killed', async () => {
  const transactions: Transaction[] = [[put(1, '1'), put(1, '1', 'b'), put(2, '1', 'b')], [put(2, '2', 'b')]];
  const later: Transaction[] = [[put(1, '3'), put(1, '3', 'b')], [put(3, '4', 'b'), gone(2, 'b')], [put(1, '5')]];
  for (let at = 1; ; at += 1) {
    let lived = true;
    for (const late of [false, true]) {
      const place = placeOf(transactions);
      await live(place, undefined, { start: 'snapshot', beats: 0 });
      for (const transaction of later.slice(0, 1)) place.server.commit(...transaction);
      // killed with something in the log that the checkpoint does not cover
      await live(place, { at: 14, late: true }, { beats: 1, saves: 0 });
      for (const transaction of later.slice(1)) place.server.commit(...transaction);
      const both = { captures: ['a', 'b'], fingerprint: 'config-2', ahead: at % 3 };
      lived = (await live(place, { at, late }, both)).lived && lived;
      assert.ok((await live(place, undefined, { ...both, beats: 0 })).lived);
      const found = await effective(place);
      assert.deepEqual(copy(found), tables(place.server), `killed at ${at}, late ${late}`);
      assert.deepEqual(copy(compacted(found)), tables(place.server), `killed at ${at}, late ${late}, compacted`);
      assert.deepEqual(place.checkpoints.stored?.snapshot.completeTables, ['shop.a', 'shop.b']);
    }
    if (lived) break;
  }
});

test('stop: the reader ends there, for good; warn: it goes on and says so', async () => {
  const place = placeOf(UNSEEN);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { reader } = readerOf(place, new Life(), { captures: ['a', 'b'], onUnseenChange: 'stop', beats: 0 });
    await assert.rejects(reader.run(new AbortController().signal), {
      code: 'READER_CHANGE_UNSEEN',
      where: { table: 'shop.a', cause: 'statement', position: 'bin.000001:204', statement: 'UPDATE' },
    });
    assert.ok((place.checkpoints.stored?.position.offset ?? 0) <= place.server.positionAfter(2).offset);
  }
  const stop = new AbortController();
  const { reader } = readerOf(place, new Life(), {
    captures: ['a', 'b'],
    onUnseenChange: 'warn',
    beats: 0,
    atEnd: () => stop.abort(),
  });
  await reader.run(stop.signal);
  assert.deepEqual(reader.status().missingTables, ['shop.a', 'shop.b']);
  assert.equal((await effective(place)).filter(({ message }) => message.operation === 'read').length, 0);
});

test('random tables, causes, kills, lost views and readers that are behind', async () => {
  const seeds = Number(process.env['MYSYNC_RESYNC_SEEDS'] ?? 60);
  const from = Number(process.env['MYSYNC_RESYNC_FROM'] ?? 1);
  for (let seed = from; seed < from + seeds; seed += 1) {
    const random = randomOf(seed);
    const place = placeOf([]);
    const captures = ['a', 'b'];
    let state = 0;
    const change = (table: string): Change => {
      state += 1;
      const id = random(6);
      return random(5) === 0 ? gone(id, table) : put(id, String(state), table);
    };
    for (let round = 0; round < 4; round += 1) {
      for (let count = 1 + random(5); count > 0; count -= 1) {
        const transaction: Transaction[number][] = [];
        for (let changes = 1 + random(3); changes > 0; changes -= 1)
          transaction.push(change(random(2) === 0 ? 'a' : 'b'));
        const table = random(2) === 0 ? 'a' : 'b';
        if (random(4) === 0) {
          transaction.push({ unseen: table, changes: Array.from({ length: 1 + random(3) }, () => change(table)) });
        }
        if (random(12) === 0) place.server.commit({ truncate: table });
        place.server.commit(...transaction);
      }
      await live(
        place,
        { at: 1 + random(60), late: random(2) === 0 },
        {
          captures,
          ahead: random(4),
          beats: random(4),
          saves: random(30),
          windowMessages: 4 + random(8),
          breaks: random(3) === 0 ? [random(3), random(3)] : [],
          pace: 1 + random(3),
        },
      );
    }
    assert.ok((await live(place, undefined, { captures, ahead: random(4), beats: 0 })).lived);
    assertExact(await effective(place), place.server, `MYSYNC_RESYNC_FROM=${seed} MYSYNC_RESYNC_SEEDS=1`);
  }
});

function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor(state / 65536) % below;
  };
}
