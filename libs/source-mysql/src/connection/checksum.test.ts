import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import { checksum } from './checksum.ts';

it('the checksum is the library’s for every length, wherever the bytes stand', () => {
  const bytes = Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 2_654_435_761) >>> 24));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; start < 8; start += 1) {
    for (let end = start; end <= bytes.length; end += 1) {
      assert.equal(checksum(bytes, view, start, end), crc32(bytes.subarray(start, end)));
    }
  }
});
