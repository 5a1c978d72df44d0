import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ChangeId } from '@mysync/core';
import type { PartitionMark } from './checkpoint-tracker.ts';
import { SeededRandom } from './random.ts';
import type { TailMark } from './tail-marks.ts';
import { recoverTail, type TailRecord, TailRecovery } from './tail-recovery.ts';

function change(n: number): ChangeId {
  return { file: 'binlog.000001', offset: n * 100, gtid: '', ordinal: 1 };
}

function mark(epoch: number, generation: number, sequence: number, offset: number): PartitionMark {
  return { epoch, generation, sequence, offset, change: change(sequence) };
}

const START = mark(1, 0, 5, 50);

/** Records from the start's offset on, one per tuple [epoch, generation, base, sequence]; 'fence' takes an offset, too. */
function tail(...records: ('fence' | readonly [number, number, number, number])[]): TailRecord[] {
  return records.map((record, i) => {
    const offset = START.offset + 1 + i;
    if (record === 'fence') return { kind: 'fence', offset, epoch: 7 };
    const [epoch, generation, base, sequence] = record;
    return { kind: 'message', offset, delivery: { epoch, generation, base, sequence }, change: change(sequence) };
  });
}

test('an empty tail: the frontier is the checkpoint', () => {
  const result = recoverTail(START, []);
  assert.deepEqual(result.frontier, START);
  assert.deepEqual([result.highestEpoch, result.anomaly], [1, null]);
});

test('a whole tail: the frontier is its last message', () => {
  const result = recoverTail(START, tail([1, 0, 1, 6], [1, 0, 1, 7], [1, 1, 8, 8]));
  assert.deepEqual(result.frontier, mark(1, 1, 8, 53));
  assert.equal(result.anomaly, null);
});

test('what follows a missing message does not count, until the next generation', () => {
  const closed = recoverTail(START, tail([1, 0, 1, 6], [1, 0, 1, 8], [1, 0, 1, 7]));
  assert.deepEqual(closed.frontier, mark(1, 0, 6, 51));
  assert.deepEqual(closed.anomaly, { offset: 52, rule: 'gap' });
  const reopened = recoverTail(START, tail([1, 0, 1, 6], [1, 0, 1, 8], [1, 1, 7, 7], [1, 1, 7, 8]));
  assert.deepEqual(reopened.frontier, mark(1, 1, 8, 54));
});

test('a rewound generation takes the frontier back, with the change of that message', () => {
  // 6, 7, 8 were stored, 7 and 8 went again, and of the second attempt only 8 was stored.
  const result = recoverTail(START, tail([1, 0, 1, 6], [1, 0, 1, 7], [1, 0, 1, 8], [1, 1, 7, 8]));
  assert.deepEqual(result.frontier, mark(1, 0, 6, 51));
  const toStart = recoverTail(START, tail([1, 0, 1, 6], [1, 1, 6, 7]));
  assert.deepEqual(toStart.frontier, START);
});

test('a generation that begins beyond F + 1 is not taken over', () => {
  const result = recoverTail(START, tail([1, 0, 1, 6], [2, 0, 9, 9], [1, 0, 1, 7]));
  assert.deepEqual(result.frontier, mark(1, 0, 6, 51));
  assert.deepEqual(result.anomaly, { offset: 52, rule: 'base-beyond' });
  assert.equal(result.highestEpoch, 2);
});

test('the epoch of a fence counts, its record does not disturb the run', () => {
  const result = recoverTail(START, tail([1, 0, 1, 6], 'fence', [1, 0, 1, 7]));
  assert.deepEqual(result.frontier, mark(1, 0, 7, 53));
  assert.equal(result.highestEpoch, 7);
});

test('a generation that begins below the checkpoint is refused with the remedy', () => {
  assert.throws(
    () => recoverTail(START, tail([2, 0, 3, 3])),
    (error: Error & { code: string; remedy: string }) => {
      assert.equal(error.code, 'FLOW_TAIL_INVALID');
      assert.match(error.remedy, /put the checkpoint back/);
      return true;
    },
  );
});

test('what is remembered is bounded: a rewind within it is found, one beyond it is refused', () => {
  const run = (back: number, last = 1000): TailMark => {
    const recovery = new TailRecovery(START, { remember: 10 });
    let offset = START.offset;
    for (let sequence = 6; sequence <= last; sequence++) {
      recovery.offer(++offset, { epoch: 1, generation: 0, base: 1, sequence });
    }
    recovery.offer(++offset, { epoch: 1, generation: 1, base: last + 1 - back, sequence: 2000 });
    return recovery.result().frontier;
  };
  assert.deepEqual(run(0), { epoch: 1, generation: 0, sequence: 1000, offset: 1045 });
  for (let last = 970; last <= 1000; last++) {
    assert.deepEqual(run(10, last), { epoch: 1, generation: 0, sequence: last - 10, offset: last + 35 });
  }
  for (const back of [11, 30]) {
    assert.throws(() => run(back), { code: 'FLOW_TAIL_INVALID', message: /further back than the 10 messages/ });
  }
});

test('random rewinds: the frontier is that of a list of all marks', () => {
  const remember = 1500;
  const seed = Number(process.env['MYSYNC_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const dice = new SeededRandom(seed);
  const random = (below: number): number => dice.integer(0, below - 1);
  const recovery = new TailRecovery(START, { remember });
  const all: TailMark[] = [{ epoch: 1, generation: 0, sequence: 5, offset: 50 }];
  let [offset, epoch, generation, base] = [50, 1, 0, 6];
  for (let round = 0; round < 200; round++) {
    for (let n = random(900); n > 0; n--) {
      const sequence = (all.at(-1) as TailMark).sequence + 1;
      assert.equal(recovery.offer(++offset, { epoch, generation, base, sequence }), 'accept');
      all.push({ epoch, generation, sequence, offset });
    }
    assert.deepEqual(recovery.result().frontier, all.at(-1), `MYSYNC_SEED=${seed}`);
    // what was acked before the last rewind is never sent again
    const unacked = (all.at(-1) as TailMark).sequence - (base - 1);
    all.length -= random(Math.min(remember, Math.max(unacked, 0), all.length - 1) + 1);
    base = (all.at(-1) as TailMark).sequence + 1;
    if (random(4) > 0) generation++;
    else [epoch, generation] = [epoch + 1, 0];
    // of another attempt, of which the first was lost
    recovery.offer(++offset, { epoch, generation, base, sequence: base + 1 });
    generation++;
    assert.deepEqual(recovery.result().frontier, all.at(-1), `MYSYNC_SEED=${seed}`);
  }
});

test('a tail of any length takes little memory, also that of several partitions at once', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const recoveries = Array.from({ length: 4 }, () => new TailRecovery(START));
  const delivery = { epoch: 1, generation: 0, base: 1, sequence: 0 };
  for (let n = 1; n <= 1_100_000; n++) {
    delivery.sequence = START.sequence + n;
    for (const recovery of recoveries) recovery.offer(START.offset + n, delivery);
  }
  assert.ok(used() - before < 100e6, `${used() - before} bytes`);
  for (const recovery of recoveries) assert.equal(recovery.result().frontier.sequence, START.sequence + 1_100_000);
});
