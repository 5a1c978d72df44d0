import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { isMysyncError } from '@mysync/core';
import { EVENT } from '../binlog/column-types.ts';
import { EventFrames } from './event-frames.ts';

function event(type: number, body: Buffer, options: { checksum: boolean; flags?: number; seconds?: number }): Buffer {
  const bytes = Buffer.alloc(19 + body.length + (options.checksum ? 4 : 0));
  bytes.writeUInt32LE(options.seconds ?? 1_700_000_000, 0);
  bytes[4] = type;
  bytes.writeUInt32LE(bytes.length, 9);
  bytes.writeUInt32LE(1000, 13);
  bytes.writeUInt16LE(options.flags ?? 0, 17);
  body.copy(bytes, 19);
  if (options.checksum) bytes.writeUInt32LE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}

function format(algorithm: 0 | 1): Buffer {
  const body = Buffer.alloc(2 + 50 + 4 + 1 + 40 + 1);
  body.writeUInt16LE(4, 0);
  body[56] = 19;
  body[body.length - 1] = algorithm;
  return event(EVENT.FORMAT_DESCRIPTION, body, { checksum: true });
}

function read(frames: EventFrames, bytes: Buffer): { body: string; type: number } {
  const { buffer, start, end, type } = frames.read(bytes, 0, bytes.length);
  return { body: buffer.toString('latin1', start, end), type };
}

describe('event frames', () => {
  const body = Buffer.from('12345678901234567890');

  it('finds every damaged bit of an event with a checksum', () => {
    const frames = new EventFrames();
    read(frames, format(1));
    const whole = event(EVENT.TABLE_MAP, body, { checksum: true });
    assert.equal(read(frames, whole).body, body.toString());
    for (let bit = 0; bit < whole.length * 8; bit += 1) {
      const bad = Buffer.from(whole);
      bad[bit >> 3] = (bad[bit >> 3] as number) ^ (1 << (bit & 7));
      const fresh = new EventFrames();
      read(fresh, format(1));
      assert.throws(
        () => read(fresh, bad),
        (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
        `bit ${bit}`,
      );
    }
  });

  it('follows the checksum of each file, and of what the server makes up', () => {
    const frames = new EventFrames();
    for (const algorithm of [1, 0, 1] as const) {
      read(frames, format(algorithm));
      const checksum = algorithm === 1;
      assert.equal(read(frames, event(EVENT.XID, body, { checksum })).body, body.toString());
      for (const either of [true, false]) {
        const name = Buffer.concat([Buffer.alloc(8), Buffer.from('binlog.000002')]);
        const rotate = event(EVENT.ROTATE, name, { checksum: either, flags: 0x20, seconds: 0 });
        const { control } = readControl(frames, rotate);
        assert.deepEqual(control, { kind: 'rotate', file: 'binlog.000002', offset: 0 });
      }
    }
  });

  it('takes no wrong sum of what a server makes up for the end of its name', () => {
    for (const algorithm of [0, 1] as const) {
      const name = Buffer.concat([Buffer.alloc(8), Buffer.from('binlog.000002')]);
      const whole = event(EVENT.ROTATE, name, { checksum: true, flags: 0x20, seconds: 0 });
      for (let bit = 19 * 8; bit < whole.length * 8; bit += 1) {
        const frames = new EventFrames();
        read(frames, format(algorithm));
        const bad = Buffer.from(whole);
        bad[bit >> 3] = (bad[bit >> 3] as number) ^ (1 << (bit & 7));
        assert.throws(
          () => read(frames, bad),
          (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
          `bit ${bit}`,
        );
      }
    }
  });

  it('refuses an event in front of the format', () => {
    const early = event(EVENT.TABLE_MAP, body, { checksum: true });
    assert.throws(
      () => read(new EventFrames(), early),
      (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
    );
  });

  it('refuses lengths that do not fit', () => {
    const frames = new EventFrames();
    read(frames, format(0));
    for (const length of [0, 18, 19, 38, 40, 0xffff_ffff]) {
      const bad = event(EVENT.XID, body, { checksum: false });
      bad.writeUInt32LE(length, 9);
      assert.throws(
        () => read(frames, bad),
        (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
      );
    }
    for (let length = 0; length < 39; length += 1) {
      const cut = event(EVENT.XID, body, { checksum: false }).subarray(0, length);
      assert.throws(
        () => read(frames, cut),
        (error) => isMysyncError(error, 'SOURCE_EVENT_UNREADABLE'),
      );
    }
  });
});

function readControl(frames: EventFrames, bytes: Buffer) {
  return frames.read(bytes, 0, bytes.length);
}
