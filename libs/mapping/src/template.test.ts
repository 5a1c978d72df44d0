import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ColumnValue, isMysyncError, type RowKey, type TableSchema } from '@mysync/core';
import fc from 'fast-check';
import { column, schema } from './schema.fixture.ts';
import { compileTemplate, parseTemplate } from './template.ts';

const one = schema([column('id', 'bigint unsigned', 'uint', 1), column('customer', 'int', 'int')]);
const two = schema([
  column('b', 'varchar(20)', 'text', 2),
  column('a', 'varchar(20)', 'text', 1),
  column('table', 'int', 'int'),
]);

const key = (of: TableSchema, ...values: ColumnValue[]): RowKey => {
  const columns = of.columns.filter((each) => each.keyPosition > 0).sort((x, y) => x.keyPosition - y.keyPosition);
  return { database: of.database, table: of.table, columns: columns.map((each) => each.name), values };
};
const text = (template: string, of: TableSchema, values: ColumnValue[], row: ColumnValue[] = []): string =>
  compileTemplate(template, of, { role: 'text' })(row, key(of, ...values));
const code = (expected: string, pattern?: RegExp) => (error: unknown) =>
  isMysyncError(error, expected) && (pattern === undefined || pattern.test(error.message));

test('a one-column key is the value itself, braces and names are filled in', () => {
  assert.equal(text('{table}:{key}', one, [18446744073709551615n]), 'orders:18446744073709551615');
  assert.equal(text('{database}/{table}/{id}', one, [7]), 'shop/orders/7');
  assert.equal(text('{{x}}-{key}', one, [7]), '{x}-7');
  assert.equal(text('{key}', two.columns[0] === undefined ? two : one, [7]), '7');
});

test('a single text value stays raw, whatever is in it', () => {
  const single = schema([column('a', 'varchar(20)', 'text', 1)]);
  assert.equal(text('{table}:{key}', single, ['a:b%{x}']), 'orders:a:b%{x}');
});

test('composite keys follow the key order and are escaped', () => {
  assert.equal(text('{table}:{key}', two, ['x:y', 'z']), 'orders:x%3Ay:z');
  assert.equal(text('{table}:{key}', two, ['x', 'y:z']), 'orders:x:y%3Az');
  assert.equal(text('k{a}|{b}', two, ['k', '100%']), 'kk|100%25');
  assert.equal(text('{table}:by_customer:{column:b}', two, ['x', 'b:_y'], ['b:_y', 'x']), 'orders:by_customer:b:_y');
  assert.equal(text('{a} by {b}', two, ['b y', 'by']), 'b%20y by by');
});

test('columns named like a placeholder are reached by {column:…} and backticks', () => {
  assert.equal(text('{column:table}', two, ['x', 'y'], ['y', 'x', 5]), '5');
  const odd = schema([column('a}b`', 'int', 'int', 1)]);
  assert.equal(text('t:{`a}b```}', odd, [3]), 't:3');
  assert.equal(text('t:{column:`a}b```}', odd, [3]), 't:3');
});

test('bytes are hex, NULL is no text', () => {
  const bytes = schema([column('a', 'binary(2)', 'bytes', 1), column('n', 'varchar(9)', 'text')]);
  assert.equal(text('{a}:{column:n}', bytes, [new Uint8Array([0, 255])], [new Uint8Array(), null]), '00ff:%null');
  assert.equal(text('{a}:{column:n}', bytes, [new Uint8Array([0, 255])], [new Uint8Array(), '%null']), '00ff:%25null');
});

test('names are escaped too: tables never share a key', () => {
  const of = (database: string, table: string): string =>
    compileTemplate('row_{database}_{table}:{id}', { ...one, database, table }, { role: 'key' })([], key(one, 1));
  assert.equal(of('a', 'b_c'), 'row_a_b%5Fc:1');
  assert.equal(of('a_b', 'c'), 'row_a%5Fb_c:1');
});

test('row-hash tables have a {key} only', () => {
  const none = schema([column('a', 'int', 'int')], { keyRule: 'row-hash' });
  const rowKey = { database: 'shop', table: 'orders', columns: [], values: [new Uint8Array([1, 2])] };
  assert.equal(compileTemplate('{table}:{key}', none, { role: 'key' })([1], rowKey), 'orders:0102');
  assert.throws(() => compileTemplate('{table}', none, { role: 'key' }), code('MAPPING_KEY_INCOMPLETE'));
});

test('a target key holds the whole row key and nothing that changes', () => {
  assert.throws(() => compileTemplate('{table}:{a}', two, { role: 'key' }), code('MAPPING_KEY_INCOMPLETE', /'b'/));
  assert.throws(
    () => compileTemplate('{key}:{column:customer}', one, { role: 'key' }),
    code('MAPPING_KEY_UNSTABLE', /'customer'.*shop\.orders/),
  );
  const partitioned = compileTemplate('{column:customer}:{key}', one, { role: 'key', partitionBy: ['customer'] });
  assert.equal(partitioned([7, 3], key(one, 7)), '3:7');
  assert.deepEqual(partitioned.columns, [1]);
  // NULL is a value; a column that the change does not hold is none, and its name would be another record's
  assert.equal(partitioned([7, null], key(one, 7)), '%null:7');
  assert.throws(() => partitioned([7, undefined], key(one, 7)), code('MAPPING_KEY_ABSENT', /'customer'/));
});

test('bad templates are refused with a suggestion', () => {
  for (const [template, pattern] of [
    ['', /empty/],
    ['{a', /not closed/],
    ['a}', /without/],
    ['{}', /without a name/],
    ['{a}{b}', /nothing stands between/],
    ['{colum:a}', /did you mean column/],
  ] as const) {
    assert.throws(() => parseTemplate(template), code('MAPPING_TEMPLATE_INVALID', pattern), template);
  }
  assert.throws(() => compileTemplate('{tabel}', one, { role: 'key' }), code('MAPPING_TEMPLATE_INVALID', /\{table\}/));
  assert.throws(
    () => compileTemplate('{customer}', one, { role: 'text' }),
    code('MAPPING_TEMPLATE_INVALID', /\{column:customer\}/),
  );
  assert.throws(
    () => compileTemplate('{column:custmer}', one, { role: 'text' }),
    code('MAPPING_COLUMN_UNKNOWN', /customer/),
  );
  assert.throws(() => compileTemplate('{a}%{b}', two, { role: 'key' }), code('MAPPING_TEMPLATE_INVALID', /%/));
});

test('property: two keys never share a target key', () => {
  const units = [':', '%', 'x', '3', 'A', '%3A', '%25', '{', '|', 'é'];
  const parts = fc.array(fc.constantFrom(...units), { maxLength: 5 });
  const templates = [
    '{table}:{key}',
    '{a}:{b}',
    'x{b}3A{a}',
    '{a}|x{b}x',
    'é{key}',
    '{b}é{a}',
    '{a}::{table}:{b}',
    '{a}:x3A:{b}',
    '{a}:|{b}',
  ];
  // The second key is the first one, cut at another place and with some characters written as an encoder would.
  const rewrites = fc.constantFrom(
    (s: string) => s,
    (s: string) => s.replaceAll(':', '%3A'),
    (s: string) => s.replaceAll('%3A', ':'),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...templates),
      parts,
      parts,
      fc.nat(12),
      rewrites,
      rewrites,
      (chosen, a, b, cut, f, g) => {
        const of = compileTemplate(chosen, two, { role: 'key' });
        const all = [...a, /\}([^{]+)\{[^{]*$/.exec(chosen)?.[1] ?? ':', ...b];
        const first = [a.join(''), b.join('')] as const;
        const second = [f(all.slice(0, cut).join('')), g(all.slice(cut + 1).join(''))] as const;
        const same = of([], key(two, ...first)) === of([], key(two, ...second));
        assert.equal(same, first[0] === second[0] && first[1] === second[1]);
      },
    ),
    { numRuns: 20_000 },
  );
});
