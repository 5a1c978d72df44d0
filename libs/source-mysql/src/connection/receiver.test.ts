import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { until } from '@mysync/harness';
import { Receiver } from './receiver.ts';

const HOST = '127.0.0.1';

describe('receiver', () => {
  it('hands over what was sent, byte for byte, in memory that is used again', async () => {
    const peer = createServer().listen(0, HOST);
    await once(peer, 'listening');
    const accepted = once(peer, 'connection') as Promise<[Socket]>;
    const receiver = new Receiver({ host: HOST, port: (peer.address() as AddressInfo).port });
    const [sender] = await accepted;
    const { socket } = receiver;
    try {
      // at first it is a stream like any other
      let greeting = '';
      socket.on('data', (data: Buffer) => {
        greeting += String(data);
      });
      sender.write('hello');
      await until('the greeting', () => greeting === 'hello');
      socket.removeAllListeners('data');

      const sent = Buffer.from(Array.from({ length: 20_000_000 }, (_, i) => (i * 31 + (i >> 8)) & 0xff));
      const lent = new Set<Buffer>();
      let at = 0;
      let back: Buffer | undefined;
      receiver.receive((buffer, length, isLent) => {
        assert.ok(sent.subarray(at, at + length).equals(buffer.subarray(0, length)), `from byte ${at} on`);
        at += length;
        if (!isLent) {
          assert.ok(length < 128 * 1024 && buffer.length === length, 'short reads are copies');
          return;
        }
        lent.add(buffer);
        // one is held back by turns
        back?.fill(0xdb);
        if (back !== undefined) receiver.giveBack(back);
        back = buffer;
        if (lent.size % 2 === 0) {
          socket.pause();
          setImmediate(() => socket.resume());
        }
      });
      sender.write(sent);
      await until('all of it', () => at === sent.length);
      assert.ok(lent.size > 0 && lent.size <= 3, `${lent.size} buffers`);
      sender.end();
      await once(socket, 'end');
    } finally {
      socket.destroy();
      sender.destroy();
      peer.close();
    }
  });
});
