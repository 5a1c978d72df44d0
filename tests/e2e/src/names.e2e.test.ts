/** B14: names with dots, dashes, quotes, spaces and characters outside of ASCII, from the tables to the sinks; names that look alike stay apart. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  assertClean,
  differences,
  Pipeline,
  randomName,
  readIndex,
  readRedisHashes,
  readTable,
  sharedServer,
  type TextRow,
  textConnection,
  until,
} from '@mysync/harness';

const TABLES = ['a.b', 'a-b', 'a_b', 'we-ird.na`me', 'with space', '表', `qu'ote"s`, 'ümlaut%', 'p*tt?rn'] as const;
const COLUMNS = ['q"x', 'a.b', 'a_b', 'sp ace', '列', "it's", 'per%cent', 'back`tick', '{brace}', 'col:on'] as const;
const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``;
/** As the page of the sink says. */
const field = (name: string): string => name.replaceAll('%', '%25').replaceAll('.', '%2E');

const databases: string[] = [];
after(async () => {
  if (databases.length === 0) return;
  const server = await sharedServer('mariadb');
  const sql = await textConnection({
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user: server.get('MYSQL_USER'),
    password: server.get('MYSQL_PASSWORD'),
  });
  for (const name of databases) await sql.query(`DROP DATABASE IF EXISTS ${quoted(name)}`);
  await sql.end();
});

test('B14: odd names reach both sinks, each under its own', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis', 'elasticsearch'], partitions: 2 });
  const { sql } = pipeline;
  const mark = randomName('n');
  databases.push(`${mark}-db.v1`, `${mark}_db_v1`);
  const match = databases.map((name) => `${quoted(name)}.*`);
  const redis = { kind: 'redis', url: pipeline.redis?.get('REDIS_URL') };
  const elasticsearch = { kind: 'elasticsearch', nodes: [pipeline.elasticsearchUrl] };
  await pipeline.configure({
    ...pipeline.options,
    sourceConfig: { tables: match },
    config: {
      sinks: {
        redis: { ...redis, tables: [{ match, as: 'hash', key: '{database}:{table}:{id}' }] },
        elasticsearch: { ...elasticsearch, tables: [{ match, index: '{database}-{table}', id: '{id}', sets: 'text' }] },
      },
    },
  });
  const named = databases.flatMap((database) => TABLES.map((table) => ({ database, table })));
  const change = async (statement: (name: string, mark: string) => string): Promise<void> => {
    for (const { database, table } of named) {
      await sql.query(statement(`${quoted(database)}.${quoted(table)}`, `${database}/${table}`.replaceAll("'", "''")));
    }
  };
  const values = (id: number, of: string): string => `(${id}, ${COLUMNS.map((_, i) => `'${of}/${i}'`).join(', ')})`;
  for (const database of databases) await sql.query(`CREATE DATABASE ${quoted(database)} CHARACTER SET utf8mb4`);
  await change(
    (name) => `CREATE TABLE ${name} (id INT PRIMARY KEY, ${COLUMNS.map((c) => `${quoted(c)} VARCHAR(80)`).join(', ')})`,
  );
  await change((name, of) => `INSERT INTO ${name} VALUES ${[1, 2, 3, 4].map((id) => values(id, of)).join(', ')}`);

  const equal = async (): Promise<void> => {
    const truths: ReadonlyMap<string, TextRow>[] = [];
    for (const { database, table } of named) truths.push(await readTable(sql, database, table));
    let told: unknown;
    const holds = async (): Promise<boolean> => {
      for (const [i, { database, table }] of named.entries()) {
        const hashes = await readRedisHashes(
          pipeline.redis?.get('REDIS_URL') ?? '',
          `${database}:${table.replaceAll('%', '%25')}:`,
        );
        told = { database, table, found: differences(truths[i] ?? new Map(), hashes) };
        if (differences(truths[i] ?? new Map(), hashes).length > 0) return false;
      }
      const listed = await fetch(`${pipeline.elasticsearchUrl}/_cat/indices/${mark}*?format=json`);
      const indices = ((await listed.json()) as { index: string }[]).map(({ index }) => index);
      told = indices;
      if (indices.length !== named.length) return false;
      // each table is in exactly one index
      const unmatched = [...truths];
      for (const index of indices) {
        const documents = await readIndex(pipeline.elasticsearchUrl, encodeURIComponent(index));
        const at = unmatched.findIndex((truth) => differences(renamed(truth), documents).length === 0);
        told = { index, documents: [...documents] };
        if (at < 0) return false;
        unmatched.splice(at, 1);
      }
      return true;
    };
    await until('both sinks equal the tables', holds, { timeoutMs: 60_000, everyMs: 300 }).catch((cause: unknown) => {
      throw new Error(`not equal: ${JSON.stringify(told)}\n${pipeline.processes.at(-1)?.stderr.slice(-3000)}`, {
        cause,
      });
    });
  };
  const mysync = pipeline.start('run');
  await equal();
  await change((name) => `UPDATE ${name} SET ${quoted('a.b')} = CONCAT(${quoted('a_b')}, '!') WHERE id < 3`);
  await change((name) => `DELETE FROM ${name} WHERE id = 1`);
  await change((name, of) => `INSERT INTO ${name} VALUES ${values(5, of)}`);
  await sql.query(`TRUNCATE TABLE ${quoted(databases[0] ?? '')}.${quoted('we-ird.na`me')}`);
  await sql.query(`INSERT INTO ${quoted(databases[0] ?? '')}.${quoted('we-ird.na`me')} VALUES ${values(6, 'anew')}`);
  await sql.query(
    `ALTER TABLE ${quoted(databases[1] ?? '')}.${quoted('a.b')} RENAME COLUMN ${quoted('q"x')} TO ${quoted("q'x.y")}`,
  );
  await sql.query(`UPDATE ${quoted(databases[1] ?? '')}.${quoted('a.b')} SET ${quoted("q'x.y")} = 'new'`);
  await equal();
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
  assert.equal(named.length, 18);
  await fetch(`${pipeline.elasticsearchUrl}/${mark}*`, { method: 'DELETE' });
});

function renamed(rows: ReadonlyMap<string, TextRow>): Map<string, TextRow> {
  const entries = [...rows].map(
    ([key, row]) =>
      [key, Object.fromEntries(Object.entries(row).map(([name, value]) => [field(name), value]))] as const,
  );
  return new Map(entries);
}
