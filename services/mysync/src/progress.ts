import type { Clock, Logger } from '@mysync/core';
import type { SnapshotProgress } from '@mysync/source-mysql';
import { duration, type Output } from './output.ts';

const DRAW_MS = 200;
const LOG_MS = 5_000;
const BAR_CHARACTERS = 16;

interface TableProgress {
  readonly startedAt: number;
  rows: number;
}

/** Shows how far the reading of existing rows is: a bar on a terminal, a log line now and then elsewhere. */
export class ProgressDisplay {
  readonly #output: Output;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #tables = new Map<string, TableProgress>();
  #shownAt = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(options: { output: Output; logger: Logger; clock: Clock }) {
    this.#output = options.output;
    this.#logger = options.logger;
    this.#clock = options.clock;
  }

  show(progress: SnapshotProgress): void {
    const table = `${progress.table.database}.${progress.table.table}`;
    const now = this.#clock.monotonic();
    const known = this.#tables.get(table) ?? { startedAt: now, rows: 0 };
    this.#tables.set(table, known);
    known.rows = progress.rows;
    const due = now - this.#shownAt >= (this.#output.live ? DRAW_MS : LOG_MS);
    if (!due && !progress.done) return;
    this.#shownAt = now;
    const seconds = (now - known.startedAt) / 1000;
    const rowsPerSecond = seconds > 0 ? Math.round(progress.rows / seconds) : 0;
    const left = secondsLeft(progress, rowsPerSecond);
    if (this.#output.live) {
      this.#draw(progressLine(table, progress, rowsPerSecond, left), progress.done);
      return;
    }
    const { rows, estimatedRows, done } = progress;
    const message = done ? 'table read' : 'reading existing rows';
    this.#logger.info(
      { table, rows, estimatedRows, rowsPerSecond, ...(left === null ? {} : { secondsLeft: left }) },
      message,
    );
  }

  /** The table is given up: whatever is printed next begins a line of its own. */
  end(): void {
    if (this.#drawn) this.#output.note('\n');
    this.#drawn = false;
  }

  #draw(line: string, done: boolean): void {
    const text = line.slice(0, Math.max(20, this.#output.columns - 1));
    this.#output.note(`${this.#drawn ? '\r\x1b[2K' : ''}${text}${done ? '\n' : ''}`);
    this.#drawn = !done;
  }
}

function secondsLeft({ rows, estimatedRows, done }: SnapshotProgress, rowsPerSecond: number): number | null {
  if (done || estimatedRows <= rows || rowsPerSecond === 0) return null;
  return Math.round((estimatedRows - rows) / rowsPerSecond);
}

/** `shop.orders  [#######.........]  42%  12000 of ~28000 rows  9000 rows/s  2 s left`. */
export function progressLine(
  table: string,
  { rows, estimatedRows, done }: SnapshotProgress,
  rowsPerSecond: number,
  left: number | null,
): string {
  // The estimate is the server's and may be low: a bar is never full before the end.
  const share = done ? 1 : estimatedRows > 0 ? Math.min(0.99, rows / estimatedRows) : 0;
  const full = Math.round(share * BAR_CHARACTERS);
  const bar = `[${'#'.repeat(full)}${'.'.repeat(BAR_CHARACTERS - full)}]`;
  const parts = [table, bar, `${Math.floor(share * 100)}%`];
  parts.push(done || estimatedRows <= rows ? `${rows} rows` : `${rows} of ~${estimatedRows} rows`);
  parts.push(`${rowsPerSecond} rows/s`);
  if (left !== null) parts.push(`${duration(left)} left`);
  return parts.join('  ');
}
