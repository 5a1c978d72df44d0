import { errorCatalogue } from '@mysync/core';

/** Every error of this room. A finding of the doctor has the code of the error that a start would raise. */
export const sourceErrors = errorCatalogue({
  SOURCE_ACCESS_DENIED: {
    remedy:
      'Correct user and password of the source, or let an administrator create the user: the error names the statements.',
    retriable: false,
  },
  SOURCE_ACCESS_LOST: {
    remedy:
      'The server refuses the user that it let in before. Give the user its password and rights back; it is tried again. Other credentials need a restart of the reader. Nothing is lost.',
    retriable: true,
  },
  SOURCE_UNREACHABLE: {
    remedy: 'Start the server, or correct host and port of the source; check firewalls and bind-address.',
    retriable: true,
  },
  SOURCE_TLS_FAILED: {
    remedy:
      'Correct the tls settings of the source: the certificate authority, or the name that the certificate is for.',
    retriable: false,
  },
  SOURCE_CONNECTION_LOST: {
    remedy:
      'Nothing: it is retried from the last transaction boundary. If it stays, look at the server and the network.',
    retriable: true,
  },
  SOURCE_QUERY_FAILED: {
    remedy: 'Read the cause, which is the text of the server.',
    retriable: false,
  },
  SOURCE_VERSION_UNSUPPORTED: {
    remedy: 'Use MySQL 8.0.1 or later, or MariaDB 10.5 or later: older ones cannot write full row metadata.',
    retriable: false,
  },
  SOURCE_BINLOG_OFF: {
    remedy: 'Start the server with --log-bin=binlog and a --server-id that is not 0; this needs a restart.',
    retriable: false,
  },
  SOURCE_FORMAT_NOT_ROW: {
    remedy:
      "SET GLOBAL binlog_format = 'ROW'; then let every client connect anew, and set it in the server's configuration.",
    retriable: false,
  },
  SOURCE_ROW_IMAGE_NOT_FULL: {
    remedy:
      "SET GLOBAL binlog_row_image = 'FULL'; then let every client connect anew, and set it in the server's configuration. Or let such rows be read again (onPartialRow: reread).",
    retriable: false,
  },
  SOURCE_ROW_METADATA_NOT_FULL: {
    remedy:
      "SET GLOBAL binlog_row_metadata = 'FULL'; and set it in the server's configuration. Where that is not possible, set rowMetadata: history for the source: table definitions are then kept beside the checkpoint.",
    retriable: false,
  },
  SOURCE_COMMIT_ORDER_OFF: {
    remedy: 'SET GLOBAL binlog_order_commits = ON; and set it in the configuration of the server.',
    retriable: false,
  },
  SOURCE_GTID_OFF: {
    remedy: 'Switch gtid_mode on step by step (OFF_PERMISSIVE, ON_PERMISSIVE, ON), with enforce_gtid_consistency = ON.',
    retriable: false,
  },
  SOURCE_GTID_STRICT_OFF: {
    remedy: 'SET GLOBAL gtid_strict_mode = ON; and set it in the configuration of the server.',
    retriable: false,
  },
  SOURCE_RETENTION_SHORT: {
    remedy: 'SET GLOBAL binlog_expire_logs_seconds = 604800; and set it in the configuration of the server.',
    retriable: false,
  },
  SOURCE_GRANT_MISSING: {
    remedy: 'Run the GRANT statement as an administrator.',
    retriable: false,
  },
  SOURCE_SERVER_ID_IN_USE: {
    remedy: 'Give the source another serverId, or stop the other replica that uses this one.',
    retriable: false,
  },
  SOURCE_TABLES_NONE: {
    remedy:
      'Correct the patterns of the tables to capture, or let the user see the tables (GRANT SELECT): as it is, no row would ever be captured.',
    retriable: false,
  },
  SOURCE_TABLE_WITHOUT_KEY: {
    remedy: 'Give the table a primary key, or set noKey: row-hash for it, or do not capture it.',
    retriable: false,
  },
  SOURCE_TABLE_VERSIONED: {
    remedy:
      'Nothing, where the table is small or seldom changes; else version it by time (ROW START and ROW END as TIMESTAMP(6), or none of its own), or do not capture it.',
    retriable: false,
  },
  SOURCE_TYPE_UNSUPPORTED: {
    remedy:
      'Do not capture the table, or change the type of the column; then start again from a snapshot of the table.',
    retriable: false,
  },
  SOURCE_ROW_METADATA_MISSING: {
    remedy:
      "SET GLOBAL binlog_row_metadata = 'FULL'; the rows logged before it cannot be read exactly: start again with a snapshot. Or set rowMetadata: history for the source: table definitions are then kept beside the checkpoint.",
    retriable: false,
  },
  SOURCE_SCHEMA_UNKNOWN: {
    remedy:
      'Say what the table was like there, with the command mysync ddl accept that the error names; or start again with a snapshot.',
    retriable: false,
  },
  SOURCE_SCHEMA_MISFIT: {
    remedy:
      'Say what the table was like there, with the command mysync ddl accept that the error names; or start again with a snapshot.',
    retriable: false,
  },
  SOURCE_DDL_UNDECIDED: {
    remedy:
      'Say what the statement made of the table, with one of the commands mysync ddl accept and mysync ddl skip that the error names.',
    retriable: false,
  },
  SOURCE_DDL_QUESTION_NONE: {
    remedy: "Copy the command from the reader's error, or look at mysync ddl list.",
    retriable: false,
  },
  SOURCE_DEFINITION_INVALID: {
    remedy: 'Give the CREATE TABLE statement as SHOW CREATE TABLE prints it.',
    retriable: false,
  },
  SOURCE_ROW_IMAGE_PARTIAL: {
    remedy:
      "A session wrote with binlog_row_image other than FULL, or MariaDB logged a generated column not at all, or not surely with the row's value. Let such rows be read again (onPartialRow: reread); or SET GLOBAL binlog_row_image = 'FULL', find that session, and start again with a snapshot.",
    retriable: false,
  },
  SOURCE_ROW_UNREADABLE: {
    remedy: 'Please report it with this text and the CREATE TABLE statement; to go on, start again with a snapshot.',
    retriable: false,
  },
  SOURCE_EVENT_UNREADABLE: {
    remedy:
      'The log holds an event that cannot be read; nothing after it was handed over. Start again with a snapshot.',
    retriable: false,
  },
  SOURCE_LOG_REFUSED: {
    remedy:
      'Read the cause, which is the text of the server. If the log there cannot be read, start again with a snapshot.',
    retriable: false,
  },
  SOURCE_XA_PREPARE_GONE: {
    remedy:
      'The rows of an XA transaction were in a file of the log that is gone: start again with a snapshot. Keep files for longer than an XA transaction stays prepared.',
    retriable: false,
  },
  SOURCE_CASCADE_SUSPECTED: {
    remedy:
      "MariaDB, MySQL before 9.6, and MySQL with innodb_native_foreign_keys do not log the rows that a foreign key's CASCADE or SET NULL changes: the table is read again after each such change (onUnseenChange), which costs as much as the table is large. Where innodb_native_foreign_keys is on, start the server without it: the rows are logged then.",
    retriable: false,
  },
  SOURCE_SERVER_CHANGED: {
    remedy: 'Point the source at the former server, or start again with a snapshot of this one.',
    retriable: false,
  },
  SOURCE_BINLOG_PURGED: {
    remedy:
      'The log no longer reaches back to our position: start again with a snapshot. Raise binlog_expire_logs_seconds so that it does not happen again.',
    retriable: false,
  },
  SOURCE_POSITION_UNKNOWN: {
    remedy:
      'The log was reset, or the server was restored from an older state: what was written meanwhile is not in it. Start again with a snapshot.',
    retriable: false,
  },
  SOURCE_SNAPSHOT_DENIED: {
    remedy:
      'Grant RELOAD to the user, or LOCK TABLES on the captured databases, so that the snapshot can find its position in the log.',
    retriable: false,
  },
  SOURCE_SNAPSHOT_RESTART: {
    remedy: 'Nothing: the snapshot is started over.',
    retriable: true,
  },
  SOURCE_SPOOL_FAILED: {
    remedy: 'Make room in the spool folder, or set spoolFolder to a larger disk.',
    retriable: false,
  },
});

/** A file of the log has the name, but not the time of creation, of the one that was read before. */
export function fileReplaced(position: string, before: number, now: number): Error {
  const when = (seconds: number): string => new Date(seconds * 1000).toISOString();
  return sourceErrors.SOURCE_POSITION_UNKNOWN({
    message: `the file of the log was begun at ${when(now)}, the one of this name that was read before at ${when(before)}: the log was reset`,
    where: { position },
  });
}
