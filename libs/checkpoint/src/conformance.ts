/** What every checkpoint store must hold to; each adapter's tests call it. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type { Checkpoint, CheckpointStore } from './port.ts';

export {
  type SchemaHistoryOwner,
  type SchemaHistorySubject,
  schemaHistoryConformance,
} from './schema-history-conformance.ts';

/** One place where a checkpoint may be stored, empty at first. */
export interface CheckpointStoreSubject {
  /** A new store over the same place. */
  open(): Promise<CheckpointStore>;
  /** Changes what is stored behind the store's back: cuts its end off, or puts something else there. */
  damage(kind: 'truncated' | 'foreign' | 'garbage'): Promise<void>;
  dispose(): Promise<void>;
}

/** A checkpoint with every field set; values that are easily spoilt on the way. */
export function sampleCheckpoint(changes: Partial<Checkpoint> = {}): Checkpoint {
  return {
    source: 'Läden 🛒 "quoted"',
    position: {
      file: 'binlog.1000001',
      offset: 2 ** 53 - 1,
      gtidSet: '3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:7,\n0-1-99',
      fileCreated: 1_714_979_289,
    },
    serverUuid: '3e11fa47-71ca-11e1-9e33-c80aa9429562',
    transactionCounter: 123_456_789_012,
    epoch: 1,
    producer: { id: '9007199254740993', epoch: 32_767 },
    topic: { name: 'shop', id: 'x-1', partitions: 2 },
    configFingerprint: 'abc',
    partitions: [
      {
        epoch: 1,
        generation: 2,
        sequence: 3,
        offset: 4,
        change: { file: 'binlog.000001', offset: 5, gtid: 'u:6', ordinal: 7 },
      },
      { epoch: 0, generation: 0, sequence: 0, offset: -1, change: { file: '', offset: 0, gtid: '', ordinal: 0 } },
    ],
    snapshot: {
      state: 'done',
      completeTables: ['shop.orders', 'shop.a.b'],
      wantedTables: [{ database: 'shop', table: 'c.d' }],
      knownTables: [{ database: 'shop', table: 'gone' }],
    },
    floors: [{ file: 'binlog.1000001', offset: 4, transactionCounter: 9 }],
    schemaHistory: { id: 'h-1', sequence: 9 },
    savedAt: '2024-05-06T07:08:09.010Z',
    ...changes,
  };
}

export function checkpointStoreConformance(kind: string, create: () => Promise<CheckpointStoreSubject>): void {
  describe(`${kind}: the contract of a checkpoint store`, () => {
    let subject: CheckpointStoreSubject;
    let store: CheckpointStore;

    beforeEach(async () => {
      subject = await create();
      store = await subject.open();
    });

    afterEach(async () => {
      await store.close();
      await subject.dispose();
    });

    async function reopen(): Promise<void> {
      await store.close();
      store = await subject.open();
    }

    test('there is none at first', async () => {
      assert.equal(await store.load(), null);
    });

    test('what was saved is loaded, also by the next owner', async () => {
      const checkpoint = sampleCheckpoint();
      await store.save(checkpoint, null);
      assert.deepEqual(await store.load(), checkpoint);
      await reopen();
      assert.deepEqual(await store.load(), checkpoint);
      const next = sampleCheckpoint({ epoch: 2, producer: null, snapshot: { state: 'running', completeTables: [] } });
      await store.save(next, 1);
      await reopen();
      assert.deepEqual(await store.load(), next);
    });

    test('the same epoch is saved over itself as often as wanted', async () => {
      await store.save(sampleCheckpoint(), null);
      for (let n = 1; n <= 20; n++) await store.save(sampleCheckpoint({ transactionCounter: n }), 1);
      assert.equal((await store.load())?.transactionCounter, 20);
    });

    test('saves called without waiting take effect in the order of the calls', async () => {
      await store.save(sampleCheckpoint(), null);
      const saves = [1, 2, 3, 4, 5].map((epoch) => store.save(sampleCheckpoint({ epoch: epoch + 1 }), epoch));
      await Promise.all(saves);
      assert.equal((await store.load())?.epoch, 6);
    });

    test('a save that expects another epoch is fenced and changes nothing', async () => {
      const stored = sampleCheckpoint({ epoch: 5 });
      await assert.rejects(store.save(stored, 4), { code: 'CHECKPOINT_FENCED' });
      assert.equal(await store.load(), null);
      await store.save(stored, null);
      for (const replaces of [null, 4, 6]) {
        await assert.rejects(store.save(sampleCheckpoint({ epoch: 7 }), replaces), { code: 'CHECKPOINT_FENCED' });
      }
      assert.deepEqual(await store.load(), stored);
    });

    test('an older epoch never replaces a newer one', async () => {
      await store.save(sampleCheckpoint({ epoch: 5 }), null);
      await assert.rejects(store.save(sampleCheckpoint({ epoch: 4 }), 5), { code: 'CHECKPOINT_FENCED' });
      assert.equal((await store.load())?.epoch, 5);
    });

    test('of two owners only one goes on', async () => {
      await store.save(sampleCheckpoint(), null);
      let second: CheckpointStore;
      try {
        second = await subject.open();
      } catch (error) {
        assert.ok(isMysyncError(error, 'CHECKPOINT_LOCKED'), String(error));
        return;
      }
      await second.save(sampleCheckpoint({ epoch: 2 }), 1);
      await assert.rejects(store.save(sampleCheckpoint(), 1), { code: 'CHECKPOINT_FENCED' });
      assert.equal((await second.load())?.epoch, 2);
      await second.close();
    });

    for (const damage of ['truncated', 'foreign', 'garbage'] as const) {
      test(`what is ${damage} is an error with a remedy, never absent and never overwritten`, async () => {
        await store.save(sampleCheckpoint(), null);
        await store.close();
        await subject.damage(damage);
        store = await subject.open();
        const invalid = (error: unknown): boolean => {
          assert.ok(isMysyncError(error, 'CHECKPOINT_INVALID'), String(error));
          assert.equal(error.retriable, false);
          assert.notEqual(error.remedy, '');
          assert.ok(Object.keys(error.where).length > 0);
          return true;
        };
        await assert.rejects(store.load(), invalid);
        await assert.rejects(store.save(sampleCheckpoint(), 1), invalid);
        await assert.rejects(store.save(sampleCheckpoint(), null), invalid);
        await assert.rejects(store.load(), invalid);
      });
    }

    test('closing twice is harmless, saving after it is refused', async () => {
      await store.close();
      await store.close();
      await assert.rejects(store.save(sampleCheckpoint(), null));
      store = await subject.open();
      assert.equal(await store.load(), null);
    });
  });
}
