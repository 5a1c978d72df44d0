import type { TestServer } from '@mysync/harness';
import { DATABASE, TABLE } from './table.ts';

export type TransportChoice =
  | { readonly kind: 'log'; readonly path: string }
  | { readonly kind: 'kafka'; readonly brokers: string };

export type SinkChoice =
  | { readonly kind: 'redis'; readonly as: 'hash' | 'json'; readonly url: string }
  | { readonly kind: 'elasticsearch'; readonly url: string };

export interface ConfigChoice {
  readonly server: TestServer;
  readonly topic: string;
  readonly start: string;
  readonly checkpoints: string;
  readonly transport: TransportChoice;
  readonly partitions: number;
  /** Its name names the consumer group too: each measurement has one of its own. */
  readonly sinkName: string;
  readonly sink: SinkChoice | null;
}

/** Defaults everywhere but for addresses, and heartbeats, which would blur the count of messages. */
export function mysyncConfig(choice: ConfigChoice): unknown {
  const { server, topic, start, checkpoints, transport, partitions, sinkName, sink } = choice;
  return {
    sources: {
      bench: {
        hosts: [`${server.get('MYSQL_HOST')}:${server.get('MYSQL_PORT')}`],
        user: server.get('MYSQL_USER'),
        password: server.get('MYSQL_PASSWORD'),
        tables: [`${DATABASE}.*`],
        start,
        topic,
      },
    },
    transport:
      transport.kind === 'log'
        ? { kind: 'log', partitions, log: { path: transport.path } }
        : {
            kind: 'kafka',
            partitions,
            allowWeakerTopic: true,
            kafka: { brokers: transport.brokers.split(','), replicationFactor: 1, minInsyncReplicas: 1 },
          },
    reader: { heartbeatMs: 3_600_000 },
    checkpoint: { path: checkpoints },
    sinks: sink === null ? {} : { [sinkName]: sinkConfig(sink) },
    telemetry: { port: 0, logLevel: 'info' },
  };
}

function sinkConfig(sink: SinkChoice): unknown {
  const match = [`${DATABASE}.${TABLE}`];
  if (sink.kind === 'redis') {
    return { kind: 'redis', url: sink.url, tables: [{ match, as: sink.as, key: '{table}:{column:id}' }] };
  }
  return { kind: 'elasticsearch', nodes: [sink.url], tables: [{ match, index: TABLE, id: '{column:id}' }] };
}
