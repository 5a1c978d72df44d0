import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unlessAborted } from './unless-aborted.ts';

function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

test('gives the value, or the failure', async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(7), signal), 7);
  await assert.rejects(unlessAborted(Promise.reject(new Error('broken')), signal), /broken/);
});

test('an abort ends the waiting; what comes late is closed, once', async () => {
  const stop = new AbortController();
  const call = deferred<string>();
  const closed: string[] = [];
  const waiting = unlessAborted(call.promise, stop.signal, async (value) => {
    closed.push(value);
  });
  stop.abort(new Error('stopped'));
  await assert.rejects(waiting, /stopped/);
  call.resolve('consumer');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(closed, ['consumer']);
});

test("a late failure is nobody's business; a signal that aborted before ends it at once", async () => {
  const call = deferred<string>();
  await assert.rejects(unlessAborted(call.promise, AbortSignal.abort(new Error('stopped'))), /stopped/);
  call.reject(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});
