/** What every store of a schema history must hold to; each adapter's tests call it. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type { SchemaHistoryEntry, SchemaHistoryStore } from './schema-history.ts';

/** An owner of one place: the checkpoint's store with its history. */
export interface SchemaHistoryOwner {
  readonly history: SchemaHistoryStore;
  close(): Promise<void>;
}

/** One place where a history may be stored, empty at first. */
export interface SchemaHistorySubject {
  /** A new owner over the same place. */
  open(): Promise<SchemaHistoryOwner>;
  /** Changes a byte of what was stored first, behind the store's back. */
  damage(): Promise<void>;
  dispose(): Promise<void>;
}

export function sampleEntry(n: number): SchemaHistoryEntry {
  return {
    position: { file: 'binlog.1000001', offset: 2 ** 40 + n },
    table: { database: 'Läden\n"x"', table: `表 ${n}` },
    kind: 'definition',
    body: { columns: [{ name: `q"\u2028${n}`, members: ["a'b", '\\', ''] }], nothing: null, number: -1.5, flag: true },
    recordedAt: '2024-05-06T07:08:09.010Z',
  };
}

export function schemaHistoryConformance(kind: string, create: () => Promise<SchemaHistorySubject>): void {
  describe(`${kind}: the contract of a schema history store`, () => {
    let subject: SchemaHistorySubject;
    let owner: SchemaHistoryOwner;

    beforeEach(async () => {
      subject = await create();
      owner = await subject.open();
    });

    afterEach(async () => {
      await owner.close();
      await subject.dispose();
    });

    async function reopen(): Promise<void> {
      await owner.close();
      owner = await subject.open();
    }

    test('there is none at first, and nothing can be added to none', async () => {
      assert.equal(await owner.history.load(), null);
      await assert.rejects(owner.history.append([sampleEntry(1)]), { code: 'CHECKPOINT_FENCED' });
      await owner.history.prune(() => false);
      assert.equal(await owner.history.load(), null);
    });

    test('what was added is loaded in its order, also by the next owner', async () => {
      const begun = await owner.history.begin();
      assert.deepEqual(await owner.history.load(), { head: begun, entries: [] });
      assert.deepEqual(owner.history.head, begun);
      const one = await owner.history.append([sampleEntry(2), sampleEntry(1)]);
      const two = await owner.history.append([sampleEntry(3)]);
      assert.ok(one.id === begun.id && two.id === begun.id);
      assert.ok(begun.sequence < one.sequence && one.sequence < two.sequence);
      const all = { head: two, entries: [sampleEntry(2), sampleEntry(1), sampleEntry(3)] };
      assert.deepEqual(await owner.history.load(), all);
      await reopen();
      assert.deepEqual(await owner.history.load(), all);
      assert.deepEqual(owner.history.head, two);
      const three = await owner.history.append([sampleEntry(4)]);
      await reopen();
      assert.deepEqual(await owner.history.load(), { head: three, entries: [...all.entries, sampleEntry(4)] });
    });

    test('additions called without waiting keep the order of the calls', async () => {
      await owner.history.begin();
      await Promise.all([1, 2, 3, 4, 5].map((n) => owner.history.append([sampleEntry(n)])));
      assert.deepEqual((await owner.history.load())?.entries, [1, 2, 3, 4, 5].map(sampleEntry));
    });

    test('pruning leaves what is wanted, and the head', async () => {
      await owner.history.begin();
      const head = await owner.history.append([1, 2, 3, 4].map(sampleEntry));
      await owner.history.prune((entry, index) => index === 0 || entry.table.table.endsWith('3'));
      const left = { head, entries: [sampleEntry(1), sampleEntry(3)] };
      assert.deepEqual(await owner.history.load(), left);
      await reopen();
      assert.deepEqual(await owner.history.load(), left);
      await owner.history.prune(() => false);
      await reopen();
      assert.deepEqual(await owner.history.load(), { head, entries: [] });
      const next = await owner.history.append([sampleEntry(5)]);
      assert.ok(next.sequence > head.sequence);
    });

    test('a new one is empty and has another id', async () => {
      const first = await owner.history.begin();
      await owner.history.append([sampleEntry(1)]);
      const second = await owner.history.begin();
      assert.notEqual(second.id, first.id);
      assert.deepEqual(await owner.history.load(), { head: second, entries: [] });
      await reopen();
      assert.deepEqual(await owner.history.load(), { head: second, entries: [] });
    });

    test('of two owners only one goes on', async () => {
      await owner.history.begin();
      await owner.history.append([sampleEntry(1)]);
      let second: SchemaHistoryOwner;
      try {
        second = await subject.open();
      } catch (error) {
        assert.ok(isMysyncError(error, 'CHECKPOINT_LOCKED'), String(error));
        return;
      }
      await second.history.load();
      await second.history.append([sampleEntry(2)]);
      await assert.rejects(owner.history.append([sampleEntry(3)]), { code: 'CHECKPOINT_FENCED' });
      await assert.rejects(owner.history.begin(), { code: 'CHECKPOINT_FENCED' });
      assert.deepEqual((await second.history.load())?.entries, [sampleEntry(1), sampleEntry(2)]);
      await second.close();
    });

    test('damage is an error with a remedy, never absent and never added to', async () => {
      await owner.history.begin();
      await owner.history.append([sampleEntry(1)]);
      await owner.close();
      await subject.damage();
      owner = await subject.open();
      const invalid = { code: 'SCHEMA_HISTORY_INVALID' };
      await assert.rejects(owner.history.load(), invalid);
      await assert.rejects(owner.history.append([sampleEntry(2)]), invalid);
      await assert.rejects(owner.history.load(), invalid);
    });

    test('nothing is added after closing', async () => {
      await owner.history.begin();
      await owner.close();
      await assert.rejects(owner.history.append([sampleEntry(1)]));
      owner = await subject.open();
      assert.deepEqual((await owner.history.load())?.entries, []);
    });
  });
}
