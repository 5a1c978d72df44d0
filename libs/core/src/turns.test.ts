import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { Turns } from './turns.ts';

test('acts run one after another in the order of their calls, failed ones among them', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const act =
    (name: string, ticks: number, fails = false) =>
    async (): Promise<string> => {
      seen.push(`${name} begins`);
      for (let i = 0; i < ticks; i++) await tick();
      seen.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const [slow, failed, quick] = [turns.take(act('a', 5)), turns.take(act('b', 3, true)), turns.take(act('c', 0))];
  await assert.rejects(failed, { message: 'b' });
  assert.deepEqual(await Promise.all([slow, quick]), ['a', 'c']);
  assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('over waits for what was taken, and does not fail with it', async () => {
  const turns = new Turns();
  let ended = false;
  const failed = turns.take(async () => {
    await tick();
    ended = true;
    throw new Error('refused');
  });
  const refusal = assert.rejects(failed);
  await turns.over();
  assert.equal(ended, true);
  await refusal;
});
