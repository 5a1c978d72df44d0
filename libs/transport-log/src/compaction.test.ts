import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '@mysync/core';
import type { OutgoingRecord, TopicSpec } from '@mysync/transport';
import fc from 'fast-check';
import { compactPartition } from './compaction.ts';
import { LogTransport } from './index.ts';
import { baseOffsetOf, batchKey } from './layout.ts';
import { Store } from './store.ts';
import { requireTopic } from './topics.ts';

/**
 * Compaction against what the published records themselves say: nothing else is the truth here. Each run has a topic of
 * its own in one store, and a clock that only the test moves.
 */
const LAG_MS = 100;
const RETENTION_MS = 1000;
const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
let nowMs = 1_000_000;
let transport: LogTransport;
let store: Store;
let topics = 0;

before(async () => {
  const clock = { ...systemClock, now: () => nowMs };
  transport = await LogTransport.open({ path, fsync: 'interval', maintenance: false, clock });
  const options = {
    path,
    fsync: 'interval',
    fsyncIntervalMs: 1000,
    minFreeBytes: 0,
    clock,
    onProblem: () => {},
  } as const;
  store = await Store.use({ ...options, maxBytes: Number.MAX_SAFE_INTEGER });
});

after(async () => {
  await store.release();
  await transport.close();
  rmSync(path, { recursive: true, force: true });
});

interface Published {
  readonly offset: number;
  readonly key: string;
  readonly value: string | null;
  readonly atMs: number;
  /** When the first whole pass that could have cleaned it ended. */
  cleanedMs: number;
}

type Move =
  | { readonly kind: 'publish'; readonly keys: readonly (readonly [number, boolean])[] }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'compact'; readonly memoryBytes: number; readonly cutAfter: number };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      keys: fc.array(fc.tuple(fc.nat(5), fc.boolean()), { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(10, 99, 101, 950, 1500) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('compact' as const),
      memoryBytes: fc.constantFrom(1, 150, 1_000_000),
      cutAfter: fc.constantFrom(0, 1, 2, 99),
    }),
  },
);

function spec(name: string): TopicSpec {
  const times = { deleteRetentionMs: RETENTION_MS, minCompactionLagMs: LAG_MS, retentionMs: -1 };
  return { name, partitions: 1, compacted: true, ...times, allowWeaker: true };
}

async function readFrom(topic: string, from: number): Promise<Omit<Published, 'atMs' | 'cleanedMs'>[]> {
  const [range] = await transport.offsetRanges(topic);
  const seen: Omit<Published, 'atMs' | 'cleanedMs'>[] = [];
  for await (const batch of transport.read({ topic, partition: 0, from, until: range?.end ?? 0, maxBytes: 200 })) {
    for (const { offset, key, value } of batch.records) {
      const text = value === null ? null : Buffer.from(value).toString();
      seen.push({ offset, key: Buffer.from(key).toString(), value: text });
    }
  }
  return seen;
}

function storedBytes(topicId: string): number {
  const range = { start: batchKey(topicId, 0, 0), end: batchKey(topicId, 0, Number.MAX_SAFE_INTEGER) };
  let bytes = 0;
  for (const key of [...store.records.getKeys(range)]) {
    bytes += store.batch(batchKey(topicId, 0, baseOffsetOf(key)))?.length ?? 0;
  }
  return bytes;
}

class Cut extends Error {}

test('compaction keeps the last record of each key, tombstones for their time, young records, and every offset', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 3, maxLength: 30 }), async (moves) => {
      const topic = `topic-${++topics}`;
      await transport.ensureTopic(spec(topic));
      const entry = requireTopic(store, topic);
      const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
      const published: Published[] = [];
      let serial = 0;
      for (const step of moves) {
        if (step.kind === 'wait') {
          nowMs += step.ms;
        } else if (step.kind === 'publish') {
          const batch: OutgoingRecord[] = step.keys.map(([key, isTombstone]) => ({
            key: Buffer.from(`k${key}`),
            value: isTombstone ? null : Buffer.from(`v${serial++}`),
            headers: [{ name: 'h', value: Buffer.from('x') }],
          }));
          const { baseOffset } = await publisher.publish(0, batch);
          assert.equal(baseOffset, published.length, 'compaction does not move the end');
          batch.forEach(({ key, value }, index) => {
            const text = value === null ? null : Buffer.from(value).toString();
            const at = { offset: baseOffset + index, atMs: nowMs, cleanedMs: Number.POSITIVE_INFINITY };
            published.push({ key: Buffer.from(key).toString(), value: text, ...at });
          });
        } else {
          let pauses = 0;
          const pause = async (): Promise<void> => {
            if (++pauses > step.cutAfter) throw new Cut();
          };
          const { memoryBytes } = step;
          const options = { store, topic, entry, partition: 0, nowMs, memoryBytes, checkLease: () => {}, pause };
          // Every batch is a step of its own, so that a pass can be cut off anywhere.
          const pass = compactPartition({ ...options, stepBytes: 1, joinedBytes: 300 });
          await pass.catch((error: unknown) => assert.ok(error instanceof Cut, String(error)));
          const cleanedTo = store.partition(entry.id, 0)?.cleanedTo ?? 0;
          for (const each of published) {
            // A pass that was cut off has also begun to count a tombstone's time.
            if (nowMs - each.atMs >= LAG_MS) each.cleanedMs = Math.min(each.cleanedMs, nowMs);
          }
          await check(topic, entry.id, published, cleanedTo);
        }
      }
    }),
    { numRuns: 150 },
  );
});

async function check(topic: string, topicId: string, published: Published[], cleanedTo: number): Promise<void> {
  store.refresh();
  const seen = await readFrom(topic, 0);
  const there = new Map(seen.map((each) => [each.offset, each]));
  for (const each of seen) {
    const { key, value } = published[each.offset] ?? {};
    assert.deepEqual([each.key, each.value], [key, value], 'what is there is what was published');
  }
  const last = new Map<string, Published>();
  for (const each of published) last.set(each.key, each);
  for (const each of published) {
    const isLast = last.get(each.key) === each;
    const isYoung = nowMs - each.atMs < LAG_MS;
    const mayBeGone = each.value === null && nowMs >= each.cleanedMs + RETENTION_MS;
    if ((isLast && !mayBeGone) || isYoung || each.offset === published.length - 1) {
      assert.ok(there.has(each.offset), `offset ${each.offset} (${each.key}=${each.value}) was lost`);
    }
  }
  // Where a tombstone is gone, nothing older of its key is left.
  for (const [key, { offset, value }] of last) {
    if (value === null && !there.has(offset)) assert.ok(!seen.some((each) => each.key === key));
  }
  const clean = seen.filter(({ offset }) => offset < cleanedTo).map(({ key }) => key);
  assert.equal(new Set(clean).size, clean.length, 'the clean stretch has each key once');
  for (let from = 0; from < published.length; from++) {
    assert.equal((await readFrom(topic, from))[0]?.offset, seen.find(({ offset }) => offset >= from)?.offset);
  }
  assert.equal(store.partition(topicId, 0)?.bytes, storedBytes(topicId), 'the bytes are counted right');
}
