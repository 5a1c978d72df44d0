/**
 * Breaks one thing after another while a table of its own is changed, and reports what became of it.
 *
 *     for each fault: break ─► wait ─► mend ─► how long until everything that was committed when it was mended is in the sink?
 *     at the end: changes stop, everything arrives, the table is verified row by row
 *
 * All along the sink's records are looked at: none may ever go back to an older version.
 *
 * The faults are those of source, store and brokers as well, and some last longer than the command that mends them: what fails in passing is asked again
 * (`Again`), and no connection from before the faults is used behind them.
 */
import type { Clock, SourcePosition, TableSchema } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import type { TableReader } from '@mysync/source-mysql';
import { type Again, type Pipeline, SteadyTable, type TableReport, TableVerifier } from '@mysync/verifier';
import type { DrillTable } from './drill-table.ts';
import type { Fault } from './faults.ts';
import { StaleWatch } from './stale-watch.ts';

export interface DrillOptions {
  readonly table: DrillTable;
  /** Of the same table. */
  readonly schema: TableSchema;
  /** Likewise; read when all faults are over. */
  openTable(): Promise<TableReader>;
  currentPosition(): Promise<SourcePosition>;
  readonly sink: Sink;
  readonly pipeline: Pipeline;
  readonly again: Again;
  readonly faults: readonly Fault[];
  /** How long after a fault a first change of the table may take, when there was none under it. */
  readonly patienceMs: number;
  /** Throws when something ended that should not have. */
  requireAlive(): void;
  onFault(kind: string, at: number, of: number): void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface FaultReport {
  readonly kind: string;
  readonly seconds: number;
  /** From mended to everything arrived. */
  readonly recoverySeconds: number;
}

export interface DrillReport {
  readonly faults: readonly FaultReport[];
  readonly changes: number;
  /** How often the sink's records were looked at. */
  readonly looks: number;
  readonly lost: number;
  /** Different or extra at the end. */
  readonly wrong: number;
  /** Records that were seen to go back. */
  readonly stale: number;
}

export async function runDrill(options: DrillOptions): Promise<DrillReport> {
  const { table, schema, sink, again, clock, signal } = options;
  const { database, table: name } = schema;
  const ref = { database, table: name };
  await again.call(() => sink.prepare(schema));
  const targets = table.ids.map((id) =>
    sink.inspector.targetOf({
      schema,
      key: { database, table: name, columns: ['id'], values: [id] },
      row: [id, 0, ''],
    }),
  );
  await settle(options);
  const ended = new AbortController();
  const within = AbortSignal.any([signal, ended.signal]);
  const watch = new StaleWatch();
  const work = [
    table.change(within),
    watch.watch({ inspector: sink.inspector, table: ref, targets, clock, signal: within }),
  ];
  const faults: FaultReport[] = [];
  try {
    for (const [at, fault] of options.faults.entries()) {
      options.onFault(fault.kind, at + 1, options.faults.length);
      faults.push(await Promise.race([one(options, fault), ...work.map(failureOf)]));
    }
  } finally {
    ended.abort();
    await Promise.allSettled(work);
  }
  const found = await verify(options);
  return {
    faults,
    changes: table.changes,
    looks: watch.looks,
    lost: found.missing,
    wrong: found.different + found.extra + found.unsettled,
    stale: watch.stale.length,
  };
}

async function one(options: DrillOptions, fault: Fault): Promise<FaultReport> {
  const { table, clock, patienceMs, signal } = options;
  const before = table.changes;
  try {
    await fault.break();
    await clock.sleep(fault.seconds * 1000, signal);
  } finally {
    await fault.mend();
  }
  const mendedAt = clock.monotonic();
  await settle(options);
  options.requireAlive();
  const recoverySeconds = (clock.monotonic() - mendedAt) / 1000;
  // nothing is lost where nothing was changed: that is no proof. The fault may have been the database's own, so changes may come late
  await table.requireChanged(before, { fault: fault.kind, patienceMs, signal });
  return { kind: fault.kind, seconds: fault.seconds, recoverySeconds };
}

async function settle({ pipeline, currentPosition, again, requireAlive, signal }: DrillOptions): Promise<void> {
  try {
    await pipeline.settled(await again.call(currentPosition), signal);
  } catch (error) {
    // a process that has ended says why nothing moves
    requireAlive();
    throw error;
  }
}

/** Rejects as the work does; never resolves. */
async function failureOf(work: Promise<void>): Promise<never> {
  await work;
  return await new Promise<never>(() => undefined);
}

async function verify(options: DrillOptions): Promise<TableReport> {
  const { schema, openTable: open, currentPosition, sink, pipeline, again, clock, signal } = options;
  const table = { database: schema.database, table: schema.table };
  const reader = await SteadyTable.open({ table, open, again });
  try {
    const verifier = new TableVerifier({
      reader,
      currentPosition,
      sink,
      pipeline,
      again,
      repair: false,
      rowsPerSecond: 0,
      clock,
      onProgress: () => undefined,
      signal,
    });
    return await verifier.run();
  } finally {
    await reader.close();
  }
}
