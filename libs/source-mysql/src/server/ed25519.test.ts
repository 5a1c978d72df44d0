import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, randomBytes, sign, verify } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { signWithPassword } from './ed25519.ts';

/** PKCS #8 around a seed. */
const HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

describe('signatures with a password', () => {
  it('are those of the platform where the password is as long as a seed', () => {
    const ascii = fc.array(fc.integer({ min: 1, max: 127 }), { minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(ascii, fc.uint8Array({ maxLength: 64 }), (codes, nonce) => {
        const seed = Buffer.from(codes);
        const key = createPrivateKey({ key: Buffer.concat([HEAD, seed]), format: 'der', type: 'pkcs8' });
        const message = Buffer.from(nonce);
        const ours = signWithPassword(seed.toString('latin1'), message);
        assert.deepEqual(ours, sign(null, message, key));
        assert.ok(verify(null, message, createPublicKey(key), ours));
      }),
      { numRuns: 20 },
    );
    assert.equal(signWithPassword('', randomBytes(32)).length, 64);
  });
});
