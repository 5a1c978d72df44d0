import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { compileTablePatterns, firstMatchingRule } from './pattern.ts';

const matches = (patterns: string[], database: string, table: string): boolean =>
  compileTablePatterns(patterns)({ database, table });

test('names, * and ? match whole names, case-sensitively', () => {
  assert.equal(matches(['shop.orders'], 'shop', 'orders'), true);
  assert.equal(matches(['shop.orders'], 'shop', 'orders2'), false);
  assert.equal(matches(['shop.orders'], 'Shop', 'orders'), false);
  assert.equal(matches(['shop.order_?'], 'shop', 'order_😀'), true);
  assert.equal(matches(['shop.order_?'], 'shop', 'order_12'), false);
  assert.equal(matches(['*.*'], 'a.b', 'we`ird\nname'), true);
  assert.equal(matches(['shop*.o*s'], 'shop_1', 'orders'), true);
  assert.equal(matches(['sh+p.(a|b)$^-[x]'], 'sh+p', '(a|b)$^-[x]'), true);
  assert.equal(matches(['sh+p.a'], 'shhp', 'a'), false);
});

test('backticks quote dots, wildcards, blanks and backticks', () => {
  assert.equal(matches(['`my-db.v1`.`we-ird.na``me`'], 'my-db.v1', 'we-ird.na`me'), true);
  assert.equal(matches(['shop.`a*`'], 'shop', 'ab'), false);
  assert.equal(matches(['shop.`a*`'], 'shop', 'a*'), true);
  assert.equal(matches(['`my.db`*.`with space`'], 'my.db2', 'with space'), true);
  assert.equal(matches(['`!x`.t'], '!x', 't'), true);
});

test('the last match decides, and a list that begins with an exclusion includes the rest', () => {
  assert.equal(matches(['shop.*', '!shop.tmp_*', 'shop.tmp_kept'], 'shop', 'tmp_1'), false);
  assert.equal(matches(['shop.*', '!shop.tmp_*', 'shop.tmp_kept'], 'shop', 'tmp_kept'), true);
  assert.equal(matches(['!shop.secret'], 'shop', 'orders'), true);
  assert.equal(matches(['!shop.secret'], 'shop', 'secret'), false);
  assert.equal(matches([], 'shop', 'orders'), false);
});

test('an invalid pattern is refused with the place', () => {
  for (const [pattern, position] of [
    ['orders', 7],
    ['', 1],
    ['shop.', 6],
    ['.orders', 1],
    ['a.b.c', 4],
    ['a.`b', 5],
    ['a.b c', 4],
    ['a.!b', 3],
  ] as const) {
    assert.throws(
      () => compileTablePatterns(['x.y', pattern]),
      (error) =>
        isMysyncError(error, 'MAPPING_PATTERN_INVALID') &&
        error.where['position'] === position &&
        error.where['pattern'] === pattern,
      pattern,
    );
  }
});

test('the first rule that matches wins', () => {
  const rules = [
    { match: ['shop.*', '!shop.orders'], name: 'a' },
    { match: 'shop.orders', name: 'b' },
    { match: '*.*', name: 'c' },
  ];
  assert.equal(firstMatchingRule(rules, { database: 'shop', table: 'x' })?.name, 'a');
  assert.equal(firstMatchingRule(rules, { database: 'shop', table: 'orders' })?.name, 'b');
  assert.equal(firstMatchingRule(rules, { database: 'other', table: 'orders' })?.name, 'c');
  assert.equal(firstMatchingRule(rules.slice(0, 2), { database: 'other', table: 'orders' }), undefined);
});
