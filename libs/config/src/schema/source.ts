import { isMysyncError, parseBinlogPosition } from '@mysync/core';
import { z } from 'zod';
import {
  choice,
  columnMap,
  formedText,
  hostProblem,
  integer,
  milliseconds,
  optionInfo,
  secret,
  section,
  sqlTls,
  tablePatterns,
  text,
  texts,
} from './elements.ts';

function startProblem(start: string): string | null {
  if (['snapshot', 'latest', 'earliest'].includes(start)) return null;
  try {
    parseBinlogPosition(start);
    return null;
  } catch (error) {
    if (isMysyncError(error)) return 'is no place to start from';
    throw error;
  }
}

const PARTIAL_ROW = ['reread', 'halt'] as const;
const LARGE_ROW = ['halt', 'withhold'] as const;
const UNSEEN = ['resync', 'stop', 'warn'] as const;

export function sourceSection() {
  const host = formedText('An address.', 'HOST or HOST:PORT (port 3306 when left out)', (value) =>
    hostProblem(value, false),
  );
  return section(
    {
      hosts: z
        .array(host)
        .min(1)
        .register(optionInfo, { description: 'Addresses of the server, tried in order. All must be the same server.' }),
      user: text('The user that MySync connects as; `mysync check` prints the grants it needs.'),
      password: secret('Password of the user.').exactOptional(),
      tls: sqlTls().exactOptional(),
      tables: tablePatterns(
        'Patterns of the tables to capture: `database.table` with * and ?, a leading ! excludes; of those that match, the last decides.',
      ),
      start: formedText(
        'Where a source without a checkpoint begins: with the existing rows, with what comes from now on, with the oldest event of the log, or at a position.',
        'snapshot, latest, earliest or FILE:OFFSET',
        startProblem,
      ).default('snapshot'),
      noKey: choice(
        ['row-hash', 'refuse'],
        'A table with neither a primary key nor a NOT NULL unique key: name its rows by the hash of the whole row, or refuse to start.',
      ).default('row-hash'),
      partitionBy: columnMap(
        texts('Columns.', 1),
        'Per table (`database.table`, no wildcards) the columns whose values choose the partition, in place of the key. A change of one of them becomes a delete and an insert. They are part of the record keys: another setting needs a new topic.',
        'TABLE',
      ).default({}),
      rowMetadata: choice(
        ['full', 'history'],
        'Where the names and types of columns come from. full: from the log itself; the server must write it with binlog_row_metadata=FULL (what MariaDB leaves out even then, UUID and INET, from the definitions beside the checkpoint). history: from the table definitions that are kept beside the checkpoint, for servers that write less; a DDL statement that cannot be followed stops the reader until mysync ddl accept or skip.',
      ).default('full'),
      onPartialRow: choice(
        PARTIAL_ROW,
        'What to do with a row that the log does not hold whole (a session wrote with binlog_row_image other than FULL): read it again from the table, which costs a query for each event, or halt.',
      ).default('reread'),
      onPartialRowOf: columnMap(
        choice(PARTIAL_ROW, 'For this table.'),
        'The same per table (`database.table`, no wildcards), where it differs.',
        'TABLE',
      ).default({}),
      onUnseenChange: choice(
        UNSEEN,
        'What to do when rows of a captured table changed, or may have, and the log does not show how (a statement logged as text, a partition that was dropped, a foreign key on MariaDB, a RENAME onto its name, a table captured later): read the table again, stop, or go on and list the table as incomplete.',
      ).default('resync'),
      onUnseenChangeOf: columnMap(
        choice(UNSEEN, 'For this table.'),
        'The same per table (`database.table`, no wildcards), where it differs.',
        'TABLE',
      ).default({}),
      onLargeRow: choice(
        LARGE_ROW,
        "What to do with a row's change that is larger than the transport takes (maxRecordBytes): halt the reader until the limit is raised, or publish the row's key alone. The image before is left out first, where that is enough. A sink then treats the row as one that it cannot take (onPoison): with park or dead-letter everything else goes on and the next change of the row that fits is applied by itself; with halt (the default of sinks) its partition stops there.",
      ).default('halt'),
      onLargeRowOf: columnMap(
        choice(LARGE_ROW, 'For this table.'),
        'The same per table (`database.table`, no wildcards), where it differs.',
        'TABLE',
      ).default({}),
      onAlter: choice(
        ['keep', 'resync'],
        'Rows that an ALTER TABLE leaves as they are keep the shape they were written with in the sinks (no value for a column added with a DEFAULT, the old name of a renamed column, the record of an old key), or the table is read again.',
      ).default('keep'),
      serverId: integer(
        'Our id as a replica; must differ from those of all servers and replicas. Default: a random free one.',
        {
          min: 1,
          max: 2 ** 32 - 1,
        },
      ).exactOptional(),
      heartbeatMs: milliseconds(
        'The server sends something at least this often; after three times this without a byte the connection is replaced (the next one is given up to a minute, where that happens again at once).',
        { min: 100 },
      ).default(2_000),
      connectionTimeoutMs: milliseconds('How long to wait for a connection.').default(10_000),
      queueBytes: integer('Received bytes of the log, not yet decoded, at which the socket is paused.', {
        min: 65_536,
      }).default(8 * 2 ** 20),
      spoolBytes: integer('Encoded bytes of one open transaction that stay in memory; beyond, it goes to a file.', {
        min: 65_536,
      }).default(16 * 2 ** 20),
      spoolFolder: text(
        "Folder for transactions larger than that. Default: the system's folder for temporary files.",
      ).exactOptional(),
      topic: formedText(
        'Topic that the changes are published to. Default: the name of the source.',
        'letters, digits, . _ -',
        (value) => (/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/.test(value) ? null : 'is not a topic name'),
      ).exactOptional(),
    },
    'One MySQL or MariaDB server.',
  );
}
