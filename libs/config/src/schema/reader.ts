import { MAX_WINDOW_MESSAGES } from '@mysync/core';
import {
  choice,
  flag,
  formedText,
  hostProblem,
  integer,
  milliseconds,
  secret,
  section,
  sqlTls,
  text,
} from './elements.ts';

export function readerSection() {
  return section(
    {
      windowMessages: integer('Messages published and not yet acked, over all partitions, at which reading pauses.', {
        min: 1,
        max: MAX_WINDOW_MESSAGES,
      }).default(8_192),
      windowBytes: integer('The same in bytes: what a slow transport may cost in memory.', { min: 65_536 }).default(
        16 * 2 ** 20,
      ),
      batchMessages: integer('Most messages in one batch.', { min: 1, max: 100_000 }).default(1_000),
      heartbeatMs: milliseconds('A heartbeat goes into every partition this often.', {
        min: 100,
        max: 3_600_000,
      }).default(10_000),
      checkpointMs: milliseconds('The checkpoint is saved at most this often.', { min: 1, max: 3_600_000 }).default(
        1_000,
      ),
      idleCheckpointMs: milliseconds(
        'The same while nothing captured changes (or as soon as 1 MiB of such log was read): with kind mysql each save is itself a transaction, in the log of the source where it is in the same server.',
        { min: 1, max: 3_600_000 },
      ).default(10_000),
      drainMs: milliseconds('How long a stop waits for what is in flight.', { min: 0, max: 3_600_000 }).default(10_000),
    },
    'Readers of all sources.',
  );
}

export function checkpointSection() {
  return section(
    {
      kind: choice(
        ['file', 'mysql', 'topic'],
        'Where readers keep their position: in files, in a table of MySQL or MariaDB, or in a compacted topic of the transport (TOPIC-checkpoint for each source).',
      ).default('file'),
      path: text('kind file: folder with one file per source. On a local disk.').default('./mysync-data/checkpoints'),
      mysql: section(
        {
          host: formedText('The server.', 'HOST or HOST:PORT (port 3306 when left out)', (value) =>
            hostProblem(value, false),
          ),
          user: text('A user that may SELECT, INSERT, UPDATE, DELETE and CREATE in the database.'),
          password: secret('Password of the user.').exactOptional(),
          tls: sqlTls().exactOptional(),
          database: text(
            'The database, which must be there; the tables mysync_owner, mysync_checkpoint and mysync_schema_history are made in it.',
          ).default('mysync'),
        },
        'kind mysql: the database that keeps the tables.',
      ).exactOptional(),
    },
    'Where a reader resumes.',
  );
}

export function telemetrySection() {
  return section(
    {
      enabled: flag('Serve /metrics, /healthz, /readyz and /status over HTTP.').default(true),
      host: text('Address to listen on. There is no login: 127.0.0.1 keeps it on this machine.').default('127.0.0.1'),
      port: integer('Port to listen on; 0 takes a free one.', { min: 0, max: 65_535 }).default(9_187),
      logLevel: choice(
        ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
        'The least important lines that are logged.',
      ).default('info'),
    },
    'Metrics, health and log lines.',
  );
}
