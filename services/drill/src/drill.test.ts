import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { FaultProxy } from './fault-proxy.ts';
import { parsePlan, plannedFault } from './faults.ts';
import { StaleWatch } from './stale-watch.ts';

test('a version that goes back is stale, also beyond a deletion', () => {
  const watch = new StaleWatch();
  for (const [target, version] of [
    ['a', 5n],
    ['b', 9n],
    ['a', 5n],
    ['a', 6n],
    ['a', 5n],
    ['b', 10n],
    ['c', null],
    ['c', 1n],
    ['b', null],
    ['b', 11n],
  ] as const) {
    watch.see(target, version);
  }
  assert.deepEqual(watch.stale, ['a']);
  // a row that was deleted, and comes back as it was
  watch.see('c', null);
  watch.see('c', 1n);
  watch.see('b', null);
  watch.see('b', 10n);
  assert.deepEqual(watch.stale, ['a', 'c', 'b']);
});

test('a plan is read strictly', () => {
  const plan = [{ name: 'broker', break: 'true', mend: 'true', seconds: 1 }];
  assert.deepEqual(parsePlan(JSON.stringify(plan), 'p'), plan);
  for (const text of [
    '{',
    '{}',
    '[1]',
    '[{"name":"x","break":"a","mend":"b"}]',
    '[{"name":"x","break":"a","seconds":1}]',
    '[{"name":"x","break":"a","mend":"b","seconds":2147484}]',
  ]) {
    assert.throws(() => parsePlan(text, 'p'), { code: 'DRILL_PLAN_INVALID' });
  }
});

test('a command that fails is told with what it printed', async () => {
  const { signal } = new AbortController();
  const fault = plannedFault(
    { name: 'broker', break: 'echo no such broker >&2; exit 3', mend: 'true', seconds: 0 },
    signal,
  );
  await assert.rejects(fault.break(), (error: { code: string; message: string }) => {
    assert.equal(error.code, 'DRILL_COMMAND_FAILED');
    assert.match(error.message, /ended with 3: no such broker/);
    return true;
  });
  await fault.mend();
});

test('what a plan has broken is mended also after a stop', async () => {
  const signal = AbortSignal.abort();
  const fault = plannedFault({ name: 'ours', break: 'true', mend: 'exit 7', seconds: 0 }, signal);
  await assert.rejects(fault.break(), (error) => error === signal.reason);
  await assert.rejects(fault.mend(), { code: 'DRILL_COMMAND_FAILED' }, 'it was run');
});

test('a way that is cut ends connections and refuses new ones; open again, it leads to the server', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = await FaultProxy.open({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const echo = async (text: string): Promise<string> => {
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(text);
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])) as [
      Buffer | string,
    ];
    socket.destroy();
    return String(chunk);
  };
  assert.equal(await echo('there'), 'there');
  proxy.set({ kind: 'cut' });
  assert.equal(await echo('there'), 'closed');
  proxy.set({ kind: 'slow', bytesPerSecond: 1000 });
  assert.equal(await echo('slowly'), 'slowly');
  proxy.set({ kind: 'open' });
  assert.equal(await echo('again'), 'again');
  await proxy.close();
  await new Promise((resolve) => server.close(resolve));
});
