import { createHash } from 'node:crypto';
import { topicOf } from './rules.ts';
import type { Config } from './schema/index.ts';

/**
 * 16 hex digits over what decides which changes of a source are published, and under which numbers: when it differs from that
 * of the checkpoint, versions jump (design: delivery).
 */
export function configFingerprint(config: Config, source: string): string {
  const options = config.sources[source];
  const partitionBy = Object.entries(options?.partitionBy ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    1,
    source,
    topicOf(config, source),
    options?.tables,
    options?.noKey,
    partitionBy,
    config.transport.partitions,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}
