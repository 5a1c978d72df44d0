import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { documentId, fieldName, indexName } from './names.ts';

const name = (database: string, table: string, template = '{database}-{table}'): string =>
  indexName(template, { database, table });

test('index names are lower-cased, and what Elasticsearch forbids is percent-encoded', () => {
  assert.equal(name('Shop', 'Orders'), 'shop-orders');
  assert.equal(name('my-db.v1', 'we-ird.na`me'), 'my-db.v1-we-ird.na`me');
  assert.equal(name('shop', 'with space'), 'shop-with%20space');
  assert.equal(
    name('shop', 'a/b\\c*d?e"f<g>h|i,j#k:l%m\n'),
    'shop-a%2fb%5cc%2ad%3fe%22f%3cg%3eh%7ci%2cj%23k%3al%25m%0a',
  );
  assert.equal(name('shop', '表'), 'shop-表');
  assert.equal(name('_x', 'y'), '%5fx-y');
  assert.equal(name('shop', '-y', '{table}'), '%2dy');
  assert.equal(name('shop', '..', '{table}'), '%2e.');
  assert.equal(name('shop', 'orders_1', 'orders'), 'orders');
});

test('index names that cannot be made are refused', () => {
  assert.throws(
    () => name('d'.repeat(64), '表'.repeat(64)),
    (error) => isMysyncError(error, 'ES_INDEX_NAME_INVALID'),
  );
  assert.throws(
    () => name('a', 'b', 'x y'),
    (error) => isMysyncError(error, 'ES_INDEX_NAME_INVALID'),
  );
  assert.throws(
    () => name('a', 'b', 'x-{key}'),
    (error) => isMysyncError(error, 'MAPPING_TEMPLATE_INVALID'),
  );
});

test('field names keep no dot and no metadata name, and stay apart', () => {
  const names = ['a.b', 'a%2Eb', 'a%252Eb', 'a', '_id', '%5Fid', '_source', 'id', ' ', 'q"x', '表', '_custom'];
  const fields = names.map(fieldName);
  assert.deepEqual(fields.slice(0, 6), ['a%2Eb', 'a%252Eb', 'a%25252Eb', 'a', '%5Fid', '%255Fid']);
  assert.equal(fieldName('_custom'), '_custom');
  assert.equal(new Set(fields).size, names.length);
  for (const field of fields) assert.ok(!field.includes('.') && field.trim() !== '');
});

test('ids: empty, with a tilde, too long', () => {
  assert.equal(documentId('42', 'hash'), '42');
  assert.equal(documentId('', 'hash'), '~');
  assert.equal(documentId('~', 'hash'), '~~');
  assert.equal(documentId('x'.repeat(512), 'hash'), 'x'.repeat(512));
  const long = 'x'.repeat(513);
  assert.equal(documentId(long, 'hash'), `~${createHash('sha256').update(long).digest('hex')}`);
  assert.equal(documentId(long, 'refuse'), undefined);
  assert.equal(documentId('表'.repeat(170), 'refuse'), '表'.repeat(170));
  assert.equal(documentId('表'.repeat(171), 'refuse'), undefined);
});
