import { z } from 'zod';
import {
  choice,
  columnMap,
  flag,
  formedText,
  hostProblem,
  integer,
  milliseconds,
  optionInfo,
  secret,
  section,
  tablePatterns,
  template,
  text,
  texts,
  tls,
  urlProblem,
} from './elements.ts';

const POISON = ['halt', 'park', 'dead-letter'] as const;

/** What the rules of every sink have. */
function projection() {
  return {
    onPoison: choice(POISON, 'For these tables, in place of what the sink says.').exactOptional(),
    match: tablePatterns('Patterns of the tables that this rule is for; the first rule that matches a table is taken.'),
    fields: texts('Columns to keep, in this order. Default: all.').exactOptional(),
    exclude: texts('Columns to leave out.').exactOptional(),
    rename: columnMap(z.string().min(1), 'Column name → name in the store.').exactOptional(),
    mask: columnMap(
      choice(['null', 'hash', 'redact'], 'What stands in place of the value.'),
      'Column name → null, hash (SHA-256: equal values stay equal) or redact (***).',
    ).exactOptional(),
  };
}

/** What every sink has. */
function common() {
  return {
    sources: texts('Names of the sources whose changes this sink takes. Default: all.').exactOptional(),
    group: formedText(
      'Begins the name of the consumer group (-SOURCE follows). A new one makes an emptied sink begin at the first record of the log. Default: mysync-SINK.',
      'letters, digits, . _ -',
      (value) => (/^[A-Za-z0-9._-]{1,120}$/.test(value) ? null : 'is not a group name'),
    ).exactOptional(),
    maxBatchChanges: integer('Most changes in one write to the store.', { min: 1, max: 100_000 }).default(1_000),
    maxBatchBytes: integer('Most bytes read from the log at a time.', { min: 1_024, max: 2 ** 30 }).default(
      4 * 2 ** 20,
    ),
    commitIntervalMs: milliseconds(
      'Offsets are committed at most this often; what is applied does not depend on it.',
    ).default(1_000),
    handoverMs: milliseconds('How long a partition that must be given up may still finish its write.', {
      min: 100,
    }).default(10_000),
    onPoison: choice(
      POISON,
      'A change that the store can never take. halt: its partition stops, loudly. park: its key is set aside, its later changes wait there, all others go on (mysync dlq). dead-letter: it goes to a topic of its own, and later changes of its key are applied.',
    ).default('halt'),
    maxParkedKeys: integer('Most keys of one partition that are set aside; one more halts it.', {
      min: 1,
      max: 1_000,
    }).default(100),
    deadLetterTopic: formedText(
      'Topic of the dead letters and of what mysync dlq did (-SOURCE follows). Default: mysync-dlq-SINK.',
      'letters, digits, . _ -',
      (value) => (/^[A-Za-z0-9._-]{1,120}$/.test(value) ? null : 'is not a topic name'),
    ).exactOptional(),
    deadLetterRetentionMs: integer('How long dead letters are kept; -1 for ever.', { min: -1 }).default(-1),
  };
}

function elasticsearchSink() {
  const rule = section(
    {
      ...projection(),
      index: template(
        'Index name with {database} and {table}. Default: {database}-{table} in lower case.',
      ).exactOptional(),
      id: template('Document id: {key}, {column:NAME} … Must hold the whole key. Default: {key}.').exactOptional(),
      longIds: choice(
        ['hash', 'refuse'],
        'An id of over 512 bytes: take its hash, or refuse the change.',
      ).exactOptional(),
      mappings: columnMap(
        z.record(z.string(), z.unknown()),
        'Column name → mapping in place of the derived one.',
      ).exactOptional(),
      settings: columnMap(z.unknown(), 'Settings of the index when it is made.', 'SETTING').exactOptional(),
      dynamic: choice(['false', 'strict', 'true'], 'What the index does with fields it does not know.').exactOptional(),
      zeroDates: choice(
        ['raw', 'null', 'refuse'],
        'Dates that are no day of the calendar: null with the text in NAME_raw, null alone, or refuse the change. Default: raw.',
      ).exactOptional(),
      decimals: choice(
        ['string', 'scaled_float', 'double'],
        'How DECIMAL is indexed. Default: string, exact.',
      ).exactOptional(),
      json: choice(['text', 'object', 'flattened'], 'How JSON columns are indexed. Default: text.').exactOptional(),
      sets: choice(['array', 'text'], 'How SET columns are stored. Default: array.').exactOptional(),
      refresh: flag('Make each batch visible to searches before it counts as applied. Default: false.').exactOptional(),
    },
    'How the rows of some tables become documents.',
  );
  return section(
    {
      kind: z.literal('elasticsearch').register(optionInfo, { description: 'What the store is.' }),
      nodes: z
        .array(
          formedText('An address.', 'http://HOST:PORT or https://HOST:PORT', (value) =>
            urlProblem(value, ['http:', 'https:']),
          ),
        )
        .min(1)
        .register(optionInfo, { description: 'Nodes of the cluster.' }),
      auth: section(
        {
          username: text('The user.').exactOptional(),
          password: secret('Password of the user.').exactOptional(),
          apiKey: secret('An API key, in place of user and password.').exactOptional(),
        },
        'Login. Left out: none.',
      ).exactOptional(),
      tls: tls().exactOptional(),
      tables: z.array(rule).min(1).register(optionInfo, { description: 'Rules: which tables, and how.' }),
      markerIndex: text('Index of the applied markers.').default('mysync-markers'),
      metaField: text('Field with stream, table and version in each document.').default('_mysync'),
      maxBulkBytes: integer('Most characters of one bulk request; a larger document goes alone.', {
        min: 1_024,
      }).default(8 * 2 ** 20),
      compression: flag('Compress the requests.').default(false),
      requestTimeoutMs: milliseconds('A request without an answer for so long counts as failed.').default(60_000),
      gcDeletesSeconds: integer(
        'How long the index remembers the version of a deleted document (`index.gc_deletes`).',
        {
          min: 60,
        },
      ).default(3_600),
      ownershipCheckMs: milliseconds(
        'The marker is read again when it was last confirmed longer ago than this.',
      ).default(5_000),
      restoreReplayMs: milliseconds(
        'After indices and markers were restored from a snapshot, what was applied in this long before the restored markers is applied again. Longer than a snapshot takes.',
      ).default(600_000),
      templates: flag('Put an index template for each index.').default(true),
      ...common(),
    },
    'Elasticsearch 8 or 9.',
  );
}

function redisUrlProblem(value: string): string | null {
  const problem = urlProblem(value, ['redis:', 'rediss:']);
  if (problem !== null) return problem;
  const { hostname, pathname, search } = new URL(value);
  if (hostname === '') return 'names no host';
  return /^(?:\/\d{0,5})?$/.test(pathname) && search === '' ? null : 'goes on behind the database number';
}

function redisSink() {
  const index = section(
    {
      key: template(
        'Key of the set, for example {table}:by_customer:{column:customer_id}. A row with a NULL there is in no set.',
      ),
      kind: choice(['set', 'sorted-set'], 'A plain set, or one in the order of `score`.'),
      member: template('What stands in the set for a row. Default: {key}.').exactOptional(),
      score: text(
        'Of a sorted set: a column of a number type. Redis keeps scores as doubles. A row with a NULL score is in no set.',
      ).exactOptional(),
    },
    'A set of rows, kept in the same step as the rows.',
  );
  const rule = section(
    {
      ...projection(),
      as: choice(['hash', 'json'], 'A row as a hash with one field per column, or as one JSON text.').default('hash'),
      key: template(
        'Key of a row: {database}, {table}, {key}, {column:NAME} … Must hold the whole key of the table. Default: {table}:{key}.',
      ).exactOptional(),
      ttlSeconds: integer('Keys vanish this long after their last change. Default: never.', { min: 1 }).exactOptional(),
      nulls: choice(
        ['omit', 'empty'],
        'NULL in a hash: the field is not there, or it is empty. Default: omit.',
      ).exactOptional(),
      bytes: choice(
        ['base64', 'hex', 'raw'],
        'Binary columns in a hash; in JSON raw means base64. Default: base64.',
      ).exactOptional(),
      decimals: choice(
        ['string', 'number'],
        'DECIMAL in JSON: as text, or as a number with all its digits. Default: string.',
      ).exactOptional(),
      indexes: z.array(index).register(optionInfo, { description: 'Sets of rows by other columns.' }).exactOptional(),
    },
    'How the rows of some tables become keys.',
  );
  const host = formedText('An address.', 'HOST or HOST:PORT (port 6379 when left out)', (value) =>
    hostProblem(value, false),
  );
  return section(
    {
      kind: z.literal('redis').register(optionInfo, { description: 'What the store is.' }),
      hosts: z
        .array(host)
        .min(1)
        .register(optionInfo, {
          description: 'One server: the first that answers as a master. With `cluster`: some of its nodes.',
        })
        .exactOptional(),
      url: formedText(
        'Address of one server, in place of `hosts` and `db`. rediss:// is the same with TLS.',
        'redis://HOST[:PORT][/DB] or rediss://…',
        (value) => redisUrlProblem(value),
      ).exactOptional(),
      cluster: flag('The servers form a Redis Cluster.').default(false),
      username: text('The user. Left out: the default user.').exactOptional(),
      password: secret('Password of the user.').exactOptional(),
      db: integer('Database number; 0 in a cluster.', { min: 0, max: 65_535 }).default(0),
      tls: tls().exactOptional(),
      tables: z.array(rule).min(1).register(optionInfo, { description: 'Rules: which tables, and how.' }),
      prefix: text("Begins the names of MySync's own keys. Two sinks in one database need two prefixes.").default(
        'mysync',
      ),
      deletedTtlSeconds: integer(
        'How long the version of a deleted row is kept: longer than a writer can be frozen and still send.',
        {
          min: 60,
        },
      ).default(86_400),
      failoverReplayMs: milliseconds(
        'Of a cluster: when another server has become a master, what was applied in this long before is applied again. Longer than a failover takes, shorter than `deletedTtlSeconds`.',
      ).default(60_000),
      connectTimeoutMs: milliseconds('How long to wait for a connection.').default(5_000),
      commandTimeoutMs: milliseconds('After this long without an answer the connection is replaced.').default(10_000),
      chunkRows: integer('Rows that one script writes.', { min: 1, max: 10_000 }).default(100),
      ...common(),
    },
    'Redis 6.2 or later, alone or as a cluster.',
  );
}

export function sinkVariants() {
  return z
    .discriminatedUnion('kind', [redisSink(), elasticsearchSink()])
    .register(optionInfo, { description: 'A store.' });
}
