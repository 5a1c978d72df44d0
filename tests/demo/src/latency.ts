import type { Redis } from 'ioredis';
import type { Connection } from 'mysql2/promise';

/** Milliseconds from a commit's answer to the moment its value can be read from the sink. */
export class LatencyProbe {
  readonly samples: number[] = [];

  /** Changes one row and asks the sink again and again until the value is there. `read` gives the sink's text of the note. */
  async sample(sql: Connection, id: number, read: () => Promise<string | null>): Promise<void> {
    const token = `probe ${this.samples.length} ${Date.now()}`;
    await sql.query('UPDATE customers SET note = ? WHERE id = ?', [token, id]);
    const start = performance.now();
    while ((await read()) !== token) {
      if (performance.now() - start > 30_000) throw new Error('a change did not arrive within 30 s');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    this.samples.push(performance.now() - start);
  }

  percentile(fraction: number): number {
    const sorted = [...this.samples].sort((a, b) => a - b);
    const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
    return Math.round(value * 10) / 10;
  }
}

export function redisNote(redis: Redis, id: number): () => Promise<string | null> {
  return async () => await redis.hget(`customers:${id}`, 'note');
}

export function documentNote(url: string, id: number): () => Promise<string | null> {
  return async () => {
    const response = await fetch(`${url}/customers/_doc/${id}?_source_includes=note`);
    const body = (await response.json()) as { _source?: { note?: string } };
    return body._source?.note ?? null;
  };
}
