import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { binaryJsonText } from './binary-json.ts';

describe('a JSON document that uses its bytes twice', () => {
  it('is refused before it prints as more than it is', () => {
    // each of 90 arrays holds the next one twice: 2^90 values in 900 bytes
    const levels = Array.from({ length: 90 }, () => Buffer.from('02000a00020a00020a00', 'hex'));
    const document = Buffer.concat([Buffer.of(2), ...levels, Buffer.from('00000400', 'hex')]);
    assert.throws(() => binaryJsonText(document, 0, document.length), /twice/);
    const shared = Buffer.concat([
      Buffer.of(2),
      Buffer.from('02000f000c0a000c0a00', 'hex'),
      Buffer.from('0861626364656667', 'hex'),
      Buffer.of(0x68),
    ]);
    assert.throws(() => binaryJsonText(shared, 0, shared.length), /twice/);
  });
});
