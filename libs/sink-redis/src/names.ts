/**
 * Names of MySync's own keys in Redis.
 *
 * `P:v:{KEY}` stands beside the row's key KEY and hashes to the same slot. Where KEY itself holds a brace, the hash tag is a
 * short text of the same slot: `P:w:{TAG}KEY`. Both can be turned back into KEY, and no two keys share one.
 * `P:m:{TAG}TOPIC:PARTITION` is the applied marker.
 */
import { createHash } from 'node:crypto';
import type { TableRef } from '@mysync/core';
import type { StreamRef } from '@mysync/sink';
import { keySlot, slotTag } from './slot.ts';

export interface RedisNames {
  /** The key beside a row's key that holds its version. */
  companion(key: string): string;
  /** Back from `companion`; null for keys of other kinds. */
  rowKey(companion: string): string | null;
  /** A glob that every companion matches. */
  readonly companionGlob: string;
  /** The marker's key in a slot (0 where there is no cluster). */
  marker(stream: StreamRef, slot: number): string;
}

export function redisNames(prefix: string): RedisNames {
  const plain = `${prefix}:v:{`;
  const odd = `${prefix}:w:{`;
  return {
    companion: (key) =>
      key.includes('{') || key.includes('}') || key === ''
        ? `${odd}${slotTag(keySlot(key))}}${key}`
        : `${plain}${key}}`,
    rowKey: (companion) => {
      if (companion.startsWith(plain)) return companion.slice(plain.length, -1);
      if (companion.startsWith(odd)) return companion.slice(companion.indexOf('}', odd.length) + 1);
      return null;
    },
    companionGlob: `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}:[vw]:{*`,
    marker: (stream, slot) => `${prefix}:m:{${slotTag(slot)}}${stream.topic}:${stream.partition}`,
  };
}

/** Names a stream and a table in companions: 12 hex digits. */
export function recordId(stream: StreamRef, table: TableRef): string {
  const text = [stream.topic, stream.partition, table.database, table.table].join('\0');
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
