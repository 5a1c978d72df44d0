/** Values, digits and UTF-8 written from bytes, against what the language says of the same numbers and texts. */
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ByteWriter } from './byte-writer.ts';
import { digitCount, putDigits, writeUnsigned } from './digits.ts';
import { isWellFormedUtf8 } from './utf8.ts';
import { beginText, endText, writeTextHead } from './value-writer.ts';

const NUMBERS = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.tuple(fc.nat({ max: 19 }), fc.integer({ min: -2, max: 2 })).map(([digits, by]) => {
    const value = 10n ** BigInt(digits) + BigInt(by);
    return value < 0n ? 0n : value;
  }),
  fc.tuple(fc.nat({ max: 63 }), fc.integer({ min: -2, max: 2 })).map(([bits, by]) => {
    const value = 2n ** BigInt(bits) + BigInt(by);
    return value < 0n ? 0n : value;
  }),
  fc.constant(2n ** 64n - 1n),
);

describe('digits', () => {
  it('are those of the number', () => {
    const writer = new ByteWriter(64);
    fc.assert(
      fc.property(NUMBERS, (value) => {
        writer.begin();
        writeUnsigned(writer, Number(value & 0xffff_ffffn), Number(value >> 32n));
        assert.equal(writer.take().toString('latin1'), String(value));
      }),
      { numRuns: 3000 },
    );
  });

  it('are counted, and padded', () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat({ max: 999_999_999 }), fc.nat({ max: 2000 })), (value) => {
        assert.equal(digitCount(value), String(value).length);
        const bytes = Buffer.alloc(9);
        putDigits(bytes, 0, value, 9);
        assert.equal(bytes.toString('latin1'), String(value).padStart(9, '0'));
      }),
    );
  });
});

describe('UTF-8', () => {
  it('is well-formed when the runtime says so', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }).map((text) => Buffer.from(text, 'utf8')),
        fc.uint8Array({ maxLength: 4, min: 0x80 }),
        fc
          .constantFrom('c080', 'c1bf', 'e09fbf', 'eda080', 'edbfbf', 'f08fbfbf', 'f4908080', 'f5808080', 'e282', 'ff')
          .map((hex) => Buffer.from(hex, 'hex')),
      ),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(pieces, (parts) => {
        const bytes = Buffer.concat([Buffer.of(0xff), ...parts, Buffer.of(0x80)]);
        assert.equal(isWellFormedUtf8(bytes, 1, bytes.length - 1), isUtf8(bytes.subarray(1, -1)));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a text whose length is known at its end', () => {
  it('is the same as one whose length was known, whatever was guessed', () => {
    const lengths = fc.constantFrom(0, 1, 123, 124, 125, 126, 127, 128, 16_376, 16_380, 16_381, 16_384, 70_000);
    fc.assert(
      fc.property(lengths, lengths, fc.nat({ max: 300 }), (length, guess, before) => {
        const content = Buffer.alloc(length, 'x');
        const writer = new ByteWriter(1024);
        writer.raw(Buffer.alloc(before, '-'));
        const begun = beginText(writer, guess);
        writer.raw(content);
        endText(writer, begun, guess);
        writer.byte(0x2e);
        const other = new ByteWriter(200_000);
        other.raw(Buffer.alloc(before, '-'));
        writeTextHead(other, length);
        other.raw(content);
        other.byte(0x2e);
        assert.ok(writer.take().equals(other.take()));
      }),
      { numRuns: 300 },
    );
  });
});
