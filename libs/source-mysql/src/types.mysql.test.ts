/**
 * Values of every type: the stream, the snapshot and the server's own SELECT say the same, on both servers. Cases A1 to A5, A8 to A14,
 * A17, A20, A23, B13.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import type { ColumnValue } from '@mysync/core';
import {
  type DecodedRow,
  FLAVORS,
  type Flavor,
  readItems,
  readSnapshot,
  replay,
  rowsOf,
  TestDatabase,
} from './testing.fixture.ts';
import { comparedRows } from './transcribe/held-to-reference.fixture.ts';

interface TypeCase {
  /** Of cases of comparable systems. */
  readonly case?: string;
  /** Column definition. */
  readonly type: string;
  /** SQL expressions. */
  readonly values: readonly string[];
  /** How the schema spells it; the definition when omitted. */
  readonly spelled?: string;
  readonly only?: Flavor;
  /** What the server is asked, with `c` for the column; text of `c` when omitted. */
  readonly ask?: string;
  /** Our value as the server's answer has it. */
  readonly show?: (value: Exclude<ColumnValue, null | undefined>) => string;
}

const hex = (value: unknown): string =>
  Buffer.from(value as Uint8Array)
    .toString('hex')
    .toUpperCase();
const binary = { ask: 'HEX(c)', show: hex };
const number = { ask: 'c + 0e0', show: (value: unknown): string => String(Number(value)) };
const unsignedMax = ['255', '65535', '16777215', '4294967295', '18446744073709551615'];

/** All that information_schema.CHARACTER_SETS has with MAXLEN 1 on both servers, but for ascii and binary. */
const SINGLE_BYTE_CHARSETS = [
  ...[
    'armscii8',
    'cp1250',
    'cp1251',
    'cp1256',
    'cp1257',
    'cp850',
    'cp852',
    'cp866',
    'dec8',
    'geostd8',
    'greek',
    'hebrew',
  ],
  ...[
    'hp8',
    'keybcs2',
    'koi8r',
    'koi8u',
    'latin1',
    'latin2',
    'latin5',
    'latin7',
    'macce',
    'macroman',
    'swe7',
    'tis620',
  ],
];

const CASES: readonly TypeCase[] = [
  ...['tinyint', 'smallint', 'mediumint', 'int', 'bigint'].flatMap((type, i) => [
    {
      type,
      values: [
        `${-(2n ** BigInt([7, 15, 23, 31, 63][i] ?? 0))}`,
        `${2n ** BigInt([7, 15, 23, 31, 63][i] ?? 0) - 1n}`,
        '0',
        '-1',
      ],
    },
    { type: `${type} unsigned`, values: ['0', '1', unsignedMax[i] ?? ''] },
  ]),
  {
    type: 'bigint',
    values: ['9007199254740991', '9007199254740992', '9007199254740993', '-9007199254740993', '-9007199254740991'],
  },
  { type: 'bigint unsigned', values: ['9007199254740991', '9007199254740993', '9223372036854775808'] },
  { case: 'A3', type: 'int(6) zerofill', spelled: 'int unsigned', values: ['42', '0'], ask: 'CAST(c AS UNSIGNED)' },
  { case: 'A5', type: 'tinyint(1)', spelled: 'tinyint', values: ['0', '1', '9', '-128'] },
  {
    case: 'A4',
    type: 'decimal(65,30)',
    values: ['12345678901234567890.123456789012345678901234567890', '-0.000000000000000000000000000001', '0'],
  },
  { type: 'decimal(65,0)', values: ['1'.repeat(65), `-${'9'.repeat(65)}`, '0'] },
  { type: 'decimal(10,2)', values: ['0.05', '-0.05', '12345678.90', '-99999999.99', '0'] },
  { type: 'decimal(9,9)', values: ['0.123456789', '-0.000000001'] },
  { type: 'decimal(18,9) unsigned', values: ['123456789.123456789', '1', '100000000'] },
  {
    type: 'decimal(10,2) zerofill',
    spelled: 'decimal(10,2) unsigned',
    values: ['1.5'],
    ask: 'CAST(c AS DECIMAL(10,2))',
  },
  { type: 'float', values: ['0.1', '-3.4028234e38', '1.17549435e-38', '16777216', '123456.789', '0'], ...number },
  { type: 'float unsigned', values: ['1.1'], ...number },
  { type: 'float(7,4)', spelled: 'float', values: ['1.1', '999.9999'], show: (value) => Number(value).toFixed(4) },
  {
    type: 'double',
    values: ['0.1', '-2.2250738585072014e-308', '1.7976931348623157e308', '-0.12345678901234567', '1e15', '1e16', '0'],
    show: (value) => String(value),
    ask: 'c',
  },
  {
    type: 'double(10,2)',
    spelled: 'double',
    values: ['1.1', '-12345678.91'],
    show: (value) => Number(value).toFixed(2),
  },
  // more digits than are shown: the server subtracts after it has rounded
  { type: 'double(10,2)', spelled: 'double', values: ['1.17 - 1.2e0', '0.1 + 0.2e0'], ...number },
  {
    type: 'double',
    values: ['-0e0', '0.1e0 + 0.2e0'],
    ask: 'c * 1e0',
    show: (value) => (Object.is(value, -0) ? '-0' : String(value)),
  },
  { type: 'bit(1)', values: ["b'0'", "b'1'"], ask: 'c + 0' },
  { type: 'bit(10)', values: ["b'1000000001'", "b'1'"], ask: 'c + 0' },
  { type: 'bit(64)', values: ['18446744073709551615', '1', '9007199254740993'], ask: 'c + 0' },
  { case: 'A12', type: 'year', values: ["'0000'", '1901', '2155', '2024'], ask: 'c + 0' },
  {
    case: 'A8',
    type: 'date',
    values: ["'2024-02-29'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'", "'2024-02-00'", "'1000-01-01'"],
  },
  { type: 'time', values: ["'838:59:59'", "'-838:59:59'", "'00:00:00'", "'25:00:00'", "'-00:00:01'"] },
  { type: 'time(1)', values: ["'-00:00:00.1'", "'-01:02:03.9'", "'100:00:00.5'"] },
  { type: 'time(3)', values: ["'-00:00:00.001'", "'-838:59:58.999'", "'12:34:56.789'"] },
  {
    case: 'A10',
    type: 'time(6)',
    values: ["'-838:59:59.000000'", "'-00:00:00.000001'", "'838:59:58.999999'", "'-01:00:00.500000'", "'25:00:00'"],
  },
  {
    type: 'datetime',
    values: ["'2024-03-10 02:30:00'", "'2024-11-03 01:30:00'", "'0000-00-00 00:00:00'", "'2024-02-00 00:00:00'"],
  },
  { type: 'datetime(1)', values: ["'2024-03-10 02:30:00.9'"] },
  { type: 'datetime(3)', values: ["'2024-03-10 02:30:00.123'"] },
  {
    case: 'A11',
    type: 'datetime(6)',
    values: ["'9999-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999998'", "'1000-01-01 00:00:00.000001'"],
  },
  {
    type: 'timestamp NULL',
    spelled: 'timestamp',
    values: ["'2024-03-10 02:30:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", '0'],
  },
  {
    type: 'timestamp(6) NULL',
    spelled: 'timestamp(6)',
    values: ["'2024-11-03 01:30:00.123456'", "'2024-11-03 06:30:00.000001'", '0'],
  },
  { type: 'char(10)', values: ["'a '", "''", "'  x'", "'😀'"] },
  { type: 'char(255)', values: ["REPEAT('😀',255)", "''", "'a'"] },
  { type: 'varchar(20)', values: ["'a '", "''", "'tab\\tquote\"'", "'null'"] },
  { type: 'varchar(300)', values: ["REPEAT('ä',300)", "'x'"] },
  { type: 'tinytext', values: ["'é€'", "''"] },
  { type: 'text', values: ["REPEAT('日本',5000)"] },
  { type: 'mediumtext', values: ["REPEAT('x',70000)"] },
  { type: 'longtext', values: ['\'{"a": 1.0}\''] },
  { type: 'binary(16)', values: ["x'00112233445566778899AABBCCDD0000'", "x'00'", "''"], ...binary },
  { type: 'binary(255)', values: ["REPEAT(x'00',255)", "x'FF'"], ...binary },
  { type: 'varbinary(300)', values: ["x'00FF00'", "''", "REPEAT(x'AB00',150)"], ...binary },
  { type: 'tinyblob', values: ["x'00FF'", "''"], ...binary },
  { type: 'blob', values: ["x'C3A900'"], ...binary },
  { type: 'mediumblob', values: ["REPEAT(x'00FF',40000)"], ...binary },
  { type: 'longblob', values: ["x'00'"], ...binary },
  { type: "enum('a','b,c','d''e','日本')", values: ["'a'", "'b,c'", "'d''e'", "'日本'", "'nonsense'"] },
  {
    type: "enum('a','b,c','日本') CHARACTER SET gbk",
    spelled: "enum('a','b,c','日本')",
    values: ["'日本'", "''", "'b,c'"],
  },
  { type: "set('x','y','z w')", values: ["'x'", "'x,z w'", "''", "'nonsense'"] },
  { type: `set(${Array.from({ length: 64 }, (_, i) => `'m${i}'`).join(',')})`, values: ["'m0,m31,m32,m63'", "'m63'"] },
  ...SINGLE_BYTE_CHARSETS.map((charset) => ({
    type: `varchar(300) CHARACTER SET ${charset}`,
    spelled: 'varchar(300)',
    values: [
      `CONVERT(CAST(UNHEX('${Array.from({ length: 255 }, (_, i) => (i + 1).toString(16).padStart(2, '0')).join('')}') AS CHAR CHARACTER SET ${charset}) USING ${charset})`,
    ],
  })),
  { type: 'varchar(20) CHARACTER SET gbk', spelled: 'varchar(20)', values: ["'测试€'", "'a测'"] },
  { type: 'varchar(20) CHARACTER SET big5', spelled: 'varchar(20)', values: ["'測試'"] },
  { type: 'varchar(20) CHARACTER SET sjis', spelled: 'varchar(20)', values: ["'テスト～'", "'ｱｲ漢\\\\'"] },
  { type: 'varchar(20) CHARACTER SET cp932', spelled: 'varchar(20)', values: ["'テスト①～'"] },
  { type: 'varchar(20) CHARACTER SET ujis', spelled: 'varchar(20)', values: ["'日本語～丂'"] },
  { type: 'varchar(20) CHARACTER SET eucjpms', spelled: 'varchar(20)', values: ["'日本語①～'"] },
  { type: 'varchar(20) CHARACTER SET euckr', spelled: 'varchar(20)', values: ["'한국어'"] },
  { type: 'varchar(20) CHARACTER SET gb2312', spelled: 'varchar(20)', values: ["'测试'"] },
  { type: 'varchar(20) CHARACTER SET gb18030', spelled: 'varchar(20)', values: ["'测试😀𠀀'"], only: 'mysql' },
  { type: 'varchar(20) CHARACTER SET ucs2', spelled: 'varchar(20)', values: ["'a日'", "''"] },
  { type: 'varchar(20) CHARACTER SET utf16', spelled: 'varchar(20)', values: ["'a日😀'"] },
  { type: 'varchar(20) CHARACTER SET utf16le', spelled: 'varchar(20)', values: ["'a日😀'"] },
  { type: 'varchar(20) CHARACTER SET utf32', spelled: 'varchar(20)', values: ["'a日😀'"] },
  { type: 'varchar(20) CHARACTER SET utf8mb3', spelled: 'varchar(20)', values: ["'é日'"] },
  {
    type: 'varchar(20) CHARACTER SET ascii',
    spelled: 'varchar(20)',
    values: ["CONVERT(x'41FF7F80' USING ascii)", "'~'"],
  },
  { type: 'char(8) CHARACTER SET utf16', spelled: 'char(8)', values: ["'a '", "'日'"] },
  { type: 'text CHARACTER SET latin1', spelled: 'text', values: ["'é€'"] },
  {
    type: 'geometry',
    values: ["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)"],
    ask: 'HEX(c)',
    show: hex,
  },
  { type: 'point', values: ["ST_GeomFromText('POINT(1.5 -2)')"], ask: 'HEX(c)', show: hex },
  { type: 'multipolygon', values: ["ST_GeomFromText('MULTIPOLYGON(((0 0,0 1,1 1,0 0)))')"], ask: 'HEX(c)', show: hex },
  {
    type: 'geometrycollection',
    values: ["ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')"],
    ask: 'HEX(c)',
    show: hex,
  },
  { type: 'vector(3)', values: ["STRING_TO_VECTOR('[1,2.5,-3]')"], only: 'mysql', ...binary },
  {
    type: 'json',
    only: 'mysql',
    values: [
      `'{"a":1.0,"b":18446744073709551615,"c":-9223372036854775808,"d":[1,2.5,1e100,1e-20,true,null,"x\\\\n\\\\u0001\\\\"é😀"],"":{}}'`,
      `JSON_OBJECT('t', CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)), 'd', CAST('2024-02-29' AS DATE), 'e', CAST('-838:59:58.5' AS TIME(1)), 'n', 1.10, 'm', CAST(-12345678901234567890.123 AS DECIMAL(30,3)))`,
      `JSON_OBJECT('bin', CAST(REPEAT(x'00FF',100) AS BINARY), 'bit', CAST(b'101' AS JSON))`,
      `JSON_ARRAY(1, -1, 65535, 65536, -32769, 4294967295, 4294967296, 1.5, 0.1, 123456789012345, 1234567890123456789, 0e0, -0e0, 1e15, 1e16, 123456789012345.6, 1234567890123456.7e0, 9007199254740993e0, 1e-5, 1e-15, 5e-324)`,
      `(SELECT JSON_ARRAYAGG(REPEAT('x', 100)) FROM information_schema.COLUMNS LIMIT 1)`,
      `'"scalar"'`,
      `'null'`,
      `'[]'`,
    ],
    ask: 'CAST(c AS CHAR)',
  },
  { type: 'json', spelled: 'longtext', only: 'mariadb', values: [`'{"a":1.0, "b":18446744073709551615}'`] },
  {
    type: 'uuid',
    only: 'mariadb',
    values: [
      "'123e4567-e89b-12d3-a456-426655440000'",
      "'0189c4ba-5e4e-7cc9-8c5e-2b1f3f6a7b8c'",
      "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
      "'00000000-0000-0000-0000-000000000000'",
      "'6ccd780c-baba-1026-9564-5b8c656024db'",
      "'f81d4fae-7dec-4100-0000-00a0c91e6bf6'",
    ],
  },
  { type: 'inet4', only: 'mariadb', values: ["'1.2.3.4'", "'0.0.0.0'", "'255.255.255.0'"] },
  {
    type: 'inet6',
    only: 'mariadb',
    values: [
      "'::'",
      "'::1'",
      "'2001:db8::ff00:42:8329'",
      "'::ffff:1.2.3.4'",
      "'1:0:0:2::3'",
      "'::1.2.3.4'",
      "'1:2:3:4:5:6:7:0'",
      "'1:0:2:3:4:5:6:7'",
      "'0:1:2:3:4:5:6:7'",
      "'1:0:2:0:3:4:5:6'",
      "'::0:1.2.3.4'",
      "'::ffff:0:1'",
      "'0:0:0:0:0:1:2:3'",
      "'0:0:0:0:1::'",
      "'0:0:1::'",
      "'1::'",
      "'::2:0:0:1'",
    ],
  },
  {
    type: 'varchar(500) COMPRESSED',
    spelled: 'varchar(500)',
    only: 'mariadb',
    values: ["REPEAT('abc',150)", "'x'", "''"],
  },
  {
    type: 'blob COMPRESSED',
    spelled: 'blob',
    only: 'mariadb',
    values: ["REPEAT(x'00FF',300)", "x'00'", "''"],
    ...binary,
  },
];

/** Types whose collation some servers list among those of text, so that the texts behind them might get another column's. */
const BLOB_LIKE: readonly { readonly type: string; readonly value: string; readonly only?: Flavor }[] = [
  { type: 'geometry', value: "ST_GeomFromText('POINT(1 2)')" },
  { type: 'multipolygon', value: "ST_GeomFromText('MULTIPOLYGON(((0 0,0 1,1 1,0 0)))')" },
  { type: 'json', value: "'{}'" },
  { type: 'bit(8)', value: '1' },
  { type: 'vector(2)', value: "STRING_TO_VECTOR('[1,2]')", only: 'mysql' },
  { type: 'uuid', value: "'123e4567-e89b-12d3-a456-426655440000'", only: 'mariadb' },
  { type: 'inet6', value: "'::1'", only: 'mariadb' },
  { type: "enum('a')", value: "'a'" },
  { type: "set('a')", value: "'a'" },
];

for (const flavor of FLAVORS) {
  describe(`text of a charset behind other types on ${flavor}`, { timeout: 120_000 }, () => {
    for (const { type, value } of BLOB_LIKE.filter(({ only }) => only === undefined || only === flavor)) {
      it(type, async () => {
        await using db = await TestDatabase.create(flavor);
        const source = db.source();
        const from = await source.currentPosition();
        const columns = `a ${type}, b BINARY(2), c VARCHAR(9) CHARACTER SET cp1251, d TEXT CHARACTER SET latin1`;
        await db.run(
          // most columns of one charset, so that the others are listed by their place; and none in the majority
          `CREATE TABLE many (id INT PRIMARY KEY, ${columns}, e CHAR(1), f CHAR(1), g CHAR(1), h CHAR(1))`,
          `CREATE TABLE few (id INT PRIMARY KEY, ${columns})`,
          `INSERT INTO many (id, a, b, c, d, e) VALUES (1, ${value}, x'ff00', 'Яш', 'é€', '日')`,
          `INSERT INTO few VALUES (1, ${value}, x'ff00', 'Яш', 'é€')`,
        );
        for (const { after } of rowsOf(await readItems(source, from))) {
          assert.equal(hex(after?.['b']), 'FF00');
          assert.deepEqual([after?.['c'], after?.['d']], ['Яш', 'é€']);
          if (after !== null && 'e' in after) assert.equal(after['e'], '日');
        }
      });
    }
  });

  describe(`values of every type on ${flavor}`, { timeout: 170_000 }, () => {
    const cases = CASES.filter((entry) => entry.only === undefined || entry.only === flavor);
    let db: TestDatabase;
    let streamed: Map<string, DecodedRow[]>;
    let copied: Map<string, DecodedRow[]>;

    before(async () => {
      db = await TestDatabase.create(flavor);
      await db.run("SET SESSION sql_mode = '', time_zone = '+00:00'", 'SET NAMES utf8mb4');
      const source = db.source();
      const from = await source.currentPosition();
      for (const [i, { type, values }] of cases.entries()) {
        await db.run(`CREATE TABLE t${i} (id INT PRIMARY KEY, c ${type})`);
        for (const [id, value] of [...values, 'NULL'].entries())
          await db.run(`INSERT INTO t${i} VALUES (${id}, ${value})`);
      }
      streamed = byTable(rowsOf(await readItems(source, from)));
      copied = byTable(rowsOf((await readSnapshot(source)).items));
    });

    after(async () => {
      await db.close();
    });

    it('was transcribed as the reference encodes it, every row', () => {
      assert.ok(comparedRows >= cases.length * 2);
    });

    for (const [i, entry] of cases.entries()) {
      it(`${entry.case === undefined ? '' : `${entry.case}: `}${entry.type.slice(0, 60)}`, async () => {
        const stream = streamed.get(`t${i}`) ?? [];
        const snapshot = copied.get(`t${i}`) ?? [];
        const expected = await db.select(`SELECT id, ${entry.ask ?? 'c'} FROM t${i} ORDER BY id`);
        const show = entry.show ?? String;
        const shown = stream.map(({ after }) => {
          const value = after?.['c'];
          return [String(after?.['id']), value === null || value === undefined ? null : show(value)];
        });
        assert.deepEqual(
          shown,
          entry.show === undefined || entry.ask !== 'c'
            ? expected.map((row) => answer(row, entry))
            : expected.map((row) => [row[0], row[1] == null ? null : String(Number(row[1]))]),
        );
        assert.deepEqual(
          snapshot.map((row) => row.after),
          stream.map((row) => row.after),
        );
        assert.deepEqual(snapshot[0]?.schema, stream[0]?.schema);
        assert.equal(stream[0]?.schema.columns[1]?.type, entry.spelled ?? entry.type);
      });
    }
  });
}

function byTable(rows: readonly DecodedRow[]): Map<string, DecodedRow[]> {
  const tables = new Map<string, DecodedRow[]>();
  for (const row of rows) tables.set(row.table, [...(tables.get(row.table) ?? []), row]);
  return tables;
}

/** Numbers that only differ in spelling (1e+38 and 1e38) are equal. */
function answer(row: readonly (string | null)[], entry: TypeCase): (string | null)[] {
  const [id = null, text = null] = row;
  return [id, text !== null && entry.ask === 'c + 0e0' ? String(Number(text)) : text];
}

for (const flavor of FLAVORS) {
  test(`A11: updates by one microsecond on ${flavor}`, async () => {
    await using db = await TestDatabase.create(flavor);
    const columns = 'ti TIME(6), dt DATETIME(6), ts TIMESTAMP(6) NULL, PRIMARY KEY (dt)';
    await db.run(`SET time_zone = '+00:00'; CREATE TABLE t (id INT, ${columns})`);
    const source = db.source();
    const from = await source.currentPosition();
    const expected: unknown[] = [];
    const shown = async (): Promise<unknown> => (await db.select('SELECT id, ti, dt, ts FROM t'))[0];
    await db.run(
      "INSERT INTO t VALUES (1, '-00:00:00.000002', '2024-12-31 23:59:59.999998', '2024-12-31 23:59:59.999998')",
    );
    for (let i = 0; i < 4; i += 1) {
      const before = await shown();
      await db.run(
        'UPDATE t SET ti = ADDTIME(ti, 0.000001), dt = dt + INTERVAL 1 MICROSECOND, ts = ts + INTERVAL 1 MICROSECOND',
      );
      expected.push([before, await shown()]);
    }
    const items = await readItems(source, from);
    const rows = rowsOf(items);
    const values = (row: (typeof rows)[number]['after']): unknown =>
      ['id', 'ti', 'dt', 'ts'].map((name) => String(row?.[name]));
    // the key moves along: each is a deletion and an insert
    const changes = rows.slice(1);
    assert.equal(changes.length, 8);
    assert.deepEqual(
      [0, 2, 4, 6].map((i) => [values(changes[i]?.before ?? null), values(changes[i + 1]?.after ?? null)]),
      expected,
    );
    assert.equal(new Set(rows.map(({ key }) => key)).size, 5);
    assert.equal(replay(items).size, 1);
  });
}
