import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberText } from '@mysync/core';
import fc from 'fast-check';
import { column } from './schema.fixture.ts';
import { jsonValue, valueText } from './value.ts';

test('texts of values', () => {
  assert.equal(valueText(18446744073709551615n, column('a', 'bigint unsigned', 'uint')), '18446744073709551615');
  assert.equal(valueText(-128, column('a', 'tinyint', 'int')), '-128');
  assert.equal(valueText('0000-00-00', column('a', 'date', 'text')), '0000-00-00');
  assert.equal(valueText(new Uint8Array([0xde, 0xad]), column('a', 'blob', 'bytes')), '3q0=');
  assert.equal(valueText(new Uint8Array([0xde, 0xad]), column('a', 'blob', 'bytes'), 'hex'), 'dead');
  assert.equal(valueText(Math.fround(3.4028235e38), column('a', 'float', 'float')), '3.4028235e+38');
  assert.equal(valueText(Math.fround(16777216.0), column('a', 'float', 'float')), '16777216');
  assert.equal(valueText(-0, column('a', 'double', 'double')), '-0');
});

test('property: the text of a float reads back as the same number and is never longer than needed', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = numberText(value, true);
      assert.ok(Object.is(Math.fround(Number(text)), value), text);
      assert.ok(value === 0 || text.length <= String(value).length, text);
    }),
  );
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) =>
      Object.is(Number(numberText(value, false)), value),
    ),
  );
});

test('property: decimal numbers in JSON are valid and equal, ZEROFILL or not', () => {
  const decimal = column('a', 'decimal(10,2) unsigned zerofill', 'text');
  assert.equal(jsonValue('000042.10', decimal, { decimals: 'number' }), '42.10');
  assert.equal(jsonValue('-0.50', decimal, { decimals: 'number' }), '-0.50');
  assert.equal(jsonValue('0000', decimal, { decimals: 'number' }), '0');
  fc.assert(
    fc.property(fc.integer(), fc.nat(99), (whole, cents) => {
      const text = `${whole}.${String(cents).padStart(2, '0')}`;
      assert.equal(JSON.parse(jsonValue(text, decimal, { decimals: 'number' })), Number(text));
    }),
  );
});

test('property: the text of a whole number is that of the same bigint', () => {
  const edge = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 10 ** 8, 10 ** 10, 10 ** 15, Number.MAX_SAFE_INTEGER];
  for (const value of edge.flatMap((at) => [at - 1, at, -at])) {
    assert.equal(numberText(value, false), BigInt(value).toString());
  }
  // around the multiples where the two parts meet
  fc.assert(
    fc.property(fc.nat(90_071_992), fc.integer({ min: -3, max: 3 }), (high, step) => {
      const value = Math.abs(high * 100_000_000 + step);
      assert.equal(numberText(value, false), BigInt(value).toString());
    }),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      assert.equal(numberText(value, false), BigInt(value).toString());
    }),
  );
});

test('property: text in JSON is what JSON.stringify makes of it', () => {
  const text = column('a', 'varchar(100)', 'text');
  const special = [
    '"',
    '\\',
    '\n',
    '\u0000',
    '\u001f',
    '\u007f',
    '\u2028',
    '\ud83d',
    '\ude00',
    '\ud83d\ude00',
    'ü',
    '表',
  ];
  for (const each of special) assert.equal(jsonValue(`a${each}b`, text), JSON.stringify(`a${each}b`));
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('', ...special), (value, more) => {
      assert.equal(jsonValue(value + more, text), JSON.stringify(value + more));
    }),
  );
});
