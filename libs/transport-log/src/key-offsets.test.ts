import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyOffsets } from './key-offsets.ts';

/** Against a `Map` of the runtime. */
test('it answers as a map of the same keys does', () => {
  const key = fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.uint8Array({ minLength: 0, maxLength: 40 }));
  const entries = fc.array(fc.tuple(key, fc.integer({ min: 0, max: 2 ** 52 })), { maxLength: 400 });
  fc.assert(
    fc.property(entries, key, (all, other) => {
      const offsets = new KeyOffsets();
      const want = new Map<string, number>();
      for (const [bytes, offset] of all) {
        offsets.set(Buffer.from(bytes), 0, bytes.length, offset);
        want.set(Buffer.from(bytes).toString('latin1'), offset);
      }
      assert.equal(offsets.size, want.size);
      for (const [text, offset] of want) {
        const source = Buffer.from(`xx${text}yy`, 'latin1');
        assert.equal(offsets.get(source, 2, source.length - 4), offset);
      }
      const found = offsets.get(Buffer.from(other), 0, other.length);
      assert.equal(found, want.get(Buffer.from(other).toString('latin1')) ?? -1);
    }),
  );
});

test('200,000 keys over many blocks and pages, one of them larger than a block', () => {
  const offsets = new KeyOffsets();
  const large = Buffer.alloc(3 * 2 ** 20, 'k');
  const put = (text: string, offset: number): void =>
    offsets.set(Buffer.from(text), 0, Buffer.byteLength(text), offset);
  for (let n = 0; n < 200_000; n++) {
    put(`key-${n}`, n);
    if (n === 100_000) offsets.set(large, 0, large.length, 77);
  }
  for (let n = 0; n < 200_000; n += 3) put(`key-${n}`, n + 1e10);
  assert.equal(offsets.size, 200_001);
  for (let n = 0; n < 200_000; n++) {
    const text = Buffer.from(`key-${n}`);
    assert.equal(offsets.get(text, 0, text.length), n % 3 === 0 ? n + 1e10 : n);
  }
  assert.equal(offsets.get(large, 0, large.length), 77);
  assert.equal(offsets.get(large, 0, large.length - 1), -1);
  assert.ok(offsets.bytes < 200_000 * 48 + large.length, `${offsets.bytes} bytes`);
});
