import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { compileJsonWriter, compileProjection } from './projection.ts';
import { column, schema } from './schema.fixture.ts';

const wide = schema([
  column('id', 'bigint', 'int', 1),
  column('name', 'varchar(20)', 'text'),
  column('price', 'decimal(20,2)', 'text'),
  column('doc', 'json', 'text'),
  column('data', 'blob', 'bytes'),
  column('f', 'float', 'float'),
]);

test('fields, exclude, rename and mask', () => {
  const projection = compileProjection(
    { fields: ['name', 'id', 'price'], exclude: ['price'], rename: { id: 'orderId' }, mask: { name: 'hash' } },
    wide,
  );
  assert.deepEqual(
    projection.map((each) => [each.name, each.index, each.mask]),
    [
      ['name', 1, 'hash'],
      ['orderId', 0, 'none'],
    ],
  );
  // printf abc | sha256sum
  assert.equal(
    compileJsonWriter(projection)([5, 'abc', '1.00', null, null, 0]),
    '{"name":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","orderId":5}',
  );
});

test('unknown columns and taken names are refused', () => {
  for (const rule of [
    { fields: ['nam'] },
    { exclude: ['nam'] },
    { rename: { nam: 'x' } },
    { mask: { nam: 'null' as const } },
  ]) {
    assert.throws(
      () => compileProjection(rule, wide),
      (error) => isMysyncError(error, 'MAPPING_COLUMN_UNKNOWN') && /did you mean name/.test(error.message),
    );
  }
  assert.throws(
    () => compileProjection({ rename: { name: 'price' } }, wide),
    (error) => isMysyncError(error, 'MAPPING_NAME_TAKEN') && /'name' and 'price'/.test(error.message),
  );
  assert.equal(compileProjection({ rename: { name: 'price', price: 'name' } }, wide).length, 6);
});

test('JSON keeps every digit', () => {
  const row = [
    9007199254740993n,
    'a"\n😀',
    '12345678901234567890.10',
    '{"a": 1.0}',
    new Uint8Array([0, 255]),
    Math.fround(0.1),
  ];
  assert.equal(
    compileJsonWriter(compileProjection({}, wide))(row),
    '{"id":9007199254740993,"name":"a\\"\\n😀","price":"12345678901234567890.10","doc":{"a": 1.0},"data":"AP8=","f":0.1}',
  );
  assert.equal(
    compileJsonWriter(compileProjection({ fields: ['price', 'data'] }, wide), { decimals: 'number', bytes: 'hex' })(
      row,
    ),
    '{"price":12345678901234567890.10,"data":"00ff"}',
  );
});

test('NULL is null, an absent column is absent, JSON that is none is text', () => {
  const writer = compileJsonWriter(compileProjection({ mask: { name: 'redact', price: 'null' } }, wide));
  assert.equal(
    writer([1, null, '5', '{broken', undefined, null]),
    '{"id":1,"name":null,"price":null,"doc":"{broken","f":null}',
  );
  assert.equal(writer([undefined, 'x', undefined, undefined, undefined, undefined]), '{"name":"***"}');
  assert.equal(writer([]), '{}');
});
