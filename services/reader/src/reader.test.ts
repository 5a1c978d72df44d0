import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Checkpoint, checkpointErrors } from '@mysync/checkpoint';
import { createMetrics } from '@mysync/telemetry';
import { transportErrors } from '@mysync/transport';
import type { LogTransport } from '@mysync/transport-log';
import type { BaseMessage } from '@mysync/wire';
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
import { TestServer, type Transaction } from './source.fixture.ts';

let topics: TestTopics;

before(async () => {
  topics = await TestTopics.open();
});

after(async () => {
  await topics.close();
});

const placeOf = (server: TestServer): Place => topics.placeOf(server);

const put = (id: number, state: string, table = 'a') => ({ table, id, state });
const gone = (id: number, table = 'a') => ({ table, id, state: null });

const WORKLOAD: readonly Transaction[] = [
  [put(1, 'v1'), put(2, 'v1'), put(3, 'v1')],
  [put(1, 'v2')],
  [put(2, 'v2'), gone(3), put(2, 'v3'), put(4, 'v1'), put(5, 'v1')],
  [{ truncate: 'a' }],
  [put(6, 'v1'), put(1, 'v3')],
  [gone(6), put(6, 'v2'), put(7, 'v1'), put(8, 'v1')],
];

function workload(transactions = WORKLOAD): TestServer {
  const server = new TestServer();
  for (const transaction of transactions) server.commit(...transaction);
  return server;
}

const isChange = ({ operation }: BaseMessage): boolean =>
  operation !== 'heartbeat' && operation !== 'fence' && operation !== 'sweep';

/** Each change of the log as `transaction offset/ordinal`, in order; a truncate is one in every partition. */
function changes(found: readonly Effective[], partition: number): { name: string; version: bigint }[] {
  return found
    .filter((each) => each.partition === partition && isChange(each.message))
    .map(({ message }) => {
      const { offset, ordinal } = message.source.change;
      return { name: `${offset}/${ordinal}`, version: message.delivery.version };
    });
}

const tables = (server: TestServer, name?: string): Record<string, string> =>
  Object.fromEntries([...server.tables()].filter(([key]) => name === undefined || key.startsWith(`${name}:`)).sort());

/** Runs `attempt` with a death at each step in turn, with and without the effect of that step, until one lives. */
async function atEveryStep(attempt: (death: { at: number; late: boolean }) => Promise<boolean>): Promise<number> {
  for (let at = 1; ; at += 1) {
    let lived = true;
    for (const late of [false, true]) lived = (await attempt({ at, late })) && lived;
    if (lived) return at;
    assert.ok(at < 500, 'it never lives');
  }
}

/** What a reader that nobody killed makes of the workload. */
async function reference(server: TestServer): Promise<{ name: string; version: bigint }[][]> {
  const place = placeOf(server);
  assert.ok((await live(place, undefined)).lived);
  const found = await effective(place);
  return Array.from({ length: PARTITIONS }, (_, partition) => changes(found, partition));
}

test('killed at any step, with or without its effect: every change once, in order, under its version', async () => {
  const server = workload();
  const expected = await reference(server);
  assert.equal(new Set(expected.flat().map(({ name }) => name)).size, WORKLOAD.flat().length);
  const names = expected.map((each) => each.map(({ name }) => name));
  const points = await atEveryStep(async (death) => {
    const place = placeOf(server);
    const { lived } = await live(place, death);
    const covered = place.checkpoints.stored?.position.offset ?? 0;
    assert.ok((await live(place, undefined, { beats: 0 })).lived);
    const found = await effective(place);
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const got = changes(found, partition);
      assert.deepEqual(
        got.map(({ name }) => name),
        names[partition],
        `killed at ${death.at}, late ${death.late}`,
      );
      assert.ok(got.every(({ version }, index) => index === 0 || version > (got[index - 1]?.version ?? 0n)));
    }
    assert.ok((place.checkpoints.stored?.position.offset ?? 0) >= covered);
    assert.deepEqual(copy(found), tables(server));
    return lived;
  });
  assert.ok(points > 20, `only ${points} points`);
});

test('killed twice, at any two steps, with heartbeats in between', async () => {
  const server = workload();
  const names = (await reference(server)).map((each) => each.map(({ name }) => name));
  let seed = 11;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  for (let run = 0; run < 120; run += 1) {
    const place = placeOf(server);
    const deaths = [0, 1, 2].map(() => ({ at: 6 + random(24), late: random(2) === 0 }));
    for (const death of deaths) await live(place, death, { beats: 3, saves: random(4) });
    assert.ok((await live(place, undefined)).lived);
    const found = await effective(place);
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const got = changes(found, partition).map(({ name }) => name);
      assert.deepEqual(got, names[partition], `run ${run}: ${JSON.stringify(deaths)}`);
    }
  }
});

test('what a checkpoint covers is in the log, at whatever step it was killed', async () => {
  const server = workload();
  await atEveryStep(async (death) => {
    const place = placeOf(server);
    const { lived } = await live(place, death);
    const end = place.checkpoints.stored?.position.offset ?? 0;
    if (place.checkpoints.stored !== null && end > 0) {
      const found = await effective(place);
      const there = new Set([0, 1].flatMap((partition) => changes(found, partition).map(({ name }) => name)));
      for (const [index, transaction] of WORKLOAD.entries()) {
        const begin = 4 + index * 100;
        if (begin + 100 > end) break;
        for (const ordinal of transaction.keys())
          assert.ok(there.has(`${begin}/${ordinal + 1}`), `${begin}/${ordinal + 1}`);
      }
    }
    return lived;
  });
});

test('a snapshot killed at any step is started over, and rows that were deleted meanwhile are swept', async () => {
  await atEveryStep(async (death) => {
    const server = workload([[put(1, 'v1'), put(2, 'v1'), put(3, 'v1'), put(4, 'v1'), put(5, 'v1')]]);
    const place = placeOf(server);
    const { lived } = await live(place, death, { start: 'snapshot' });
    server.commit(gone(1), put(2, 'v2')).commit(gone(3), put(6, 'v1'));
    assert.ok((await live(place, undefined, { start: 'snapshot' })).lived);
    assert.equal(place.checkpoints.stored?.snapshot.state, 'done');
    assert.deepEqual(place.checkpoints.stored?.snapshot.completeTables, ['shop.a']);
    server.commit(put(2, 'v3'), gone(4));
    assert.ok((await live(place, undefined, { start: 'snapshot' })).lived);
    assert.deepEqual(copy(await effective(place)), tables(server), `killed at ${death.at}, late ${death.late}`);
    return lived;
  });
});

test('a start at the newest position is settled once and not begun anew', async () => {
  await atEveryStep(async (death) => {
    const server = workload([[put(1, 'v1')]]);
    const place = placeOf(server);
    const { lived } = await live(place, death, { start: 'latest' });
    const settled = place.checkpoints.stored?.snapshot.state === 'none';
    server.commit(put(2, 'v1'));
    assert.ok((await live(place, undefined, { start: 'latest' })).lived);
    const names = changes(await effective(place), 0).concat(changes(await effective(place), 1));
    assert.deepEqual(
      names.map(({ name }) => name),
      settled ? ['104/1'] : [],
    );
    return lived;
  });
});

test('another configuration, with both readers killed at any step: no row is missing or goes back', async () => {
  const transactions: Transaction[] = [
    [put(1, 'v1'), put(2, 'v1')],
    [put(1, 'x', 'b'), put(2, 'x', 'b'), put(3, 'x', 'b'), put(1, 'v2'), put(2, 'v2')],
    [put(9, 'x', 'b'), put(3, 'v1'), put(4, 'v1')],
  ];
  let seed = 5;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  const newTable = { captures: ['a', 'b'], fingerprint: 'config-2' };
  for (let run = 0; run < 150; run += 1) {
    const server = workload(transactions);
    const place = placeOf(server);
    await live(place, { at: 8 + random(14), late: random(2) === 0 }, { saves: random(3) });
    await live(place, { at: 5 + random(14), late: random(2) === 0 }, { ...newTable, beats: 3, saves: random(3) });
    assert.ok((await live(place, undefined, newTable)).lived);
    const found = await effective(place);
    const got = copy(found);
    const ofA = Object.fromEntries(Object.entries(got).filter(([key]) => key.startsWith('a:')));
    assert.deepEqual(ofA, tables(server, 'a'), `run ${run}`);
  }
});

test('a heartbeat stands for the last change of its partition: neither more nor less is published after it', async () => {
  // The log is ahead of the checkpoint in some partition, and the successor dies right after its first heartbeats.
  const server = workload([[put(1, 'v1'), put(2, 'v1'), put(3, 'v1'), put(4, 'v1')], [put(1, 'v2')]]);
  const names = (await reference(server)).map((each) => each.map(({ name }) => name));
  for (let first = 8; first < 13; first += 1) {
    for (let second = 7; second < 15; second += 1) {
      const place = placeOf(server);
      await live(place, { at: first, late: true }, { beats: 0, saves: 0 });
      await live(place, { at: second, late: true }, { beats: 3, saves: 0 });
      assert.ok((await live(place, undefined, { beats: 0 })).lived);
      const found = await effective(place);
      for (let partition = 0; partition < PARTITIONS; partition += 1) {
        const got = changes(found, partition).map(({ name }) => name);
        assert.deepEqual(got, names[partition], `killed at ${first} and ${second}`);
      }
    }
  }
});

test('a heartbeat behind a change of an older configuration does not hide changes of the new one', async () => {
  const server = workload([
    [put(7, 'v1'), put(8, 'v1')],
    [...[1, 2, 3, 4, 5, 6].map((id) => put(id, 'x', 'b')), ...[1, 2, 3, 4, 5, 6].map((id) => put(id, 'v1'))],
  ]);
  const newTable = { captures: ['a', 'b'], fingerprint: 'config-2' };
  for (let first = 9; first < 14; first += 1) {
    for (let second = 8; second < 14; second += 1) {
      const place = placeOf(server);
      await live(place, { at: first, late: true }, { beats: 0, saves: 0 });
      await live(place, { at: second, late: true }, { ...newTable, beats: 3, saves: 0, pace: 5 });
      assert.ok((await live(place, undefined, { ...newTable, beats: 0 })).lived);
      const got = copy(await effective(place));
      assert.deepEqual(got, tables(server), `killed at ${first} and ${second}`);
    }
  }
});

test('a frozen predecessor that wakes up is fenced, and nothing of it counts', async () => {
  const server = workload();
  const expected = await reference(server);
  const place = placeOf(server);
  const life = new Life();
  const gate = { open: (): void => undefined };
  const opened = new Promise<void>((resolve) => {
    gate.open = resolve;
  });
  const waiting = new Waiting();
  const frozen = { ...place, transport: freezing(place.transport, opened, 8, waiting) };
  const { reader } = readerOf(frozen, life, { beats: 0, saves: 0 });
  const running = assert.rejects(reader.run(new AbortController().signal), { code: 'TRANSPORT_FENCED' });
  await waiting.started;
  assert.ok((await live(place, undefined, { beats: 0 })).lived);
  gate.open();
  await running;
  assert.equal(reader.status().state, 'failed');
  const found = await effective(place);
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    assert.deepEqual(
      changes(found, partition).map(({ name }) => name),
      expected[partition]?.map(({ name }) => name),
    );
  }
});

/** Tells when something was kept waiting. */
class Waiting {
  readonly started: Promise<void>;
  begin: () => void = () => undefined;

  constructor() {
    this.started = new Promise((resolve) => {
      this.begin = () => resolve();
    });
  }
}

/** The publishes from the `from`th on wait until `opened`, before they reach the log. */
function freezing(
  inner: LogTransport | Place['transport'],
  opened: Promise<void>,
  from: number,
  waiting: Waiting,
): Place['transport'] {
  let count = 0;
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'openPublisher') {
        return async (options: Parameters<typeof inner.openPublisher>[0]) => {
          const publisher = await inner.openPublisher(options);
          let onClose: (error: Error) => void = () => undefined;
          const closed = new Promise<never>((_, reject) => {
            onClose = reject;
          });
          closed.catch(() => undefined);
          return new Proxy(publisher, {
            get(of, member) {
              const value: unknown = Reflect.get(of, member, of);
              if (member === 'publish') {
                return async (...given: Parameters<typeof publisher.publish>) => {
                  count += 1;
                  if (count >= from) {
                    waiting.begin();
                    await Promise.race([opened, closed]);
                  }
                  return await publisher.publish(...given);
                };
              }
              if (member === 'close') onClose(transportErrors.TRANSPORT_CLOSED({ message: 'closed' }));
              return typeof value === 'function' ? value.bind(of) : value;
            },
          });
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('stopped while the window is full and the transport takes nothing: it ends after the drain time', async () => {
  const place = placeOf(workload());
  const waiting = new Waiting();
  const stuck = { ...place, transport: freezing(place.transport, new Promise(() => undefined), 3, waiting) };
  const life = new Life();
  const { reader } = readerOf(stuck, life, { windowMessages: 2, beats: 0, saves: 0, patient: false });
  const stop = new AbortController();
  const running = reader.run(stop.signal);
  await waiting.started;
  assert.equal(reader.status().state, 'streaming');
  assert.ok(reader.status().lagSeconds > 0, 'nobody has asked for metrics yet');
  stop.abort();
  await running;
  assert.equal(reader.status().state, 'stopped');
  assert.ok((await live(place, undefined)).lived);
  assert.deepEqual(copy(await effective(place)), tables(place.server));
});

test('stopped while its fences are not answered: it ends, and its successor goes on', async () => {
  const place = placeOf(workload());
  const waiting = new Waiting();
  const stuck = { ...place, transport: freezing(place.transport, new Promise(() => undefined), 1, waiting) };
  const { reader } = readerOf(stuck, new Life(), { beats: 0, saves: 0 });
  const stop = new AbortController();
  const running = reader.run(stop.signal);
  await waiting.started;
  assert.equal(reader.status().state, 'starting');
  stop.abort();
  await running;
  assert.ok((await live(place, undefined)).lived);
  assert.deepEqual(copy(await effective(place)), tables(place.server));
});

test('while nothing captured changes the checkpoint is saved rarely; a change, and a stop, save it', {
  timeout: 60_000,
}, async () => {
  const foreign = Array.from({ length: 30 }, (_, id): Transaction => [put(id, 'v1', 'not captured')]);
  const NEVER = Number.MAX_SAFE_INTEGER;
  /** Stops at the log's end, once that holds; gives how many saves were made before the stop. */
  const savesOf = async (
    transactions: readonly Transaction[],
    idleCheckpointMs: number,
    enough: (checkpoints: CountingCheckpoints) => boolean,
  ): Promise<number> => {
    const checkpoints = new CountingCheckpoints();
    const place = { ...placeOf(workload(transactions)), checkpoints };
    const stop = new AbortController();
    const atEnd = (): void => {
      if (enough(checkpoints)) stop.abort();
      else setImmediate(atEnd);
    };
    // slowly: behind the log's end nothing moves any more, and nothing is worth a save
    const { reader } = readerOf(place, new Life(), { saves: NEVER, idleCheckpointMs, atEnd, pace: 50 });
    await reader.run(stop.signal);
    assert.deepEqual(checkpoints.stored?.position, place.server.position);
    return checkpoints.saves - 1;
  };
  // two saves of the start, the first one of the saver
  assert.equal(await savesOf(foreign, NEVER, ({ saves }) => saves >= 3), 3);
  // the clock of a life goes on by a second at each look
  assert.ok((await savesOf(foreign, 3_000, ({ saves }) => saves >= 5)) >= 5);
  const change = new TestServer().positionAfter(foreign.length + 1).offset;
  const withChange = [...foreign, [put(1, 'v1')], ...foreign];
  // the saver's first one may be that of the change
  assert.ok((await savesOf(withChange, NEVER, ({ stored }) => (stored?.position.offset ?? 0) >= change)) <= 4);
});

class CountingCheckpoints extends MemoryCheckpoints {
  saves = 0;

  override save(...args: Parameters<MemoryCheckpoints['save']>): Promise<void> {
    this.saves += 1;
    return super.save(...args);
  }
}

test('rows are counted by operation', async () => {
  const place = placeOf(workload());
  const life = new Life();
  const stop = new AbortController();
  const metrics = createMetrics();
  const { reader } = readerOf(place, life, { metrics, atEnd: () => stop.abort() });
  await reader.run(stop.signal);
  const { values } = await metrics.reader.rows.get();
  const counts = Object.fromEntries(values.map(({ labels, value }) => [labels.operation, value]));
  assert.deepEqual(counts, { insert: 10, update: 3, delete: 2, truncate: 1 });
});

for (const [question, start] of [
  ['tableSchemas', 'earliest'],
  ['currentPosition', 'latest'],
  ['snapshot', 'snapshot'],
] as const) {
  test(`stopped while the source does not answer (${question}): it ends, and its successor goes on`, {
    timeout: 20_000,
  }, async () => {
    const place = placeOf(workload());
    const { reader, source } = readerOf(place, new Life(), { start });
    const stop = new AbortController();
    const asked = new Promise<void>((resolve) => {
      const silent = (): Promise<never> => {
        resolve();
        return new Promise(() => undefined);
      };
      Object.assign(source, { [question]: silent });
    });
    const running = reader.run(stop.signal);
    await asked;
    stop.abort();
    await running;
    assert.equal(reader.status().state, 'stopped');
    assert.ok((await live(place, undefined, { start: start === 'latest' ? 'earliest' : start })).lived);
    assert.deepEqual(copy(await effective(place)), tables(place.server));
  });
}

/** Checkpoints that are not there for a while: `isAway` decides for each save. */
class AwayCheckpoints extends MemoryCheckpoints {
  readonly #isAway: (checkpoint: Checkpoint) => boolean;
  refused = 0;

  constructor(isAway: (checkpoint: Checkpoint) => boolean) {
    super();
    this.#isAway = isAway;
  }

  override async save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    if (!this.#isAway(checkpoint)) return await super.save(checkpoint, replaces);
    this.refused += 1;
    throw checkpointErrors.CHECKPOINT_UNREACHABLE({ message: 'no answer' });
  }
}

test('a store that is away when the first snapshot ends is tried again: the tables are not read twice', async () => {
  const checkpoints: AwayCheckpoints = new AwayCheckpoints(
    ({ snapshot }) => snapshot.state === 'done' && checkpoints.refused < 1,
  );
  const place = { ...placeOf(workload()), checkpoints };
  const { lived } = await live(place, undefined, { start: 'snapshot' });
  assert.ok(lived);
  assert.equal(checkpoints.refused, 1);
  assert.equal(checkpoints.stored?.snapshot.state, 'done');
  assert.deepEqual(copy(await effective(place)), tables(place.server));
});

test('stopped while the store is away: an orderly end, the checkpoint before is as right', async () => {
  const stop = new AbortController();
  const checkpoints = new AwayCheckpoints(() => stop.signal.aborted);
  const place = { ...placeOf(workload()), checkpoints };
  const { reader } = readerOf(place, new Life(), { saves: 0, atEnd: () => stop.abort() });
  await reader.run(stop.signal);
  assert.equal(reader.status().state, 'stopped');
  assert.equal(checkpoints.refused, 1);
  assert.ok((await live({ ...place, checkpoints: kept(checkpoints) }, undefined)).lived);
  assert.deepEqual(copy(await effective(place)), tables(place.server));
});

function kept({ stored }: MemoryCheckpoints): MemoryCheckpoints {
  return Object.assign(new MemoryCheckpoints(), { stored });
}
