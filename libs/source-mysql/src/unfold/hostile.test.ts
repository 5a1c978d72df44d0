/** Damaged bytes: an error, never a hang, a crash or memory without bound. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { EVENT } from '../binlog/column-types.ts';
import type { LogEvent } from '../binlog/log-event.ts';
import { binaryJsonText } from '../json/binary-json.ts';
import { applyJsonDiffs } from '../json/json-diff.ts';
import { unfoldPayload } from './transaction-payload.ts';

const PLACE = { file: 'binlog.000001', offset: 4 };
/** A zstd frame of one raw block: "hello". */
const HELLO = Buffer.from(`28b52ffd2005290000${Buffer.from('hello').toString('hex')}`, 'hex');

function payload(body: Buffer): LogEvent {
  return {
    type: EVENT.TRANSACTION_PAYLOAD,
    seconds: 1,
    flags: 0,
    length: body.length + 19,
    nextOffset: 0,
    buffer: body,
    start: 0,
    end: body.length,
    control: { kind: 'none' },
    place: undefined,
  };
}

function framed(compression: number, size: number, data: Buffer): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = 254;
  bytes.writeBigUInt64LE(BigInt(size), 1);
  const packed = compression === 255 ? Buffer.from([252, 255, 0]) : Buffer.from([compression]);
  return Buffer.concat([Buffer.from([2, packed.length]), packed, Buffer.from([3, 9]), bytes, Buffer.from([0]), data]);
}

/** An event with this body, as it stands inside of a payload. */
function inner(type: number, body: Buffer): Buffer {
  const event = Buffer.alloc(19 + body.length);
  event[4] = type;
  event.writeUInt32LE(event.length, 9);
  body.copy(event, 19);
  return event;
}

function unfold(body: Buffer): number {
  let count = 0;
  for (const _ of unfoldPayload(payload(body), PLACE)) count += 1;
  return count;
}

describe('damaged payloads', () => {
  it('are told from whole ones', () => {
    const events = Buffer.concat([inner(EVENT.XID, Buffer.alloc(8)), inner(EVENT.INTVAR, Buffer.alloc(9))]);
    assert.equal(unfold(framed(255, events.length, events)), 2);
    for (let length = 0; length < events.length; length += 1) {
      if (length === 27) continue; // the end of the first event
      assert.throws(() => unfold(framed(255, events.length, events.subarray(0, length))));
    }
    assert.throws(() => unfold(framed(7, events.length, events)), /unknown compression/);
    assert.throws(() => unfold(framed(0, 5, HELLO)), RangeError, 'five bytes are no event');
    assert.throws(() => unfold(framed(0, 4, HELLO)));
    assert.throws(() => unfold(framed(0, 2 ** 40, HELLO)), RangeError, 'less than it says, streamed');
  });

  it('end with an error whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.integer({ min: 0, max: 200 }), (bytes, size) => {
        for (const body of [
          Buffer.from(bytes),
          framed(0, size, Buffer.from(bytes)),
          framed(255, size, Buffer.from(bytes)),
        ]) {
          try {
            unfold(body);
          } catch (error) {
            assert.ok(error instanceof Error);
          }
        }
      }),
      { numRuns: 5000 },
    );
  });
});

describe('zstd bombs', () => {
  /** Flags, window descriptor, blocks. */
  const frame = (flags: number, window: readonly number[], ...blocks: readonly number[][]): Buffer =>
    Buffer.concat([Buffer.from('28b52ffd', 'hex'), Buffer.from([flags, ...window, ...blocks.flat()])]);
  /** One byte repeated `count` times; three bytes of header. */
  const repeated = (byte: number, count: number, last: boolean): number[] => {
    const header = (count << 3) | (1 << 1) | (last ? 1 : 0);
    return [header & 0xff, (header >> 8) & 0xff, header >> 16, byte];
  };
  /** The work may end as it likes, as long as it takes little. */
  function refusedAtNoCost(body: Buffer, what: RegExp): void {
    const before = process.memoryUsage().arrayBuffers;
    assert.throws(() => unfold(body), what);
    const rise = process.memoryUsage().arrayBuffers - before;
    assert.ok(rise < 40 << 20, `${rise} bytes were taken`);
  }

  it('are refused before memory is taken for them', () => {
    const tiny = repeated(0, 5, true);
    // windows of 2 GiB, of 256 MiB, in a second frame, by the size of the content, behind a skippable frame
    refusedAtNoCost(framed(0, 20 << 20, frame(0, [21 << 3], tiny)), /window of/);
    refusedAtNoCost(framed(0, 2 ** 40, frame(0, [18 << 3], tiny)), /window of/);
    refusedAtNoCost(framed(0, 20 << 20, Buffer.concat([HELLO, frame(0, [21 << 3], tiny)])), /window of/);
    refusedAtNoCost(framed(0, 20 << 20, frame(0xa0, [0, 0, 0, 0x70], tiny)), /window of/);
    const skippable = Buffer.from('502a4d1802000000ffff', 'hex');
    refusedAtNoCost(framed(0, 20 << 20, Buffer.concat([skippable, frame(0, [21 << 3], tiny)])), /window of/);
    assert.throws(() => unfold(framed(0, 5, Buffer.concat([HELLO, Buffer.from('00')]))), RangeError);
  });

  it('unfold no further than the payload says, or an event can be long', () => {
    const blocks = (byte: number): number[][] =>
      Array.from({ length: 2000 }, (_, i) => repeated(byte, 0x1ffff, i === 1999));
    // 256 MiB of which the payload speaks of 17
    refusedAtNoCost(framed(0, 17 << 20, frame(0, [7 << 3], ...blocks(0x01))), /holds more than/);
    refusedAtNoCost(framed(0, 1 << 20, frame(0, [7 << 3], ...blocks(0x01))), /./);
    // an event of 4 GiB
    refusedAtNoCost(framed(0, 2 ** 50, frame(0, [7 << 3], ...blocks(0xff))), /an event of 4294967295 bytes/);
    refusedAtNoCost(framed(255, 2 ** 50, Buffer.alloc(100, 0xff)), /an event of 4294967295 bytes/);
  });
});

describe('damaged changes of JSON', () => {
  // {"a": 1, "b": [1, 2]} in MySQL's form
  const document = Buffer.from('0002001e00120001001300010005010002140061620200' + '0a00050100050200', 'hex');
  const replace = Buffer.concat([Buffer.from([0, 3]), Buffer.from('$.a'), Buffer.from([3, 5, 9, 0])]);

  it('are told from whole ones', () => {
    const changed = applyJsonDiffs(document, replace);
    assert.equal(binaryJsonText(document, 0, document.length), '{"a": 1, "b": [1, 2]}');
    assert.equal(binaryJsonText(changed, 0, changed.length), '{"a": 9, "b": [1, 2]}');
    for (let length = 1; length < replace.length; length += 1) {
      assert.throws(() => applyJsonDiffs(document, replace.subarray(0, length)), RangeError);
    }
    for (const path of ['$.c', '$.a.b', '$.b[2]', '$[0]', 'a', '$.', '$.b[x]', '$."a']) {
      const diff = Buffer.concat([Buffer.from([0, path.length]), Buffer.from(path), Buffer.from([3, 5, 9, 0])]);
      assert.throws(() => applyJsonDiffs(document, diff), RangeError, path);
    }
  });

  it('end with an error or a document whatever they are', () => {
    const damage = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(damage, damage, fc.uint8Array({ maxLength: 30 }), (inDocument, inDiff, bytes) => {
        const bad = (from: Buffer, places: [number, number][]): Buffer => {
          const copy = Buffer.from(from);
          for (const [at, value] of places) copy[at % copy.length] = value;
          return copy;
        };
        for (const diff of [bad(replace, inDiff), Buffer.from(bytes)]) {
          try {
            applyJsonDiffs(bad(document, inDocument), diff);
          } catch (error) {
            assert.ok(error instanceof RangeError, String(error));
          }
        }
      }),
      { numRuns: 20_000 },
    );
  });
});
