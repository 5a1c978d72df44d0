import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { encodeCommand } from './encoded-command.ts';

/** What ioredis itself would send. */
function reference(parts: readonly (string | Buffer)[]): Buffer {
  const [name, ...args] = parts;
  const written = new Command(String(name), args).toWritable({});
  return Buffer.isBuffer(written) ? written : Buffer.from(written);
}

test('property: the bytes are those that ioredis would send', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.string({ minLength: 20, maxLength: 50 }),
    fc.constantFrom('', '表', 'ü'.repeat(31), 'ü'.repeat(33), 'a'.repeat(32), 'a'.repeat(33), 'x'.repeat(100_000)),
  );
  const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array));
  fc.assert(
    fc.property(fc.array(fc.oneof(text, bytes), { maxLength: 30 }), (args) => {
      assert.deepEqual(encodeCommand(['EVALSHA', ...args]), reference(['EVALSHA', ...args]));
    }),
  );
});

test('lengths of every number of digits, in characters that take one byte and in characters that take three', () => {
  for (const length of [0, 1, 9, 10, 31, 32, 33, 99, 100, 999, 1_000, 9_999, 10_000, 1_000_000]) {
    for (const char of ['a', '表']) {
      const parts = ['SET', 'k', char.repeat(length), 'EX', '1'];
      assert.deepEqual(encodeCommand(parts), reference(parts));
    }
  }
});
