import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogAudit } from './log-audit.ts';

function message(epoch: number, generation: number, base: number, sequence: number): Uint8Array {
  const bytes = Buffer.alloc(39);
  bytes.writeUInt32LE(epoch, 3);
  bytes.writeUInt32LE(generation, 8);
  bytes.writeBigUInt64LE(BigInt(base), 13);
  bytes.writeBigUInt64LE(BigInt(sequence), 22);
  return bytes;
}

function complaints(...records: readonly (readonly [number, number, number, number])[]): string {
  const audit = new LogAudit();
  for (const [index, numbers] of records.entries()) audit.offer(String(index), message(...numbers));
  return audit.complaints.join('\n');
}

test('generations that go on, go back, and fences between them are right', () => {
  assert.equal(complaints([1, 0, 1, 1], [1, 0, 1, 2], [0, 0, 0, 0], [2, 0, 3, 3], [2, 1, 2, 2], [2, 1, 2, 3]), '');
});

test('a straggler, a gap, a generation that skips or does not begin with its base are not', () => {
  assert.match(complaints([1, 0, 1, 1], [2, 0, 2, 2], [1, 0, 1, 2]), /^2: .* lies behind epoch 2/);
  assert.match(complaints([1, 1, 1, 1], [1, 0, 1, 2]), /lies behind/);
  assert.match(complaints([1, 0, 1, 1], [1, 0, 1, 3]), /follows 1/);
  assert.match(complaints([1, 0, 1, 1], [2, 0, 3, 3]), /begins at 3, what came before ends at 1/);
  assert.match(complaints([1, 0, 1, 1], [2, 0, 2, 3]), /not its base 2/);
});
