import { z } from 'zod';
import {
  choice,
  flag,
  formedText,
  hostProblem,
  integer,
  milliseconds,
  optionInfo,
  secret,
  section,
  text,
  tls,
} from './elements.ts';

const WEEK_MS = 7 * 24 * 3_600_000;
const MEBI = 2 ** 20;

function logSection() {
  return section(
    {
      path: text('Folder of the log. On a local disk: not a network file system.').default('./mysync-data/log'),
      fsync: choice(
        ['commit', 'interval'],
        'When a batch counts as stored: on disk, or in the page cache and on disk soon after. With interval a power failure (not the death of a process) may damage the log so that it must be made anew.',
      ).default('commit'),
      fsyncIntervalMs: milliseconds('With fsync interval: at most so long until a batch is on disk.').default(1_000),
      maxBytes: integer('Bytes of messages that the log may hold; beyond, reading pauses. Default: no limit.', {
        min: 2 ** 20,
      }).exactOptional(),
      minFreeBytes: integer('Bytes that stay free on the disk.', { min: 0 }).default(64 * MEBI),
      maxRecordBytes: integer('Largest record; that of an update holds the row before and after it.', {
        min: 1_024,
        max: 2 ** 30,
      }).default(256 * MEBI),
      memberLeaseMs: milliseconds('How long a frozen writer keeps its partitions.', { min: 1_000 }).default(10_000),
      compactionIntervalMs: milliseconds('Pause between two rounds of compaction and retention.').default(15_000),
      compactionMemoryBytes: integer(
        'Memory for the keys of rows that changed since compaction last came by: 64 MiB hold about a million. With more of them in one partition compaction takes more CPU.',
        { min: MEBI },
      ).default(64 * MEBI),
    },
    'The embedded log: for one machine, nothing to install.',
  );
}

function kafkaSection() {
  const broker = formedText('An address.', 'HOST:PORT', (value) => hostProblem(value, true));
  return section(
    {
      brokers: z
        .array(broker)
        .register(optionInfo, { description: 'Some brokers of the cluster; the others are found through them.' })
        .default([]),
      clientId: text('Name that the brokers log us under.').default('mysync'),
      tls: tls().exactOptional(),
      sasl: section(
        {
          mechanism: choice(['plain', 'scram-sha-256', 'scram-sha-512'], 'How the password is proved.').default(
            'scram-sha-512',
          ),
          username: text('The user.'),
          password: secret('Password of the user.'),
        },
        'Login at the brokers. Left out: none.',
      ).exactOptional(),
      compression: choice(['none', 'gzip'], 'Compression of the batches published. Reading takes both.').default(
        'none',
      ),
      replicationFactor: integer('Replicas of a topic that MySync makes, and the least an existing one may have.', {
        min: 1,
        max: 32_767,
      }).default(3),
      minInsyncReplicas: integer(
        '`min.insync.replicas` of the topic: replicas that must have stored a batch before it counts.',
        {
          min: 1,
          max: 32_767,
        },
      ).default(2),
      requestTimeoutMs: milliseconds('A request without an answer for so long counts as lost.').default(10_000),
      connectionTimeoutMs: milliseconds('How long to wait for a connection.').default(5_000),
      sessionTimeoutMs: milliseconds(
        'A writer not heard of for so long loses its partitions. Brokers take nothing below their group.min.session.timeout.ms (6000).',
        { min: 1_000 },
      ).default(6_000),
      maxRecordBytes: integer(
        'Largest record; that of an update holds the row before and after it. Becomes `max.message.bytes` of the topic.',
        {
          min: 1_024,
          max: 2 ** 30,
        },
      ).default(8 * MEBI),
      stallMs: milliseconds('Connections are replaced when nothing moved for so long although it should.', {
        min: 1_000,
      }).default(60_000),
      fetchWaitMs: milliseconds(
        'How long a broker may hold the request of a reader that has nothing new to get.',
      ).default(500),
    },
    'Apache Kafka 2.8 or newer: for production.',
  );
}

export function transportSection() {
  return section(
    {
      kind: choice(['log', 'kafka'], 'What carries the messages: the embedded log, or Kafka.').default('log'),
      log: logSection().prefault({}),
      kafka: kafkaSection().prefault({}),
      partitions: integer(
        'Partitions of a topic that is made anew: writers work in parallel per partition. It cannot be changed later.',
        { min: 1, max: 10_000 },
      ).default(4),
      compacted: flag(
        'Keep the newest message of every row for ever, so that a new sink can be filled from the log alone.',
      ).default(true),
      deleteRetentionMs: milliseconds('How long the log remembers deletions: longer than a writer may be down.', {
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
      }).default(WEEK_MS),
      minCompactionLagMs: milliseconds(
        'Messages younger than this are not compacted: longer than a reader may be down.',
        {
          min: 0,
          max: Number.MAX_SAFE_INTEGER,
        },
      ).default(WEEK_MS),
      retentionMs: milliseconds('How long a topic that is not compacted keeps its messages; -1 for ever.', {
        min: -1,
        max: Number.MAX_SAFE_INTEGER,
      }).default(-1),
      allowWeakerTopic: flag(
        'Accept settings under which changes can be lost when a broker dies, or deletions be forgotten: one replica, unclean election, short retention. For development.',
      ).default(false),
    },
    'The log between reader and writers.',
  );
}
