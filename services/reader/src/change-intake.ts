import type { SourceItem, SourceRow, SourceTableChange } from '@mysync/source-mysql';
import type { Metrics } from '@mysync/telemetry';
import type { CapturedTables } from './captured-tables.ts';
import type { ChangeRouter } from './change-router.ts';
import type { WindowFeed } from './window-feed.ts';

export interface ChangeIntakeOptions {
  readonly source: string;
  readonly router: ChangeRouter;
  readonly feed: WindowFeed;
  readonly tables: CapturedTables;
  readonly metrics: Metrics;
}

const COUNTED = ['insert', 'update', 'delete', 'read', 'truncate', 'ddl', 'sweep'] as const;

/** Takes changes over, of the log or of a view: each goes where the router says, in their order. */
export class ChangeIntake {
  readonly #options: ChangeIntakeOptions;
  /** Not yet in the metrics: a labelled counter costs more than handling a row, so it is asked once per batch. */
  readonly #rows: Record<string, number> = Object.fromEntries(COUNTED.map((operation) => [operation, 0]));

  constructor(options: ChangeIntakeOptions) {
    this.#options = options;
  }

  /** Takes the row over at once (null), or gives a promise that resolves once there was room for it. */
  row(row: SourceRow): Promise<void> | null {
    const { router, feed, metrics, source } = this.#options;
    this.#count(row.operation);
    const partition = router.route(row);
    if (partition < 0) {
      metrics.reader.skipped.inc({ source });
      row.giveBack();
      return null;
    }
    return feed.put(partition, router.rowEntry(row));
  }

  async tableChange(change: SourceTableChange): Promise<void> {
    const { router, tables } = this.#options;
    tables.note(change, router.transactionCounter);
    await this.#tell(change);
  }

  /** What a view holds: rows, a sweep after each table, a truncate of what is gone. What follows from them is noted once all of it is acked. */
  async view(items: readonly SourceItem[]): Promise<void> {
    for (const item of items) {
      if (item.kind === 'row') {
        const full = this.row(item);
        if (full !== null) await full;
      } else if (item.kind === 'sweep' || item.kind === 'truncate') await this.#tell(item);
    }
    this.endBatch();
  }

  /** What was taken over is sent, and counted. */
  endBatch(): void {
    const { feed, metrics, source } = this.#options;
    for (const operation of COUNTED) {
      const count = this.#rows[operation] ?? 0;
      if (count === 0) continue;
      this.#rows[operation] = 0;
      metrics.reader.rows.inc({ source, operation }, count);
    }
    feed.flush();
  }

  async #tell(change: SourceTableChange): Promise<void> {
    const { router, feed } = this.#options;
    this.#count(change.kind);
    await feed.putAll(router.tableEntries(change));
  }

  #count(operation: string): void {
    this.#rows[operation] = (this.#rows[operation] ?? 0) + 1;
  }
}
