import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangeId } from '@mysync/core';
import fc from 'fast-check';
import { CheckpointTracker, type PartitionMark, type TransactionEnd } from './checkpoint-tracker.ts';

const FILE = 'binlog.000001';
const NOTHING: PartitionMark = {
  epoch: 0,
  generation: 0,
  sequence: 0,
  offset: -1,
  change: { file: '', offset: 0, gtid: '', ordinal: 0 },
};

function transaction(n: number): ChangeId {
  return { file: FILE, offset: n * 100, gtid: '', ordinal: 0 };
}

/** The end of the n-th transaction. */
function end(n: number): TransactionEnd {
  return { position: { file: FILE, offset: n * 100 + 50, gtidSet: '' }, transactionCounter: n };
}

function tracker(
  partitions: number,
  options: { maxGroups?: number; frontier?: PartitionMark[] } = {},
): CheckpointTracker {
  const covered = Array.from({ length: partitions }, () => NOTHING);
  return new CheckpointTracker({ epoch: 3, start: end(0), covered, frontier: covered, ...options });
}

function ack(sequence: number, baseOffset: number, count = 1): Parameters<CheckpointTracker['acked']>[1] {
  return { generation: 0, firstSequence: sequence, count, baseOffset };
}

test('the end waits for the slowest partition and then gives each partition its last covered message', () => {
  const t = tracker(2);
  t.put(0, 1, transaction(1), 1);
  t.put(1, 1, transaction(1), 2);
  t.put(0, 2, transaction(1), 3);
  t.commit(end(1));
  t.put(0, 3, transaction(2), 1);
  t.commit(end(2));
  t.acked(0, ack(1, 500, 3));
  assert.deepEqual(t.current(), { end: end(0), partitions: [NOTHING, NOTHING] });
  assert.equal(t.revision, 0);
  t.acked(1, { ...ack(1, 9), generation: 4 });
  assert.deepEqual(t.current(), {
    end: end(2),
    partitions: [
      { epoch: 3, generation: 0, sequence: 3, offset: 502, change: { ...transaction(2), ordinal: 1 } },
      { epoch: 3, generation: 4, sequence: 1, offset: 9, change: { ...transaction(1), ordinal: 2 } },
    ],
  });
});

test('a mark is never of a message beyond the end, however far acks are ahead', () => {
  const t = tracker(2);
  t.put(0, 1, transaction(1), 1);
  t.commit(end(1));
  t.put(0, 2, transaction(2), 1);
  t.put(1, 1, transaction(2), 2);
  t.commit(end(2));
  t.acked(0, ack(1, 10, 2));
  const { end: reached, partitions } = t.current();
  assert.deepEqual([reached, partitions[0]?.sequence, partitions[0]?.offset], [end(1), 1, 10]);
});

test('acks of a transaction that has not ended do not move the end', () => {
  const t = tracker(1);
  t.put(0, 1, transaction(1), 1);
  t.acked(0, ack(1, 0));
  assert.equal(t.revision, 0);
  t.put(0, 2, transaction(1), 2);
  t.commit(end(1));
  assert.equal(t.revision, 0);
  t.acked(0, ack(2, 1));
  assert.deepEqual([t.current().end, t.current().partitions[0]?.offset], [end(1), 1]);
});

test('an empty transaction and a keepalive move the end when nothing is outstanding, and wait otherwise', () => {
  const t = tracker(1);
  t.keepalive(end(3));
  assert.deepEqual(t.end, end(3));
  assert.equal(t.revision, 1);
  t.put(0, 1, transaction(4), 1);
  t.commit(end(4));
  t.keepalive(end(7));
  assert.deepEqual(t.end, end(3));
  t.acked(0, ack(1, 0));
  assert.deepEqual(t.end, end(7));
  assert.equal(t.revision, 2);
});

test('changes are told from keepalives and heartbeats', () => {
  const t = tracker(2);
  t.keepalive(end(1));
  t.put(0, 1, transaction(0), 0);
  t.keepalive(end(2));
  t.acked(0, ack(1, 0));
  assert.deepEqual([t.revision, t.changes], [2, 0]);
  t.put(0, 2, transaction(3), 1);
  t.commit(end(3));
  t.put(1, 1, transaction(0), 0);
  t.keepalive(end(4));
  t.acked(0, ack(2, 1));
  assert.deepEqual([t.end, t.changes], [end(3), 1]);
  t.acked(1, ack(1, 0));
  assert.deepEqual([t.end, t.revision, t.changes], [end(4), 4, 1]);
  t.commit(end(5));
  assert.deepEqual([t.revision, t.changes], [5, 2]);
});

test('the frontier becomes the mark as soon as the end has passed its change', () => {
  const frontier = { ...NOTHING, epoch: 2, sequence: 8, offset: 80, change: { ...transaction(2), ordinal: 5 } };
  const t = tracker(1, { frontier: [frontier] });
  t.keepalive(end(1));
  assert.deepEqual(t.current().partitions, [NOTHING]);
  t.keepalive(end(2));
  assert.deepEqual(t.current().partitions, [frontier]);
});

test('a heartbeat that names a change beyond the end waits until the end has passed it', () => {
  const frontier = { ...NOTHING, epoch: 2, sequence: 8, offset: 80, change: { ...transaction(5), ordinal: 2 } };
  const t = tracker(1, { frontier: [frontier] });
  t.put(0, 9, transaction(5), 2);
  t.keepalive(end(1));
  t.acked(0, ack(9, 90));
  assert.deepEqual(t.current(), { end: end(1), partitions: [NOTHING] });
  t.keepalive(end(5));
  assert.equal(t.current().partitions[0]?.sequence, 9);
});

test("a snapshot's rows name its position and are covered there; a transaction that begins there is not", () => {
  const at = { file: FILE, offset: 700, gtid: '', ordinal: 0 };
  const place = { position: { ...at, gtidSet: '' }, transactionCounter: 3 };
  const rows = tracker(1);
  rows.put(0, 1, at, 0);
  rows.put(0, 2, at, 0);
  rows.commit(place);
  rows.acked(0, ack(1, 10, 2));
  assert.deepEqual(rows.current().partitions[0], { epoch: 3, generation: 0, sequence: 2, offset: 11, change: at });
  const frontier = { ...NOTHING, sequence: 5, offset: 50, change: { ...at, ordinal: 1 } };
  const begun = tracker(1, { frontier: [frontier] });
  begun.keepalive(place);
  assert.deepEqual(begun.current().partitions, [NOTHING]);
});

test('a partition that does not exist is refused', () => {
  assert.throws(() => tracker(1).put(1, 1, transaction(1), 1), { code: 'INTERNAL' });
});

interface Message {
  readonly partition: number;
  readonly sequence: number;
  readonly transaction: number;
  readonly ordinal: number;
  offset: number;
}

const PARTITIONS = 3;
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constant('transaction' as const), fc.array(fc.nat(PARTITIONS - 1), { maxLength: 4 })),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('keepalive' as const), fc.constant([])) },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constant('ack' as const), fc.tuple(fc.nat(PARTITIONS - 1), fc.integer({ min: 1, max: 6 }))),
  },
);

test('finds what a naive list of transactions finds; merged, it is late and never wrong', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150, size: '+2' }), (steps) => {
      const exact = tracker(PARTITIONS, { maxGroups: 1_000_000 });
      const merging = tracker(PARTITIONS, { maxGroups: 4 });
      const all: Message[] = [];
      const ends: number[] = [];
      const commits: number[] = [];
      const sequences = [0, 0, 0];
      const acked = [0, 0, 0];
      let number = 0;
      const naive = (upTo: number): number => {
        let best = 0;
        for (const n of ends) {
          if (n > upTo) break;
          if (all.some((m) => m.transaction <= n && m.sequence > (acked[m.partition] ?? 0))) break;
          best = n;
        }
        return best;
      };
      const expectMarks = (t: CheckpointTracker, exactly: boolean): void => {
        const { end: reached, partitions } = t.current();
        for (const [partition, mark] of partitions.entries()) {
          const covered = all.filter((m) => m.partition === partition && m.transaction <= reached.transactionCounter);
          const last = covered.at(-1);
          if (last === undefined) {
            assert.equal(mark, NOTHING);
            continue;
          }
          const { transaction: n, ordinal, sequence, offset } = last;
          if (exactly)
            assert.deepEqual(mark, {
              epoch: 3,
              generation: partition,
              sequence,
              offset,
              change: { ...transaction(n), ordinal },
            });
          else assert.deepEqual([mark.sequence, mark.offset], [sequence, offset]);
        }
      };
      const ackSome = (partition: number, count: number): void => {
        const first = (acked[partition] ?? 0) + 1;
        const last = Math.min(first + count - 1, sequences[partition] ?? 0);
        if (last < first) return;
        const run = { generation: partition, firstSequence: first, count: last - first + 1, baseOffset: first * 10 };
        for (const m of all) {
          if (m.partition === partition && m.sequence >= first && m.sequence <= last)
            m.offset = first * 10 + m.sequence - first;
        }
        acked[partition] = last;
        exact.acked(partition, run);
        merging.acked(partition, run);
      };
      for (const [kind, detail] of steps) {
        const before = [exact, merging].map(({ end, changes }) => ({ end, changes }));
        if (kind === 'ack') {
          ackSome(detail[0], detail[1]);
        } else {
          number++;
          for (const [i, partition] of detail.entries()) {
            const sequence = ++(sequences as [number, number, number])[partition as 0 | 1 | 2];
            all.push({ partition, sequence, transaction: number, ordinal: i + 1, offset: -1 });
            for (const t of [exact, merging]) t.put(partition, sequence, transaction(number), i + 1);
          }
          ends.push(number);
          if (kind !== 'keepalive') commits.push(number);
          for (const t of [exact, merging]) {
            if (kind === 'keepalive') t.keepalive(end(number));
            else t.commit(end(number));
          }
        }
        for (const [i, t] of [exact, merging].entries()) {
          const from = before[i]?.end.transactionCounter ?? 0;
          const passed = commits.some((n) => n > from && n <= t.end.transactionCounter);
          assert.equal(t.changes > (before[i]?.changes ?? 0), passed);
        }
        const want = naive(number);
        assert.equal(exact.end.transactionCounter, want);
        assert.ok(merging.end.transactionCounter <= want);
        assert.equal(naive(merging.end.transactionCounter), merging.end.transactionCounter);
        assert.ok(merging.outstanding <= 4);
        expectMarks(exact, true);
        expectMarks(merging, false);
      }
      for (let partition = 0; partition < PARTITIONS; partition++) ackSome(partition, 1e6);
      for (const t of [exact, merging]) {
        assert.equal(t.end.transactionCounter, number);
        assert.equal(t.outstanding, 0);
        expectMarks(t, true);
      }
    }),
    { numRuns: 500 },
  );
});

test('a million transactions behind one stuck message: bounded in memory, constant in time', (context) => {
  const t = tracker(2, { maxGroups: 1024 });
  t.put(1, 1, transaction(1), 1);
  t.commit(end(1));
  const id = transaction(2);
  const last = end(1_000_000);
  const started = process.cpuUsage();
  for (let n = 2; n <= 1_000_000; n++) {
    t.put(0, n - 1, id, 1);
    t.commit(last);
    if (n % 100 === 0) t.acked(0, ack(n - 99, n, 99));
  }
  const { user } = process.cpuUsage(started);
  assert.ok(t.outstanding <= 1024);
  t.acked(0, ack(999_900, 1_000_000, 100));
  t.acked(1, ack(1, 7));
  assert.equal(t.outstanding, 0);
  assert.equal(t.current().partitions[0]?.sequence, 999_999);
  context.diagnostic(`${(1e6 / user).toFixed(1)} million transactions per CPU second`);
});
