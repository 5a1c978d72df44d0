import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { FaultProxy } from './fault-proxy.ts';

/** Occupies the event loop, so that timers are late. */
function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('no byte overtakes another, also when a delay ends while timers are late', async () => {
  const received: Buffer[] = [];
  let wake: () => void = () => undefined;
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk);
      wake();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await using proxy = await FaultProxy.open(port);
  const client = connect(proxy.port, '127.0.0.1');
  try {
    await once(client, 'connect');
    client.setNoDelay(true);
    let sent = '';
    for (let round = 0; round < 200; round += 1) {
      if (round % 4 === 0) proxy.strike({ kind: 'delay', ms: 1 + (round % 7) });
      if (round % 4 === 2) proxy.mend();
      const text = `${String(round).padStart(4, '0')},`;
      sent += text;
      client.write(text);
      await new Promise((resolve) => setImmediate(resolve));
      busy(round % 5);
    }
    const all = (): string => Buffer.concat(received).toString();
    while (all().length < sent.length) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    assert.equal(all(), sent);
  } finally {
    client.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
