import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { throughGate } from './gate.ts';
import { thisProcess } from './process-identity.ts';
import type { ChildTask } from './test-child.ts';

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('one at a time passes', async (t) => {
  const file = join(directory(t), 'gate');
  let inside = 0;
  const visit = () =>
    throughGate(file, async () => {
      assert.equal(inside++, 0);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    });
  await Promise.all(Array.from({ length: 10 }, visit));
  assert.ok(!existsSync(file));
});

test('a gate that a dead process left is taken over', async (t) => {
  const file = join(directory(t), 'gate');
  writeFileSync(file, JSON.stringify({ ...thisProcess(), start: '1' }));
  await throughGate(file, async () => {});
  // One that died before it wrote its name.
  writeFileSync(file, '');
  utimesSync(file, new Date(Date.now() - 5000), new Date(Date.now() - 5000));
  await throughGate(file, async () => {});
  assert.ok(!existsSync(file));
});

test('processes that open and close at the same time all get a sound log', { timeout: 120_000 }, async (t) => {
  const path = directory(t);
  const children: ChildProcess[] = Array.from({ length: 4 }, () =>
    fork(new URL('./test-child.js', import.meta.url), [JSON.stringify({ kind: 'reopen', path } satisfies ChildTask)]),
  );
  const codes = await Promise.all(
    children.map(async (child) => {
      let told = '';
      child.on('message', (message: { kind: string; code?: string }) => {
        told = message.code ?? message.kind;
      });
      await once(child, 'exit');
      return told;
    }),
  );
  assert.deepEqual(codes, ['ready', 'ready', 'ready', 'ready']);
});
