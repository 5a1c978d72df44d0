import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError, systemClock } from '@mysync/core';
import type { ApplyBatch, ApplyOutcome, Sink } from '@mysync/sink';
import { type AppliedMarker, formatMarker, type LostDeletions, parseMarker } from '@mysync/writer';
import { Again } from './again.ts';
import { LostDeletionsRepair } from './lost-deletions.ts';
import type { TableReport } from './report.ts';

const topic = { name: 'shop', id: 'topic-1', partitions: 2 };

/** Nothing but markers, by compare-and-set. */
class Markers {
  readonly texts: string[] = [];
  doubt: (reason: string) => void = () => undefined;
  /** Called before each move. */
  beforeMove: () => void = () => undefined;

  set(partition: number, nextOffset: number, lost?: LostDeletions): void {
    const marker: AppliedMarker = {
      topicId: topic.id,
      partitions: topic.partitions,
      owner: 'writer',
      nextOffset,
      guard: { epoch: 1, generation: 0, sequence: 1, offset: 0, seenSince: 0, closed: false, nextOffset },
      version: '1',
      change: { file: '', offset: 0, gtid: '', ordinal: 0 },
      ...(lost === undefined ? {} : { lost }),
    };
    this.texts[partition] = formatMarker(marker);
  }

  lost(partition: number): LostDeletions | undefined {
    return parseMarker(this.texts[partition] ?? '', {}).lost;
  }

  get sink(): Sink {
    const port: Pick<Sink, 'readMarker' | 'apply' | 'onDoubt'> = {
      readMarker: ({ partition }) => Promise.resolve(this.texts[partition] ?? null),
      apply: ({ stream, marker }: ApplyBatch): Promise<ApplyOutcome> => {
        this.beforeMove();
        if (this.texts[stream.partition] !== marker.expected) return Promise.resolve({ status: 'marker-moved' });
        this.texts[stream.partition] = marker.next;
        return Promise.resolve({ status: 'applied', stale: 0 });
      },
      onDoubt: (callback) => {
        this.doubt = callback;
      },
    };
    return port as Sink;
  }
}

function repairOf(markers: Markers, ends: readonly number[] | null, patienceMs = 5_000): LostDeletionsRepair {
  const signal = new AbortController().signal;
  const again = new Again({ clock: systemClock, signal, patienceMs: 0, onRetry: () => undefined });
  return new LostDeletionsRepair({ sink: markers.sink, topic, ends, clock: systemClock, patienceMs, again, signal });
}

/** Of a table that was compared. */
function tableReport(unremoved = 0): TableReport {
  const counts = {
    rows: 1,
    equal: 1,
    different: 0,
    missing: 0,
    extra: 0,
    expired: 0,
    changing: 0,
    unsettled: 0,
    repaired: 0,
  };
  return { table: { database: 'shop', table: 'orders' }, ...counts, unremoved, seconds: 0, differences: [] };
}

const CLEAN = [tableReport()];

const STOPPED: LostDeletions = { id: 'a', foundMs: 1, stoppedAt: 10 };
const PASSED: LostDeletions = { id: 'b', foundMs: 1, until: 20 };

test('a partition that stands is told, unless the word is said: then it may go on up to the end of the log', async () => {
  const markers = new Markers();
  markers.set(0, 10, STOPPED);
  markers.set(1, 30);
  await assert.rejects(repairOf(markers, null).begin(), (error) => isMysyncError(error, 'VERIFY_DELETIONS_LOST'));
  assert.deepEqual(markers.lost(0), STOPPED);
  const repair = repairOf(markers, [25, 30]);
  const begun = repair.begin();
  while (markers.lost(0)?.until === undefined) await systemClock.sleep(5);
  const permitted = markers.lost(0);
  assert.deepEqual([permitted?.until, permitted?.stoppedAt], [25, undefined]);
  // the writer passes it
  markers.set(0, 26, { id: 'passed', foundMs: 1, until: 25 });
  await begun;
  assert.deepEqual(repair.partitions, [0]);
  assert.equal((await repair.conclude(CLEAN, 0)).size, 0);
  assert.equal(markers.lost(0), undefined);
});

test('the end of the log may lie before the place where the partition stands: that place may be passed', async () => {
  const markers = new Markers();
  markers.set(0, 10, STOPPED);
  markers.set(1, 0);
  const repair = repairOf(markers, [10, 0], 50);
  await assert.rejects(repair.begin(), (error) => isMysyncError(error, 'VERIFY_NOTHING_RUNS'));
  assert.equal(markers.lost(0)?.until, 11);
});

test('what was passed, or put back, while tables were compared stays', async () => {
  const markers = new Markers();
  markers.set(0, 30, PASSED);
  markers.set(1, 30, { ...PASSED, id: 'c' });
  const repair = repairOf(markers, null);
  await repair.begin();
  markers.set(0, 40, { ...PASSED, id: 'another' });
  assert.deepEqual([...(await repair.conclude(CLEAN, 0))], [[0, 'passed-again']]);
  assert.equal(markers.lost(0)?.id, 'another');
  assert.equal(markers.lost(1), undefined);
});

test('it stays where the store may have lost what it had confirmed, also right before the marker is moved', async () => {
  for (const when of ['before', 'at the last moment'] as const) {
    const markers = new Markers();
    markers.set(0, 30, PASSED);
    markers.set(1, 30);
    const repair = repairOf(markers, null);
    markers.doubt('before anything was compared: of no matter');
    await repair.begin();
    let moves = 0;
    if (when === 'before') markers.doubt('test');
    else
      markers.beforeMove = () => {
        moves += 1;
        if (moves === 1) markers.doubt('test');
      };
    assert.deepEqual([...(await repair.conclude(CLEAN, 0))], [[0, 'doubt']], when);
    assert.equal(markers.lost(0)?.id, PASSED.id);
  }
});

test('a writer that moves the marker meanwhile is no reason', async () => {
  const markers = new Markers();
  markers.set(0, 30, PASSED);
  markers.set(1, 30);
  const repair = repairOf(markers, null);
  await repair.begin();
  let moves = 0;
  markers.beforeMove = () => {
    moves += 1;
    if (moves === 2) markers.set(0, 31, PASSED);
  };
  assert.equal((await repair.conclude(CLEAN, 0)).size, 0);
  assert.equal(markers.lost(0), undefined);
});

test('a partition that stands for another reason keeps nobody from the word', async () => {
  const markers = new Markers();
  markers.set(0, 10);
  markers.set(1, 10, STOPPED);
  const repair = repairOf(markers, [20, 20], 200);
  await assert.rejects(repair.begin(), (error) => isMysyncError(error, 'VERIFY_NOTHING_RUNS'));
  assert.equal(markers.lost(1)?.until, 20);
});

test('the word is said to all before the first has passed its stretch', async () => {
  const markers = new Markers();
  markers.set(0, 10, STOPPED);
  markers.set(1, 10, STOPPED);
  const repair = repairOf(markers, [20, 20]);
  const begun = repair.begin();
  while (markers.lost(1)?.until === undefined) await systemClock.sleep(5);
  assert.equal(markers.lost(0)?.until, 20);
  for (const partition of [1, 0]) markers.set(partition, 20, { ...PASSED, id: `passed ${partition}` });
  await begun;
  assert.deepEqual([...repair.partitions].sort(), [0, 1]);
});

test('two at once: what the other has taken out of the markers is mended, whatever was passed in between', async () => {
  const markers = new Markers();
  markers.set(0, 30, PASSED);
  markers.set(1, 30, PASSED);
  const first = repairOf(markers, null);
  const second = repairOf(markers, null);
  await first.begin();
  await second.begin();
  assert.equal((await first.conclude(CLEAN, 0)).size, 0);
  markers.set(1, 40, { ...PASSED, id: 'another' });
  const third = repairOf(markers, null);
  await third.begin();
  assert.equal((await third.conclude(CLEAN, 0)).size, 0);
  assert.equal((await second.conclude(CLEAN, 0)).size, 0);
});

test('a marker that says nothing because the store was put back, before what was noted, is no mended one', async () => {
  const markers = new Markers();
  markers.set(0, 30, PASSED);
  markers.set(1, 30);
  const repair = repairOf(markers, null);
  await repair.begin();
  // its writer has taken it over and not come to the stretch yet
  markers.set(0, 10);
  assert.deepEqual([...(await repair.conclude(CLEAN, 0))], [[0, 'passed-again']]);
});

test('a mark stays when no table was compared, one was skipped, or a row is left that may be gone', async () => {
  const markers = new Markers();
  markers.set(0, 30, PASSED);
  markers.set(1, 30);
  const repair = repairOf(markers, null);
  await repair.begin();
  for (const [tables, uncompared, why] of [
    [[], 0, 'uncompared'],
    [CLEAN, 1, 'uncompared'],
    [[...CLEAN, tableReport(1)], 0, 'rows-left'],
  ] as const) {
    assert.deepEqual([...(await repair.conclude(tables, uncompared))], [[0, why]]);
    assert.deepEqual(markers.lost(0), PASSED);
  }
  assert.equal((await repair.conclude(CLEAN, 0)).size, 0);
  assert.equal(markers.lost(0), undefined);
});
