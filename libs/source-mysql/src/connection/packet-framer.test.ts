import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { PacketFramer } from './packet-framer.ts';

const GOES_ON = 0xff_ffff;

/** As the protocol's description has it: pieces of 2^24 − 1 bytes, and a last one that is shorter, empty where need be. */
function wire(payloads: readonly Buffer[], first = 0): Buffer {
  const parts: Buffer[] = [];
  let number = first;
  for (const payload of payloads) {
    for (let at = 0; ; at += GOES_ON) {
      const piece = payload.subarray(at, at + GOES_ON);
      parts.push(
        Buffer.from([piece.length & 0xff, (piece.length >> 8) & 0xff, piece.length >> 16, number & 0xff]),
        piece,
      );
      number += 1;
      if (piece.length < GOES_ON) break;
    }
  }
  return Buffer.concat(parts);
}

function framed(chunks: readonly Buffer[], maxBytes = 1 << 30): { packets: Buffer[]; inOrder: boolean } {
  const packets: Buffer[] = [];
  let allInOrder = true;
  const lent = new Set<Buffer>();
  const giveBack = (buffer: Buffer): void => {
    assert.ok(lent.delete(buffer), 'given back once');
    buffer.fill(0xdb);
  };
  const framer = new PacketFramer({ maxBytes, giveBack });
  for (const [i, chunk] of chunks.entries()) {
    // behind it lies what was read before
    const buffer = Buffer.concat([chunk, Buffer.from('old')]);
    const isLent = i % 4 > 0;
    if (isLent) lent.add(buffer);
    framer.push(buffer, chunk.length, isLent);
    // some of it at once, the rest when all has come
    for (let left = packets.length % 3; left > 0 && framer.next(); left -= 1) take();
  }
  while (!framer.isEmpty) {
    assert.ok(framer.next());
    take();
  }
  assert.ok(!framer.next());
  assert.equal(framer.bytes, 0);
  assert.equal(lent.size, 0);
  function take(): void {
    packets.push(Buffer.from(framer.buffer.subarray(framer.start, framer.end)));
    allInOrder &&= framer.inOrder;
  }
  return { packets, inOrder: allInOrder };
}

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((part) => Math.floor(part * bytes.length)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

describe('packet framer', () => {
  it('gives back what was sent, wherever it is split', () => {
    const payloads = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 });
    fc.assert(
      fc.property(payloads, cuts, (bodies, places) => {
        const sent = bodies.map((body) => Buffer.from(body));
        const { packets, inOrder } = framed(cut(wire(sent), places));
        assert.deepEqual(packets, sent);
        assert.ok(inOrder);
      }),
      { numRuns: 500 },
    );
  });

  it('joins packets of 16 MiB and more, also of exactly one and two whole pieces', () => {
    for (const length of [GOES_ON - 1, GOES_ON, GOES_ON + 1, 2 * GOES_ON, 40_000_000]) {
      const body = Buffer.alloc(length);
      for (let i = 0; i < length; i += 65_521) body[i] = i % 251;
      const tail = Buffer.from('tail');
      const bytes = wire([body, tail]);
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += 65_537) chunks.push(bytes.subarray(at, at + 65_537));
      const { packets, inOrder } = framed(chunks);
      assert.equal(packets.length, 2);
      assert.ok(packets[0]?.equals(body), `${length} bytes`);
      assert.deepEqual(packets[1], tail);
      assert.ok(inOrder);
    }
  });

  it('copies nothing that lies whole in what was received', () => {
    const bytes = wire([Buffer.from('one'), Buffer.from('two')]);
    const { packets } = framed([bytes]);
    for (const packet of packets) assert.equal(packet.buffer, bytes.buffer);
  });

  it('tells of a packet out of order', () => {
    assert.ok(!framed([wire([Buffer.from('a')]), wire([Buffer.from('b')], 2)]).inOrder);
    const many = Array.from({ length: 600 }, (_, i) => Buffer.from([i & 0xff]));
    assert.ok(framed([wire(many)]).inOrder, 'numbers go round at 256');
  });

  it('refuses a packet without end', () => {
    const endless = Buffer.concat([wire([Buffer.alloc(GOES_ON * 3)])]);
    assert.throws(() => framed([endless], GOES_ON * 2), RangeError);
  });
});
