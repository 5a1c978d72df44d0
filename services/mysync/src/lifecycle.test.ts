import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lifecycle } from './lifecycle.ts';

test('closes in reverse, one at a time, past failures, and only once', async () => {
  const lifecycle = new Lifecycle();
  const log: string[] = [];
  const open = (name: string, fails = false): void => {
    lifecycle.opened(name, name, async (value) => {
      log.push(`${value} closes`);
      await new Promise((resolve) => setImmediate(resolve));
      if (fails) throw new Error('stuck');
      log.push(`${value} closed`);
    });
  };
  open('transport');
  open('source', true);
  open('sink');
  const failures = await lifecycle.close();
  assert.deepEqual(log, ['sink closes', 'sink closed', 'source closes', 'transport closes', 'transport closed']);
  assert.deepEqual(
    failures.map(({ name, error }) => [name, String(error)]),
    [['source', 'Error: stuck']],
  );
  assert.deepEqual(await lifecycle.close(), []);
  assert.equal(log.length, 5);
});
