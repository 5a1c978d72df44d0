/** `mysync verify`: compares tables with what a sink holds of them, while changes go on. */
import { type Config, sourcesOf, topicOf } from '@mysync/config';
import { formatTableRef, systemClock, type TableRef } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { type BinlogSource, createMysqlSource } from '@mysync/source-mysql';
import { createLogger } from '@mysync/telemetry';
import {
  type Difference,
  isClean,
  LostDeletionsRepair,
  Pipeline,
  type StandingReason,
  type TableReport,
  TableVerifier,
} from '@mysync/verifier';
import { isWithheld } from '@mysync/writer';
import { readCheckpoint } from './checkpoints.ts';
import { openQuietTransport, openSink, required, sourceOptions } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { requireName, tablePatterns, wholeNumber } from './names.ts';
import { count, duration, table } from './output.ts';
import { ProgressDisplay } from './progress.ts';

export interface VerifyOptions extends CommonOptions {
  readonly sink: string;
  readonly source?: string;
  readonly table?: readonly string[];
  readonly repair?: boolean;
  readonly lostDeletions?: boolean;
  readonly chunkRows: string;
  readonly rate: string;
  readonly patience: string;
  readonly json?: boolean;
}

interface VerifyReport {
  readonly sink: string;
  readonly source: string;
  readonly tables: readonly TableReport[];
  /** Partitions whose writers had passed deletions that the log has forgotten; null where none had. */
  readonly lostDeletions: LostDeletionsReport | null;
}

interface LostDeletionsReport {
  /** As good as any other now. */
  readonly mended: readonly number[];
  /** Rows that are gone from the source may still stand in the sink. */
  readonly standing: readonly { readonly partition: number; readonly why: StandingReason | 'rows-left' }[];
}

/** Differences that the text form lists, per table. */
const MAX_LISTED = 20;

export async function runVerify(context: CommandContext, options: VerifyOptions): Promise<void> {
  const { config } = requireConfig(context, options);
  requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  const sources = sourcesOf(config, required(config.sinks, options.sink));
  if (options.source !== undefined) requireName(context, 'source', options.source, sources);
  const settings = {
    chunkRows: wholeNumber(context, '--chunk-rows', options.chunkRows, 1),
    rowsPerSecond: wholeNumber(context, '--rate', options.rate),
    patienceMs: wholeNumber(context, '--patience', options.patience) * 1000,
    repair: options.repair === true,
    lostDeletions: options.lostDeletions === true,
    whole: options.table === undefined,
    wants: options.table === undefined ? () => true : tablePatterns(context, options.table),
  };
  if (settings.lostDeletions && !(settings.repair && settings.whole)) {
    const message =
      '--lost-deletions needs --repair, and takes no --table: only a sink that was mended as a whole is right again';
    const remedy = 'mysync verify --repair --lost-deletions --sink NAME';
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy }));
  }
  const reports: VerifyReport[] = [];
  for (const source of options.source === undefined ? sources : [options.source]) {
    reports.push(await verifySource(context, config, options.sink, source, settings));
  }
  const all = reports.flatMap((report) => report.tables);
  if (all.length === 0) {
    const message = `there is nothing to compare: no captured table ${options.table === undefined ? '' : 'that matches --table '}has a rule in sink '${options.sink}'`;
    const remedy =
      options.table === undefined
        ? '`mysync check` shows which tables are captured, and which have no rule.'
        : 'Correct --table (patterns as in the configuration), or leave it out.';
    usageError(context, commandErrors.COMMAND_VALUE_INVALID({ message, remedy }));
  }
  const ok = all.every(isClean) && reports.every(({ lostDeletions }) => (lostDeletions?.standing.length ?? 0) === 0);
  context.output.result(
    options.json === true ? `${JSON.stringify({ ok, reports })}\n` : reports.map(reportText).join('\n'),
  );
  if (!ok) throw new ExitRequest(EXIT.findings);
}

interface VerifySettings {
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

async function verifySource(
  context: CommandContext,
  config: Config,
  sinkName: string,
  sourceName: string,
  settings: VerifySettings,
): Promise<VerifyReport> {
  const logger = createLogger({ level: 'warn' });
  const source = createMysqlSource(sourceOptions(config, sourceName, logger));
  const sink = await openSink(config, sinkName, sourceName, logger);
  try {
    const tables = (await source.tableSchemas()).filter((schema) => sink.accepts(schema) && settings.wants(schema));
    const reports: TableReport[] = [];
    const progress = new ProgressDisplay({ output: context.output, logger, clock: systemClock });
    const pipeline = new Pipeline({
      loadCheckpoint: () => readCheckpoint(config, sourceName),
      sink,
      clock: systemClock,
      patienceMs: settings.patienceMs,
    });
    const lost =
      settings.repair && settings.whole ? await lostDeletions(context, config, sourceName, sink, settings) : null;
    await lost?.begin();
    for (const table of tables) {
      reports.push(await verifyTable({ context, source, sink, table, pipeline, progress, settings }));
    }
    return {
      sink: sinkName,
      source: sourceName,
      tables: reports,
      lostDeletions: lost === null ? null : await lostReport(lost, reports),
    };
  } finally {
    await sink.close();
    await source.close();
  }
}

/** null when there is nothing to compare yet. */
async function lostDeletions(
  { signal }: CommandContext,
  config: Config,
  source: string,
  sink: Sink,
  settings: VerifySettings,
): Promise<LostDeletionsRepair | null> {
  const checkpoint = await readCheckpoint(config, source);
  if (checkpoint === null) return null;
  const { topic } = checkpoint;
  const ends = settings.lostDeletions ? await logEnds(config, source) : null;
  return new LostDeletionsRepair({ sink, topic, ends, clock: systemClock, patienceMs: settings.patienceMs, signal });
}

async function logEnds(config: Config, source: string): Promise<readonly number[]> {
  const transport = await openQuietTransport(config);
  try {
    return (await transport.offsetRanges(topicOf(config, source))).map(({ end }) => end);
  } finally {
    await transport.close();
  }
}

/** After all tables. Rows that are left, and may be gone from the source, keep every partition as it is: whose they are is not known. */
async function lostReport(
  lost: LostDeletionsRepair,
  tables: readonly TableReport[],
): Promise<LostDeletionsReport | null> {
  const { partitions } = lost;
  if (partitions.length === 0) return null;
  if (tables.some(({ unremoved }) => unremoved > 0)) {
    return { mended: [], standing: partitions.map((partition) => ({ partition, why: 'rows-left' })) };
  }
  const standing = await lost.clear();
  return {
    mended: partitions.filter((partition) => !standing.has(partition)),
    standing: [...standing].map(([partition, why]) => ({ partition, why })),
  };
}

interface VerifyTable {
  readonly context: CommandContext;
  readonly source: BinlogSource;
  readonly sink: Sink;
  readonly table: TableRef;
  readonly pipeline: Pipeline;
  readonly progress: ProgressDisplay;
  readonly settings: VerifySettings;
}

async function verifyTable(parts: VerifyTable): Promise<TableReport> {
  const { context, source, sink, table, pipeline, progress, settings } = parts;
  const { signal } = context;
  const reader = await source.openTable({ table, chunkRows: settings.chunkRows, signal });
  try {
    const verifier = new TableVerifier({
      reader,
      currentPosition: () => source.currentPosition(),
      sink,
      pipeline,
      repair: settings.repair,
      rowsPerSecond: settings.rowsPerSecond,
      clock: systemClock,
      onProgress: (report) => progress.show(report),
      signal,
    });
    return await verifier.run();
  } finally {
    await reader.close();
  }
}

function reportText({ sink, source, tables, lostDeletions }: VerifyReport): string {
  const text = [`sink ${sink} of ${source}:`];
  const head = ['  table', 'rows', 'equal', 'different', 'missing', 'extra', 'unsettled', 'repaired', ''];
  const rows = tables.map((report) => [
    `  ${formatTableRef(report.table)}`,
    ...[
      report.rows,
      report.equal,
      report.different,
      report.missing,
      report.extra,
      report.unsettled,
      report.repaired,
    ].map(String),
    [
      duration(report.seconds),
      ...(report.expired > 0 ? [`${report.expired} expired`] : []),
      ...(report.changing > 0 ? [`${count(report.changing, 'row')} changed at every look`] : []),
    ].join(', '),
  ]);
  text.push(table([head, ...rows]).trimEnd());
  for (const report of tables) {
    const listed = report.differences.slice(0, MAX_LISTED);
    for (const difference of listed) {
      const { kind, target, fields } = difference;
      const what = fields.length === 0 ? '' : `: ${fields.join(', ')}`;
      text.push(`  ${formatTableRef(report.table)} ${target}: ${kind}${what}${outcomeText(difference, sink, source)}`);
    }
    const more = report.different + report.missing + report.extra + report.unsettled - listed.length;
    if (more > 0) text.push(`  ${formatTableRef(report.table)}: ${more} more (--json lists up to 1000)`);
  }
  if (lostDeletions !== null) text.push(...lostText(lostDeletions, sink));
  return `${text.join('\n')}\n`;
}

const WHY: Readonly<Record<StandingReason | 'rows-left', string>> = {
  'rows-left': 'rows are left that may be gone from the source: mend what stands in their way',
  'passed-again': 'its writer passed such deletions again meanwhile, or stands before them',
  doubt: 'the store may have lost what it had confirmed meanwhile',
};

function lostText({ mended, standing }: LostDeletionsReport, sink: string): readonly string[] {
  const text: string[] = [];
  if (mended.length > 0) {
    text.push(
      `  deletions that the log had forgotten: partitions ${mended.join(', ')} are mended, no deleted row is left`,
    );
  }
  for (const { partition, why } of standing) {
    text.push(
      `  deletions that the log had forgotten: partition ${partition} may still show deleted rows: ${WHY[why]}; then mysync verify --repair --sink ${sink} again`,
    );
  }
  return text;
}

function outcomeText({ repaired, hindrance }: Difference, sink: string, source: string): string {
  if (repaired) return ' (repaired)';
  if (hindrance === null) return '';
  const why = `${hindrance.code}: ${hindrance.reason}`;
  if (hindrance.kind === 'refused') return `\n    not repaired: ${why}; mend what stands in the way, then repair again`;
  if (isWithheld(hindrance)) {
    return `\n    its changes are set aside: ${why}; mysync verify --repair --sink ${sink} writes it from the source and releases it`;
  }
  const id = `${source}/${hindrance.partition}/${hindrance.offset}`;
  return `\n    its changes are set aside: ${why}; mend what stands in the way, then mysync dlq retry ${id} --sink ${sink}`;
}
