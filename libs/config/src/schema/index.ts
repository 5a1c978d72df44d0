/** The whole configuration, declared once. */
import type { z } from 'zod';
import { named, section } from './elements.ts';
import { checkpointSection, readerSection, telemetrySection } from './reader.ts';
import { sinkVariants } from './sinks.ts';
import { sourceSection } from './source.ts';
import { transportSection } from './transport.ts';

export const configSchema = section(
  {
    sources: named(
      sourceSection(),
      'Servers to read from, by name. Each has a reader, a topic and a checkpoint of its own.',
    ),
    transport: transportSection().prefault({}),
    reader: readerSection().prefault({}),
    checkpoint: checkpointSection().prefault({}),
    sinks: named(sinkVariants(), 'Stores to keep equal to the tables, by name.').default({}),
    telemetry: telemetrySection().prefault({}),
  },
  'MySync.',
);

/** A configuration with every default filled in and every secret resolved. */
export type Config = z.output<typeof configSchema>;
export type SourceConfig = Config['sources'][string];
export type SinkConfig = Config['sinks'][string];
export type RedisConfig = Extract<SinkConfig, { kind: 'redis' }>;
export type ElasticsearchConfig = Extract<SinkConfig, { kind: 'elasticsearch' }>;
export type TransportConfig = Config['transport'];
