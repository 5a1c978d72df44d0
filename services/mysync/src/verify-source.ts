/** One source of one sink, compared table by table, while changes go on. */

import type { Checkpoint } from '@mysync/checkpoint';
import { type Config, plainTable, topicOf } from '@mysync/config';
import { errorForLog, formatTableRef, isMysyncError, systemClock, type TableRef } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { createMysqlSource, surveyTables } from '@mysync/source-mysql';
import { createLogger } from '@mysync/telemetry';
import { Again, LostDeletionsRepair, Pipeline, SteadyTable, type TableReport, TableVerifier } from '@mysync/verifier';
import { CheckpointLook } from './checkpoints.ts';
import { openLookedAtTransport, openSink, sourceOptions } from './compose.ts';
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
export async function verifySource({ context, config, settings, report, tell }: VerifySource): Promise<void> {
  const { signal, output } = context;
  const logger = createLogger({ level: config.telemetry.logLevel });
  const lifecycle = new Lifecycle();
  try {
    const { patienceMs } = settings;
    const again = new Again({
      clock: systemClock,
      signal,
      patienceMs,
      onRetry: (error, delayMs) =>
        logger.warn({ error: errorForLog(error), waitMs: Math.round(delayMs) }, 'trying again'),
    });
    const options = sourceOptions(config, report.source, logger);
    const source = lifecycle.opened('source', createMysqlSource(options), (opened) => opened.close());
    const sink = await openSink(config, report.sink, report.source, logger);
    lifecycle.opened('sink', sink, (opened) => opened.close());
    const checkpoints = new CheckpointLook(config, report.source);
    lifecycle.opened('checkpoint', checkpoints, (opened) => opened.close());
    const checkpoint = await again.call(() => checkpoints.load());
    const survey = await again.call(() => surveyTables(options, knownTables(checkpoint)));
    const wanted = (table: TableRef): boolean => sink.accepts(table) && settings.wants(table);
    const schemas = survey.schemas.filter(wanted);
    report.uncompared.push(...survey.unreadable.filter(({ table }) => wanted(table)));
    if (schemas.length + report.uncompared.length === 0) return;
    const text = new VerifyText(report.sink, report.source, [
      ...schemas,
      ...report.uncompared.map(({ table }) => table),
    ]);
    tell(text.head());
    for (const each of report.uncompared) tell(text.uncompared(each));
    // nothing may be cleared, nor let go on, where nothing will be compared
    if (schemas.length === 0) return;
    if (settings.lostDeletions && report.uncompared.length > 0) throw unreadable(report.uncompared);
    const lost = await lostDeletions({ config, source: report.source, sink, settings, again, signal, checkpoint });
    await lost?.begin();
    const progress = new ProgressDisplay({ output, logger, clock: systemClock });
    const pipeline = new Pipeline({
      loadCheckpoint: () => checkpoints.load(),
      sink,
      again,
      clock: systemClock,
      patienceMs,
    });
    for (const [at, { database, table }] of schemas.entries()) {
      const ref = { database, table };
      try {
        const reader = await SteadyTable.open({
          table: ref,
          open: () => source.openTable({ table: ref, chunkRows: settings.chunkRows, signal }),
          again,
        });
        try {
          const verifier = new TableVerifier({
            reader,
            currentPosition: () => source.currentPosition(),
            sink,
            pipeline,
            again,
            repair: settings.repair,
            rowsPerSecond: settings.rowsPerSecond,
            clock: systemClock,
            onProgress: (seen) => progress.show(seen),
            signal,
          });
          const found = await verifier.run();
          report.tables.push(found);
          tell(text.table(found));
        } finally {
          await reader.close();
        }
      } catch (error) {
        progress.end();
        const failed = { table: ref, error: signal.aborted ? null : asMysyncError(error) };
        report.uncompared.push(failed);
        tell(text.uncompared(failed));
        if (isMysyncError(error) && OF_ONE_TABLE.has(error.code) && !signal.aborted) continue;
        for (const rest of schemas.slice(at + 1)) {
          const unreached = { table: { database: rest.database, table: rest.table }, error: null };
          report.uncompared.push(unreached);
          tell(text.uncompared(unreached));
        }
        throw error;
      }
    }
    if (lost === null || lost.partitions.length === 0) return;
    const standing = await lost.conclude(report.tables, report.uncompared.length);
    report.lostDeletions = {
      mended: lost.partitions.filter((partition) => !standing.has(partition)),
      standing: [...standing].map(([partition, why]) => ({ partition, why })),
    };
    tell(text.lostDeletions(report.lostDeletions));
  } finally {
    await lifecycle.closeNoting(output);
  }
}

/** Tables that the sink may hold rows of, also such as the catalogue hides from us. */
function knownTables(checkpoint: Checkpoint | null): readonly TableRef[] {
  if (checkpoint === null) return [];
  const { knownTables: known, wantedTables = [], completeTables } = checkpoint.snapshot;
  // earlier versions noted the complete ones only
  const complete = known === undefined ? completeTables.map(plainTable).filter((ref) => ref !== null) : [];
  const all = [...(known ?? []), ...wantedTables, ...complete];
  return [...new Map(all.map((ref) => [formatTableRef(ref), ref])).values()];
}

interface LostDeletionsParts {
  readonly config: Config;
  readonly source: string;
  readonly sink: Sink;
  readonly settings: VerifySettings;
  readonly again: Again;
  readonly signal: AbortSignal;
  readonly checkpoint: Checkpoint | null;
}

/** null where nothing of that is to be looked into, or there is nothing to compare yet. */
async function lostDeletions(parts: LostDeletionsParts): Promise<LostDeletionsRepair | null> {
  const { config, source, sink, settings, again, signal, checkpoint } = parts;
  if (!settings.repair || !settings.whole || checkpoint === null) return null;
  const { topic } = checkpoint;
  const ends = settings.lostDeletions ? await again.call(() => logEnds(config, source)) : null;
  const { patienceMs } = settings;
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
