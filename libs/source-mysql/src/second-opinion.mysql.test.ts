/**
 * Random histories as zongji reads their rows: another program's opinion of the same events, change by change. Left out is what it is known to read
 * otherwise (seen on 0.9.0): YEAR 0000 (1900), members of index 0 (undefined), JSON of MySQL with 1.0 (1) and integers past 2^53 (text), a JSON null (as
 * NULL), a JSON document that is one text (without its quotes), VECTOR, GEOMETRY (no SRID), UUID and INET (bytes), transactions of MySQL that are compressed and partial updates of JSON (lost).
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ColumnValue } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { secondOpinionOfRows } from './connection/second-opinion.fixture.ts';
import { type DecodedRow, FLAVORS, readItems, rowsOf, TestDatabase } from './testing.fixture.ts';

const SEEDS = 12;
const STEPS = 60;
const FIRST_SEED = Number(process.env['SECOND_OPINION_SEED'] ?? Date.now() % 1_000_000);

/** Chance that is a function of the seed alone (mulberry32). */
class Dice {
  #state: number;
  constructor(seed: number) {
    this.#state = seed | 0;
  }
  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

interface Kind {
  readonly sql: string;
  value(dice: Dice): string;
}

const text = (value: string): string => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
const TEXTS = ['', 'a', "it's", 'tab\there', 'ünï 表 🙂', 'back\\slash', 'x'.repeat(45), ' spaces ', 'NULL', '0'];
const integers = (sql: string, low: bigint, high: bigint): Kind => ({
  sql,
  value: (dice) => String(dice.pick([low, high, 0n, 1n, low / 3n, high / 7n, high - 1n])),
});
const datetime = (digits: number): Kind => ({
  sql: `DATETIME(${digits})`,
  value: (dice) =>
    dice.pick([
      "'1000-01-01'",
      "'9999-12-31 23:59:59'",
      "'2024-02-29 12:34:56.789012'",
      "'1970-01-01 00:00:00.000001'",
    ]),
});
const json = (dice: Dice, depth = 0): unknown =>
  dice.pick([
    () => dice.below(1e9) - 5e8,
    () => dice.pick(TEXTS),
    () => dice.pick([true, false]),
    () => (depth > 2 ? 1.5 : Array.from({ length: dice.below(4) }, () => json(dice, depth + 1))),
    () =>
      depth > 2
        ? {}
        : Object.fromEntries(Array.from({ length: dice.below(4) }, (_, i) => [`k${i}`, json(dice, depth + 1)])),
  ])();

const KINDS: readonly Kind[] = [
  integers('TINYINT', -128n, 127n),
  integers('SMALLINT UNSIGNED', 0n, 65_535n),
  integers('MEDIUMINT', -8_388_608n, 8_388_607n),
  integers('INT UNSIGNED', 0n, 4_294_967_295n),
  integers('BIGINT', -9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n),
  integers('BIGINT UNSIGNED', 0n, 18_446_744_073_709_551_615n),
  { sql: 'DECIMAL(30, 12)', value: (d) => d.pick(['0', '-0.000000000001', '123456789012345678.123456789012', '-9.5']) },
  { sql: 'DECIMAL(5)', value: (d) => d.pick(['0', '-99999', '12345']) },
  { sql: 'VARCHAR(50) CHARACTER SET utf8mb4', value: (d) => text(d.pick(TEXTS)) },
  { sql: 'VARCHAR(300) CHARACTER SET utf8mb4', value: (d) => text(d.pick(TEXTS).repeat(1 + d.below(6))) },
  datetime(0),
  datetime(3),
  datetime(6),
  { sql: 'JSON', value: (d) => text(JSON.stringify(d.pick([[json(d)], { k: json(d) }]))) },
  { sql: 'BLOB', value: (d) => `REPEAT(x'${d.pick(['', '00', 'ff00', '0a0d27'])}', ${d.below(200)})` },
  { sql: "ENUM('a', 'b,c', 'd''e', 'ü')", value: (d) => text(d.pick(['a', 'b,c', "d'e", 'ü'])) },
  { sql: "SET('x', 'y', 'z', 'ß')", value: (d) => text(d.pick(['', 'x', 'x,z', 'x,y,z,ß', 'ß'])) },
];

/** Statements of one history: rows of two tables whose columns come, go and change their names. */
function history(seed: number): string[] {
  const dice = new Dice(seed);
  let names = 0;
  const tables = [`t${seed}`, `u${seed}`].map((name) => ({
    name,
    columns: Array.from({ length: 2 + dice.below(8) }, () => ({ name: `c${names++}`, kind: dice.pick(KINDS) })),
  }));
  const statements = tables.map(
    ({ name, columns }) =>
      `CREATE TABLE ${name} (id INT PRIMARY KEY, ${columns.map((c) => `${c.name} ${c.kind.sql}`).join(', ')})`,
  );
  let open = false;
  let id = 0;
  const value = (kind: Kind): string => (dice.below(6) === 0 ? 'NULL' : kind.value(dice));
  for (let step = 0; step < STEPS; step += 1) {
    const table = dice.pick(tables);
    const some = dice.pick(['id % 3 = 0', 'id % 2 = 1', `id > ${dice.below(id + 1)}`, '1 = 1']);
    const kind = dice.below(20);
    if (kind < 9) {
      const rows = Array.from({ length: 1 + dice.below(4) }, () => {
        id += 1;
        return `(${id}, ${table.columns.map((c) => value(c.kind)).join(', ')})`;
      });
      statements.push(`INSERT INTO ${table.name} VALUES ${rows.join(', ')}`);
    } else if (kind < 13) {
      const { name, kind: type } = dice.pick(table.columns);
      statements.push(`UPDATE ${table.name} SET ${name} = ${value(type)} WHERE ${some} ORDER BY id`);
    } else if (kind === 13) {
      id += 1000;
      statements.push(`UPDATE ${table.name} SET id = id + 1000 WHERE ${some} ORDER BY id DESC LIMIT 3`);
    } else if (kind === 14) statements.push(`DELETE FROM ${table.name} WHERE ${some} ORDER BY id LIMIT 4`);
    else if (kind === 15) statements.push(open ? dice.pick(['COMMIT', 'ROLLBACK']) : 'BEGIN');
    else if (kind === 16 && open) statements.push('SAVEPOINT s', `DELETE FROM ${table.name}`, 'ROLLBACK TO s');
    else if (kind > 16) {
      // ends an open transaction
      open = false;
      const alter = `ALTER TABLE ${table.name}`;
      const at = dice.below(table.columns.length);
      const fresh = { name: `c${names++}`, kind: dice.pick(KINDS) };
      const old = table.columns[at];
      if (kind === 17) {
        statements.push(`${alter} ADD COLUMN ${fresh.name} ${fresh.kind.sql} AFTER id`);
        table.columns.unshift(fresh);
      } else if (kind === 18 && old !== undefined) {
        statements.push(`${alter} RENAME COLUMN ${old.name} TO ${fresh.name}`);
        table.columns[at] = { name: fresh.name, kind: old.kind };
      } else if (table.columns.length > 2) {
        statements.push(`${alter} DROP COLUMN ${old?.name}`);
        table.columns.splice(at, 1);
      }
      continue;
    }
    if (kind === 15) open = !open;
  }
  return open ? [...statements, 'COMMIT'] : statements;
}

for (const flavor of FLAVORS) {
  describe(`rows of ${flavor} as another library reads them`, { timeout: 170_000 }, () => {
    let server: TestServer;
    before(async () => {
      server = await startServer(flavor);
    });
    after(() => server.wipe());

    it(`change by change, seeds ${FIRST_SEED} to ${FIRST_SEED + SEEDS - 1} (SECOND_OPINION_SEED)`, async () => {
      await using db = await TestDatabase.create(flavor, server);
      const source = db.source();
      const from = await source.currentPosition();
      for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) await db.run(...history(seed));
      const to = await source.currentPosition();
      const lastStatement = 'CREATE TABLE the_end (id INT)';
      await db.run(lastStatement);
      const ours = rowsOf(await readItems(source, from, to));
      const { file, offset } = from;
      const theirs = (await secondOpinionOfRows({ port: db.port, file, offset, lastStatement }, db.name)).flatMap(
        ({ table, before, after }) => {
          // a row that takes another key is a deletion and an insert
          const moves = before !== null && after !== null && before['id'] !== after['id'];
          if (!moves) return [{ table, before, after }];
          return [
            { table, before, after: null },
            { table, before: null, after },
          ];
        },
      );
      assert.ok(ours.length > SEEDS * 20, `${ours.length} rows`);
      for (const [i, row] of ours.entries()) {
        const other = theirs[i];
        assert.deepEqual(
          { table: row.table, before: told(row, row.before), after: told(row, row.after) },
          { table: other?.table, before: told(row, other?.before), after: told(row, other?.after) },
          `change ${i}`,
        );
      }
      assert.equal(theirs.length, ours.length);
    });
  });
}

/** Values in a form that both can be brought to. */
function told({ schema }: DecodedRow, image: Readonly<Record<string, unknown>> | null | undefined): unknown {
  if (image == null) return null;
  const names = Object.keys(image);
  return names.map((name) => {
    const column = schema.columns.find((each) => each.name === name);
    return [name, plain(image[name] as ColumnValue, column?.type === 'json' || column?.type === 'longtext')];
  });
}

function plain(value: unknown, isJson: boolean): unknown {
  if (value === null || value === undefined) return null;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (isJson) return typeof value === 'string' ? JSON.parse(value) : value;
  return Array.isArray(value) ? value.join(',') : String(value);
}
