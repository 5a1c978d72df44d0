/**
 * Compares a table with its copy, row by row, without any of MySync's own code: the server's own text of each value against
 * what an independent client reads from the sink.
 */
import { Redis } from 'ioredis';
import { type Connection, createConnection } from 'mysql2/promise';

/** Column name → the server's text, null for NULL. */
export type TextRow = Readonly<Record<string, string | null>>;

export interface SqlAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** A connection that gets every value as the server's text, TIMESTAMP in UTC. */
export async function textConnection(address: SqlAddress): Promise<Connection> {
  const connection = await createConnection({
    ...address,
    charset: 'utf8mb4',
    multipleStatements: true,
    typeCast: (field) => field.string(),
  });
  await connection.query("SET time_zone = '+00:00'");
  return connection;
}

/** All rows of `database.table` by the text of their key columns (joined by a comma); bytes come as base64. */
export async function readTable(
  connection: Connection,
  database: string,
  table: string,
  keyColumns: readonly string[] = ['id'],
): Promise<Map<string, TextRow>> {
  const [columns] = await connection.query(
    'SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position',
    [database, table],
  );
  const list = (columns as { name: string; type: string }[]).map(({ name, type }) => {
    const quoted = `\`${name.replaceAll('`', '``')}\``;
    return /binary|blob/.test(type) ? `REPLACE(TO_BASE64(${quoted}), '\n', '') AS ${quoted}` : quoted;
  });
  if (list.length === 0) return new Map();
  const from = [database, table].map((name) => `\`${name.replaceAll('`', '``')}\``).join('.');
  const [rows] = await connection.query(`SELECT ${list.join(', ')} FROM ${from}`);
  const result = new Map<string, TextRow>();
  for (const row of rows as TextRow[]) result.set(keyColumns.map((column) => row[column]).join(','), row);
  return result;
}

/** All hashes below `prefix` (for example `orders:`) by the rest of their key. */
export async function readRedisHashes(url: string, prefix: string): Promise<Map<string, TextRow>> {
  const redis = new Redis(url, { maxRetriesPerRequest: 3 });
  try {
    const keys: string[] = [];
    let cursor = '0';
    do {
      const [next, found] = await redis.scan(
        cursor,
        'MATCH',
        `${prefix.replace(/[[\]*?\\]/g, '\\$&')}*`,
        'COUNT',
        5000,
      );
      cursor = next;
      keys.push(...found);
    } while (cursor !== '0');
    const result = new Map<string, TextRow>();
    for (let from = 0; from < keys.length; from += 2000) {
      const part = keys.slice(from, from + 2000);
      const pipeline = redis.pipeline();
      for (const key of part) pipeline.hgetall(key);
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, [error, value]] of replies.entries()) {
        const key = part[index] ?? '';
        if (error === null) result.set(key.slice(prefix.length), value as TextRow);
        else result.set(key.slice(prefix.length), { '#error': error.message });
      }
    }
    return result;
  } finally {
    redis.disconnect();
  }
}

/**
 * All documents of an index, as their `_source` without MySync's own field, by the text of their key columns; a second document
 * of one key gets a key of its own. Integers past 2^53 come as text, so that they keep their digits.
 */
export async function readIndex(
  url: string,
  index: string,
  keyColumns: readonly string[] = ['id'],
): Promise<Map<string, Record<string, unknown>>> {
  const result = new Map<string, Record<string, unknown>>();
  const refreshed = await fetch(`${url}/${index}/_refresh`, { method: 'POST' });
  if (refreshed.status === 404) return result;
  let after: unknown[] | undefined;
  for (;;) {
    const response = await fetch(`${url}/${index}/_search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ size: 5000, sort: ['_doc'], ...(after === undefined ? {} : { search_after: after }) }),
    });
    const text = await response.text();
    const body = JSON.parse(text.replace(/(":\s*)(-?\d{16,})(?=[,}])/g, '$1"$2"')) as {
      error?: unknown;
      hits: { hits: { _id: string; _source: Record<string, unknown>; sort: unknown[] }[] };
    };
    if (body.error !== undefined) throw new Error(JSON.stringify(body.error));
    const { hits } = body.hits;
    for (const hit of hits) {
      const { _mysync: _, ...source } = hit._source;
      const key = keyColumns.map((column) => source[column]).join(',');
      result.set(result.has(key) ? `${key} again as ${hit._id}` : key, source);
    }
    if (hits.length < 5000) return result;
    after = hits[hits.length - 1]?.sort;
  }
}

export interface Difference {
  readonly key: string;
  readonly column: string;
  readonly source: unknown;
  readonly copy: unknown;
}

/**
 * The differences between a table and its copy, at most `most` of them. `same` judges one value: the server's text against what the sink
 * holds (undefined: the field is not there). By default texts are equal, and NULL is a missing field or null.
 */
export function differences(
  source: ReadonlyMap<string, TextRow>,
  copy: ReadonlyMap<string, Readonly<Record<string, unknown>>>,
  options: { most?: number; same?: (text: string | null, value: unknown, column: string) => boolean } = {},
): Difference[] {
  const most = options.most ?? 10;
  const same = options.same ?? sameText;
  const found: Difference[] = [];
  for (const [key, row] of source) {
    const other = copy.get(key);
    if (other === undefined) {
      found.push({ key, column: '*', source: row, copy: undefined });
    } else {
      for (const [column, text] of Object.entries(row)) {
        if (!same(text, other[column], column)) found.push({ key, column, source: text, copy: other[column] });
      }
      for (const column of Object.keys(other)) {
        if (!(column in row)) found.push({ key, column, source: undefined, copy: other[column] });
      }
    }
    if (found.length >= most) return found;
  }
  for (const [key, row] of copy) {
    if (!source.has(key)) found.push({ key, column: '*', source: undefined, copy: row });
    if (found.length >= most) return found;
  }
  return found;
}

function sameText(text: string | null, value: unknown): boolean {
  if (text === null) return value === undefined || value === null;
  return text === (typeof value === 'string' ? value : String(value));
}
