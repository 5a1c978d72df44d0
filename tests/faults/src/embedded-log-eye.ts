/** Looks at the embedded log with its store's own library. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import type { LogEye, LoggedMessage } from './log-eye.ts';

/** The entries are described in docs/spec/embedded-log.md. */
export class EmbeddedLogEye implements LogEye {
  readonly #root: RootDatabase<Buffer, string>;
  readonly #meta: Database<Buffer, string>;
  readonly #records: Database<Buffer, Buffer>;
  readonly #topic: string;

  private constructor(root: RootDatabase<Buffer, string>, topic: string) {
    this.#root = root;
    this.#meta = root.openDB<Buffer, string>('meta', { encoding: 'binary' });
    this.#records = root.openDB<Buffer, Buffer>('records', { encoding: 'binary', keyEncoding: 'binary' });
    this.#topic = topic;
  }

  /** Only while MySync has it open, and nobody is just opening or closing it. */
  static async open(path: string, topic: string): Promise<EmbeddedLogEye | null> {
    if (!existsSync(join(path, 'data.mdb')) || existsSync(join(path, 'gate'))) return null;
    const root = open<Buffer, string>({
      path,
      noSubdir: false,
      mapSize: 2 ** 40,
      maxDbs: 4,
      encoding: 'binary',
      readOnly: true,
    });
    try {
      return new EmbeddedLogEye(root, topic);
    } catch (error) {
      await root.close();
      throw error;
    }
  }

  async read(onMessage: (message: LoggedMessage) => void): Promise<readonly number[]> {
    const topic = this.#entry();
    if (topic === undefined) return [];
    const ends = await this.ends();
    const [start, end] = bounds(topic.id);
    for (const { key, value } of this.#records.getRange({ start, end })) {
      readStoredBatch(Buffer.from(key).readUInt32BE(8), Buffer.from(value), onMessage);
    }
    return ends;
  }

  /** From the newest batch on: of a topic that is written often, and compacted rarely, this is one of the first. */
  async newest(name: string, wanted: string): Promise<Buffer | null> {
    const topic = this.#entry(name);
    if (topic === undefined) return null;
    const [start, end] = bounds(topic.id);
    let found: Buffer | null = null;
    for (const { value } of this.#records.getRange({ start: end, end: start, reverse: true })) {
      readStoredBatch(0, Buffer.from(value), ({ key, message, tombstone }) => {
        if (!tombstone && Buffer.from(key).toString('utf8') === wanted) found = Buffer.from(message);
      });
      if (found !== null) break;
    }
    return found;
  }

  async ends(): Promise<readonly number[]> {
    return this.#states('end');
  }

  async cleaned(): Promise<readonly number[]> {
    return this.#states('cleanedTo');
  }

  async committed(group: string): Promise<readonly number[]> {
    const topic = this.#entry();
    if (topic === undefined) return [];
    return Array.from({ length: topic.partitions }, (_, partition) => {
      return this.#read<{ committed: number | null }>(`owner/${topic.id}/${group}/${partition}`)?.committed ?? -1;
    });
  }

  async close(): Promise<void> {
    await this.#root.close();
  }

  #states(field: 'end' | 'cleanedTo'): readonly number[] {
    const topic = this.#entry();
    if (topic === undefined) return [];
    return Array.from({ length: topic.partitions }, (_, partition) => {
      return this.#read<Record<typeof field, number>>(`partition/${topic.id}/${partition}`)?.[field] ?? 0;
    });
  }

  #entry(topic = this.#topic): { id: string; partitions: number } | undefined {
    this.#root.resetReadTxn();
    return this.#read<{ id: string; partitions: number }>(`topic/${topic}`);
  }

  #read<T>(key: string): T | undefined {
    const bytes = this.#meta.get(key);
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString('utf8')) as T);
  }
}

/** Where the batches of a topic lie: from the first key on, and before the second. */
function bounds(topicId: string): readonly [Buffer, Buffer] {
  const next = (BigInt(`0x${topicId}`) + 1n).toString(16).padStart(16, '0');
  return [Buffer.from(topicId, 'hex'), Buffer.from(next, 'hex')];
}

/** A batch as docs/spec/embedded-log.md's store holds it: 48 bytes of header, then the records. */
function readStoredBatch(partition: number, batch: Buffer, onMessage: (message: LoggedMessage) => void): void {
  const base = batch.readDoubleLE(16);
  let at = 48;
  for (let left = batch.readUInt32LE(12); left > 0; left -= 1) {
    const length = batch.readUInt32LE(at);
    const offset = base + batch.readUInt32LE(at + 4);
    const keyEnd = at + 18 + batch.readUInt32LE(at + 8);
    const valueLength = batch.readInt32LE(at + 12);
    const tombstone = valueLength < 0;
    // the only header is the message of a tombstone
    const headerAt = keyEnd + 6 + (tombstone ? batch.readUInt16LE(keyEnd) : 0);
    const message = tombstone
      ? batch.subarray(headerAt, headerAt + batch.readUInt32LE(keyEnd + 2))
      : batch.subarray(keyEnd, keyEnd + valueLength);
    onMessage({ partition, offset, key: batch.subarray(at + 18, keyEnd), message, tombstone });
    at += length;
  }
}
