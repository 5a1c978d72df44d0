/** Reads the copies for the comparison, with clients that are not MySync's. */
import { type Difference, differences, readIndex, readRedisHashes, readTable, until } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';
import type { DemoOptions } from './options.ts';
import { DATABASE, type Setup } from './setup.ts';
import { TABLES } from './shop.ts';

const KEYS: Readonly<Record<string, readonly string[]>> = { order_items: ['order_id', 'line'] };

export interface Comparison {
  readonly rows: number;
  readonly equal: boolean;
  readonly differences: readonly (Difference & { readonly table: string })[];
}

/** Compares every row of every table with one sink. */
export async function compare(setup: Setup, sink: DemoOptions['sinks'][number], sql: Connection): Promise<Comparison> {
  let rows = 0;
  const found: (Difference & { table: string })[] = [];
  for (const table of TABLES) {
    const source = await readTable(sql, DATABASE, table, KEYS[table]);
    rows += source.size;
    const copy =
      sink === 'redis'
        ? await readRedisHashes(setup.redisUrl, `${table}:`)
        : await readIndex(setup.elasticsearchUrl, table, KEYS[table]);
    found.push(...differences(source, copy).map((difference) => ({ ...difference, table })));
  }
  return { rows, equal: found.length === 0, differences: found };
}

/** Compares until equal; gives the last comparison when the sink does not become so in time. */
export async function compareWhenDrained(
  setup: Setup,
  sink: DemoOptions['sinks'][number],
  sql: Connection,
): Promise<Comparison> {
  let last = await compare(setup, sink, sql);
  try {
    await until(
      `${sink} equals the source`,
      async () => {
        if (!last.equal) last = await compare(setup, sink, sql);
        return last.equal;
      },
      { timeoutMs: 60_000, everyMs: 500 },
    );
  } catch {
    // the caller shows the differences of the last comparison
  }
  return last;
}
