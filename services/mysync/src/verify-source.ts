/** One source of one sink, compared table by table, while changes go on. */

import type { Checkpoint } from '@mysync/checkpoint';
import { type Config, plainTable, topicOf } from '@mysync/config';
import {
  errorForLog,
  formatTableRef,
  isMysyncError,
  type Logger,
  type MysyncError,
  systemClock,
  type TableRef,
} from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { type BinlogSource, createMysqlSource, type MysqlSourceOptions, surveyTables } from '@mysync/source-mysql';
import { createLogger } from '@mysync/telemetry';
import { Again, LostDeletionsRepair, Pipeline, SteadyTable, type TableReport, TableVerifier } from '@mysync/verifier';
import { CheckpointLook } from './checkpoints.ts';
import { openLookedAtTransport, openSink, required, sourceOptions } from './compose.ts';
import type { CommandContext } from './context.ts';
import { Lifecycle } from './lifecycle.ts';
import { asMysyncError } from './output.ts';
import { ProgressDisplay } from './progress.ts';
import { type LostDeletionsReport, type UncomparedTable, unreadable, VerifyText } from './verify-text.ts';

export interface VerifySettings {
  readonly chunkRows: number;
  readonly rowsPerSecond: number;
  readonly patienceMs: number;
  readonly repair: boolean;
  /** Partitions that stopped for deletions which the log has forgotten may go on. */
  readonly lostDeletions: boolean;
  /** All tables. */
  readonly whole: boolean;
  wants(table: TableRef): boolean;
}

/** Filled while the command runs, so that what was done can be told however it ends. */
export interface SourceReport {
  readonly sink: string;
  readonly source: string;
  readonly tables: TableReport[];
  readonly uncompared: UncomparedTable[];
  /** Partitions whose writers had passed deletions that the log has forgotten; null where none had, or that was not looked into. */
  lostDeletions: LostDeletionsReport | null;
}

export interface VerifySource {
  readonly context: CommandContext;
  readonly config: Config;
  readonly settings: VerifySettings;
  readonly report: SourceReport;
  /** Of each table when it is done. */
  tell(text: string): void;
}

/** Errors of one table alone: the others are compared all the same. */
const OF_ONE_TABLE: ReadonlySet<string> = new Set([
  'VERIFY_TABLE_CHANGED',
  'VERIFY_TOO_MANY_EXTRAS',
  'SOURCE_GRANT_MISSING',
  'SOURCE_QUERY_FAILED',
  'SOURCE_TABLE_WITHOUT_KEY',
  'SOURCE_TYPE_UNSUPPORTED',
]);

/** Throws what ends the command; what was found before stands in the report. */
export async function verifySource(asked: VerifySource): Promise<void> {
  const { context, config, settings, report, tell } = asked;
  const lifecycle = new Lifecycle();
  try {
    const parts = await openParts(asked, lifecycle);
    const { again, checkpoints, sink, options } = parts;
    const checkpoint = await again.call(() => checkpoints.load());
    const survey = await again.call(() => surveyTables(options, knownTables(config, report.source, checkpoint)));
    const wanted = (table: TableRef): boolean => sink.accepts(table) && settings.wants(table);
    const tables = survey.schemas.filter(wanted).map(({ database, table }) => ({ database, table }));
    report.uncompared.push(...survey.unreadable.filter(({ table }) => wanted(table)));
    const refs = [...tables, ...report.uncompared.map(({ table }) => table)];
    if (refs.length === 0) return;
    const text = new VerifyText(report.sink, report.source, refs);
    tell(text.head());
    for (const each of report.uncompared) tell(text.uncompared(each));
    // nothing may be cleared, nor let go on, where nothing will be compared
    if (tables.length === 0) return;
    if (settings.lostDeletions && report.uncompared.length > 0) throw unreadable(report.uncompared);
    const lost = await lostDeletions(asked, parts, checkpoint);
    await lost?.begin();
    await compareTables(asked, parts, tables, text);
    if (lost === null || lost.partitions.length === 0) return;
    const standing = await lost.conclude(report.tables, report.uncompared.length);
    report.lostDeletions = {
      mended: lost.partitions.filter((partition) => !standing.has(partition)),
      standing: [...standing].map(([partition, why]) => ({ partition, why })),
    };
    tell(text.lostDeletions(report.lostDeletions));
  } finally {
    await lifecycle.closeNoting(context.output);
  }
}

interface Parts {
  readonly logger: Logger;
  readonly again: Again;
  readonly options: MysqlSourceOptions;
  readonly source: BinlogSource;
  readonly sink: Sink;
  readonly checkpoints: CheckpointLook;
}

async function openParts({ context, config, settings, report }: VerifySource, lifecycle: Lifecycle): Promise<Parts> {
  const logger = createLogger({ level: config.telemetry.logLevel });
  const options = sourceOptions(config, report.source, logger);
  const source = lifecycle.opened('source', createMysqlSource(options), (opened) => opened.close());
  const sink = await openSink(config, report.sink, report.source, logger);
  lifecycle.opened('sink', sink, (opened) => opened.close());
  const checkpoints = new CheckpointLook(config, report.source);
  lifecycle.opened('checkpoint', checkpoints, (opened) => opened.close());
  const again = new Again({
    clock: systemClock,
    signal: context.signal,
    patienceMs: settings.patienceMs,
    onRetry: (error, delayMs) =>
      logger.warn({ error: errorForLog(error), waitMs: Math.round(delayMs) }, 'trying again'),
  });
  return { logger, again, options, source, sink, checkpoints };
}

/** Throws what ends the command: the tables behind it are named as not reached. */
async function compareTables(
  { context, settings, report, tell }: VerifySource,
  parts: Parts,
  tables: readonly TableRef[],
  text: VerifyText,
): Promise<void> {
  const { signal, output } = context;
  const progress = new ProgressDisplay({ output, logger: parts.logger, clock: systemClock });
  const fail = (table: TableRef, error: MysyncError | null): void => {
    report.uncompared.push({ table, error });
    tell(text.uncompared({ table, error }));
  };
  for (const [at, table] of tables.entries()) {
    try {
      const found = await compareTable(table, parts, settings, progress, signal);
      report.tables.push(found);
      tell(text.table(found));
    } catch (error) {
      progress.end();
      fail(table, signal.aborted ? null : asMysyncError(error));
      if (isMysyncError(error) && OF_ONE_TABLE.has(error.code) && !signal.aborted) continue;
      for (const unreached of tables.slice(at + 1)) fail(unreached, null);
      throw error;
    }
  }
}

async function compareTable(
  table: TableRef,
  { source, sink, again, checkpoints }: Parts,
  { chunkRows, patienceMs, repair, rowsPerSecond }: VerifySettings,
  progress: ProgressDisplay,
  signal: AbortSignal,
): Promise<TableReport> {
  const clock = systemClock;
  const reader = await SteadyTable.open({ table, open: () => source.openTable({ table, chunkRows, signal }), again });
  try {
    const verifier = new TableVerifier({
      reader,
      currentPosition: () => source.currentPosition(),
      sink,
      pipeline: new Pipeline({ loadCheckpoint: () => checkpoints.load(), sink, again, clock, patienceMs }),
      again,
      repair,
      rowsPerSecond,
      clock,
      onProgress: (seen) => progress.show(seen),
      signal,
    });
    return await verifier.run();
  } finally {
    await reader.close();
  }
}

/** Tables that the sink may hold rows of, also such as the catalogue hides from us. */
function knownTables(config: Config, source: string, checkpoint: Checkpoint | null): readonly TableRef[] {
  const { knownTables: known = [], wantedTables = [], completeTables = [] } = checkpoint?.snapshot ?? {};
  // those that the configuration names outright; and earlier versions noted the complete ones only
  const named = [...required(config.sources, source).tables, ...completeTables].map(plainTable);
  const all = [...known, ...wantedTables, ...named.filter((ref) => ref !== null)];
  return [...new Map(all.map((ref) => [formatTableRef(ref), ref])).values()];
}

/** null where nothing of that is to be looked into, or there is nothing to compare yet. */
async function lostDeletions(
  { context, config, settings, report }: VerifySource,
  { sink, again }: Parts,
  checkpoint: Checkpoint | null,
): Promise<LostDeletionsRepair | null> {
  const { repair, whole, patienceMs, lostDeletions: isSaid } = settings;
  if (!repair || !whole || checkpoint === null) return null;
  const { topic } = checkpoint;
  const { signal } = context;
  const ends = isSaid ? await again.call(() => logEnds(config, report.source)) : null;
  return new LostDeletionsRepair({ sink, topic, ends, clock: systemClock, patienceMs, again, signal });
}

async function logEnds(config: Config, source: string): Promise<readonly number[]> {
  const transport = await openLookedAtTransport(config);
  try {
    return (await transport.offsetRanges(topicOf(config, source))).map(({ end }) => end);
  } finally {
    await transport.close();
  }
}
