import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MasterWatch } from './master-watch.ts';

/** What is owed, and how to answer. */
function owed(): { readonly answer: Promise<string>; readonly give: () => void } {
  let give = (): void => undefined;
  const answer = new Promise<string>((resolve) => {
    give = () => resolve('answer');
  });
  return { answer, give };
}

test('of those that owe an answer, the ones that are no master any more are left, however often nobody could be asked', async () => {
  const [old, slow] = [owed(), owed()];
  const asked: string[][] = [];
  const left: string[] = [];
  const replies = [() => null, () => Promise.reject(new Error('not heard of')), () => new Set(['slow', 'other'])];
  const over = owed();
  const watch: MasterWatch = new MasterWatch({
    look: async (silent) => {
      asked.push([...silent].sort());
      return (await replies.shift()?.()) ?? null;
    },
    leave: (name) => {
      left.push(name);
      old.give();
      over.give();
    },
  });
  const waits = [watch.during('old', old.answer), watch.during('slow', slow.answer)];
  assert.equal(await watch.during('other', Promise.resolve('at once')), 'at once');
  assert.deepEqual([...watch.silent], [], 'not yet');
  await over.answer;
  assert.deepEqual(left, ['old']);
  assert.deepEqual(
    asked,
    [1, 2, 3].map(() => ['old', 'slow']),
  );
  assert.equal(await waits[0], 'answer');
  assert.deepEqual([...watch.silent], ['slow']);
  slow.give();
  assert.equal(await waits[1], 'answer');
  assert.deepEqual([...watch.silent], []);
});

test('a failure is passed on, and what failed is not waited for any more', async () => {
  const watch = new MasterWatch({ look: async () => null, leave: () => undefined });
  await assert.rejects(watch.during('a', Promise.reject(new Error('broken'))), /broken/);
  assert.deepEqual([...watch.silent], []);
});
