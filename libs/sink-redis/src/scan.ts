import type { RedisConnection } from './connection.ts';

const COUNT = '1000';

/** Keys of one server that match, in pages, each at least once; keys that come or go meanwhile may be left out (SCAN's promise). */
export async function* scanKeys(
  connection: RedisConnection,
  glob: string,
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  let cursor = '0';
  do {
    const scan = ['SCAN', cursor, 'MATCH', glob, 'COUNT', COUNT];
    const [next, keys] = (await connection.call(scan, signal)) as [string, string[]];
    cursor = next;
    yield keys;
  } while (cursor !== '0');
}
