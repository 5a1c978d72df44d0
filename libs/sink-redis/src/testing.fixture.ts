/** What the tests of this room share: sinks on a real Redis, and its rows as another client reads them. */
import type { Column, ColumnValue, TableRef } from '@mysync/core';
import type { SinkBench } from '@mysync/sink/conformance';
import type { Redis } from 'ioredis';
import type { RedisSinkOptions, RedisTableRule } from './options.ts';
import { RedisSink } from './sink.ts';

export type Value = Exclude<ColumnValue, undefined>;

/** How a hash shows a value. */
export function hashText(value: Value): string | undefined {
  if (value === null) return undefined;
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value);
}

/** How `jsonDocument` shows a value: numbers by their digits. */
export function jsonText(value: Value, column: Column): unknown {
  if (value === null) return null;
  if (column.kind === 'bytes') return Buffer.from(value as Uint8Array).toString('base64');
  return String(value);
}

export function jsonDocument(text: string): Record<string, unknown> {
  return JSON.parse(text.replace(/:(-?\d[\d.e+-]*)(?=[,}])/g, ':"$1"'));
}

export interface RedisBenchOptions {
  readonly sink: Omit<RedisSinkOptions, 'tables'>;
  readonly rule: Partial<RedisTableRule> & { readonly as: 'hash' | 'json' };
  /** Clients to every master, which the bench owns. */
  readonly readers: () => readonly Redis[];
}

export function redisBench(options: RedisBenchOptions): SinkBench {
  const readers = options.readers();
  const rule: RedisTableRule = { match: 'conf_*.*', key: '{database}:{table}:{key}', ...options.rule };
  const readAll = async (table: TableRef): Promise<Record<string, unknown>[]> => {
    const documents: Record<string, unknown>[] = [];
    for (const reader of readers) {
      for await (const keys of reader.scanStream({ match: `${table.database}:${table.table}:*`, count: 1000 })) {
        for (const key of keys as string[]) {
          const type = await reader.type(key);
          if (type === 'hash') documents.push(await reader.hgetall(key));
          if (type === 'string') documents.push(jsonDocument((await reader.get(key)) ?? ''));
        }
      }
    }
    return documents;
  };
  return {
    createSink: async () => new RedisSink({ ...options.sink, tables: [rule] }),
    readAll,
    show: (value, column) => (rule.as === 'hash' ? hashText(value) : jsonText(value, column)),
    spoil: async (schema, id) => {
      const key = `${schema.database}:${schema.table}:${id}`;
      for (const reader of readers) await reader.rpush(key, 'foreign').catch(() => 0);
    },
    mend: async (schema, id) => {
      const key = `${schema.database}:${schema.table}:${id}`;
      for (const reader of readers) await reader.del(key).catch(() => 0);
    },
    createUnreachableSink: async () =>
      new RedisSink({ ...options.sink, hosts: [{ host: '127.0.0.1', port: 1 }], tables: [rule] }),
    close: async () => {
      for (const reader of readers) reader.disconnect();
    },
  };
}
