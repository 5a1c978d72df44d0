import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * Every metric of MySync, declared once. Names are `mysync_…`; durations in seconds, sizes in bytes, backlog in messages.
 * The reference page (docs/reference/metrics.md) is generated from this registry.
 */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name: `mysync_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Gauge({ name: `mysync_${name}`, help, labelNames, registers });

  return {
    registry,
    collectProcess: () => collectDefaultMetrics({ register: registry }),
    source: {
      rowsReread: counter(
        'source_rows_reread_total',
        'Rows that the log did not hold whole, read again from the table.',
        ['source', 'table'],
      ),
    },
    reader: {
      rows: counter('reader_rows_total', 'Captured row changes read from the source.', ['source', 'operation']),
      transactions: counter('reader_transactions_total', 'Transactions with captured changes.', ['source']),
      published: counter('reader_published_messages_total', 'Messages stored by the transport.', [
        'source',
        'partition',
      ]),
      publishedBytes: counter('reader_published_bytes_total', 'Bytes of messages stored by the transport.', [
        'source',
        'partition',
      ]),
      skipped: counter('reader_skipped_rows_total', 'Rows found already published during recovery.', ['source']),
      rewinds: counter('reader_rewinds_total', 'Times the ack window went back under a new generation.', [
        'source',
        'reason',
      ]),
      withheldRows: counter(
        'reader_withheld_rows_total',
        'Rows of which only the key was published: too large for the transport.',
        ['source', 'table'],
      ),
      windowMessages: gauge('reader_window_messages', 'Messages in the ack window.', ['source', 'partition']),
      windowBytes: gauge('reader_window_bytes', 'Bytes in the ack window.', ['source', 'partition']),
      windowFill: gauge('reader_window_fill_ratio', 'Fill of the fullest ack window, 0 to 1.', ['source']),
      lag: gauge('reader_lag_seconds', 'Now minus commit time of the oldest change not yet acked; 0 when idle.', [
        'source',
      ]),
      checkpointAge: gauge('reader_checkpoint_age_seconds', 'Time since the checkpoint last moved.', ['source']),
      incompleteTables: gauge('reader_incomplete_tables', 'Captured tables of which the log lacks rows.', ['source']),
      unseenChanges: counter(
        'reader_unseen_changes_total',
        'Times that rows of a table may have changed and the log does not show how, by cause.',
        ['source', 'table', 'cause'],
      ),
      resyncingTables: gauge('reader_resyncing_tables', 'Captured tables that are to be read again.', ['source']),
      resyncs: counter('reader_resyncs_total', 'Tables read again.', ['source']),
      reconnects: counter('reader_source_reconnects_total', 'Connections to the source that were replaced.', [
        'source',
      ]),
      snapshotRows: gauge('reader_snapshot_rows', 'Rows read by the running snapshot.', ['source', 'table']),
      snapshotRunning: gauge('reader_snapshot_running', '1 while existing rows are being read.', ['source']),
      foreignRecords: counter('reader_foreign_records_total', 'Records of others found in our partitions.', [
        'source',
        'partition',
      ]),
      up: gauge('reader_up', '1 while the reader streams.', ['source']),
    },
    writer: {
      applied: counter('writer_applied_messages_total', 'Messages applied to the sink.', [
        'sink',
        'source',
        'partition',
      ]),
      stale: counter('writer_stale_changes_total', 'Changes the sink refused because something newer was there.', [
        'sink',
        'source',
        'partition',
      ]),
      verdicts: counter('writer_guard_verdicts_total', 'Verdicts of the sequence guard.', [
        'sink',
        'source',
        'partition',
        'verdict',
      ]),
      gapSeconds: gauge('writer_open_gap_seconds', 'How long a gap in the sequence has stayed open; 0 when none is.', [
        'sink',
        'source',
        'partition',
      ]),
      retries: counter('writer_retries_total', 'Applies tried again after a transient failure.', [
        'sink',
        'source',
        'partition',
        'code',
      ]),
      applySeconds: new Histogram({
        name: 'mysync_writer_apply_seconds',
        help: 'Time the sink took for one batch.',
        labelNames: ['sink', 'source'] as const,
        buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
        registers,
      }),
      lag: gauge(
        'writer_lag_seconds',
        'Now minus commit time of the oldest change not yet committed; 0 when idle, growing while the sink is stuck.',
        ['sink', 'source', 'partition'],
      ),
      backlog: gauge('writer_backlog_messages', 'Messages in the log behind the last applied one.', [
        'sink',
        'source',
        'partition',
      ]),
      stalledSeconds: gauge(
        'writer_stalled_seconds',
        'How long the sink, or the log, has not answered the partition, which tries again; 0 when all is well.',
        ['sink', 'source', 'partition'],
      ),
      halted: gauge('writer_halted', '1 when the partition stopped at a change the sink can never take.', [
        'sink',
        'source',
        'partition',
      ]),
      parkedKeys: gauge('writer_parked_keys', 'Keys that are set aside: the sink could not take a change of theirs.', [
        'sink',
        'source',
        'partition',
      ]),
      deletionsLost: gauge(
        'writer_deletions_lost',
        '1 while rows whose deletions the log had forgotten may stand in the sink.',
        ['sink', 'source', 'partition'],
      ),
      parkedChanges: counter(
        'writer_parked_changes_total',
        'Changes the sink can never take whose key was set aside.',
        ['sink', 'source', 'partition', 'code'],
      ),
      deadLetters: counter(
        'writer_dead_letters_total',
        'Changes the sink can never take that went to the dead letters.',
        ['sink', 'source', 'partition', 'code'],
      ),
      assigned: gauge('writer_assigned_partitions', 'Partitions this process owns.', ['sink', 'source']),
    },
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
