/** `mysync drill`: breaks this very set-up on purpose, under a table of its own, and reports lost, wrong and stale rows. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sourcesOf } from '@mysync/config';
import { errorForLog, makeFolder, systemClock } from '@mysync/core';
import { type DrillReport, drillErrors, parsePlan, plannedFault, runDrill } from '@mysync/drill';
import { createMysqlSource } from '@mysync/source-mysql';
import { createLogger } from '@mysync/telemetry';
import { Again, Pipeline } from '@mysync/verifier';
import { CheckpointLook, openCheckpoints } from './checkpoints.ts';
import { openSink, required, sourceOptions } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { manageProcesses, type Omitted } from './drill-processes.ts';
import { type DrillTableOptions, drillTableOf, openDrillTable, requireMapped } from './drill-table.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { Lifecycle } from './lifecycle.ts';
import { chooseSource, MOST_SECONDS, readGiven, requireName, wholeNumber } from './names.ts';
import { count, table } from './output.ts';

interface DrillOptions extends CommonOptions, DrillTableOptions {
  readonly sink: string;
  readonly source?: string;
  readonly seconds: string;
  readonly patience: string;
  readonly plan?: string;
  readonly folder: string;
  readonly json?: boolean;
}

export async function runDrillVerb(context: CommandContext, options: DrillOptions): Promise<void> {
  const { config, path } = requireConfig(context, options);
  requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  const sources = sourcesOf(config, required(config.sinks, options.sink));
  const source = chooseSource(context, sources, options.source);
  const range = { least: 1, most: MOST_SECONDS };
  const seconds = wholeNumber(context, '--seconds', options.seconds, range);
  const patienceMs = wholeNumber(context, '--patience', options.patience, range) * 1000;
  const ref = drillTableOf(context, options.table);
  const planned =
    options.plan === undefined ? [] : parsePlan(await readGiven(context, '--plan', options.plan), options.plan);
  const logger = createLogger({ level: config.telemetry.logLevel });
  const { signal } = context;
  const lifecycle = new Lifecycle();
  context.allowStop(60_000);
  try {
    makeReportFolder(context, options.folder);
    // a reader that runs would answer in place of the drill's own; in a topic it is taken over
    if (config.checkpoint.kind !== 'topic') {
      const free = await openCheckpoints({ config, logger, signal }, source, null);
      await free.close();
    }
    const binlog = createMysqlSource(sourceOptions(config, source, logger));
    lifecycle.opened('source', binlog, (opened) => opened.close());
    const sink = await openSink(config, options.sink, source, logger);
    lifecycle.opened('sink', sink, (opened) => opened.close());
    const drillTable = await openDrillTable(context, config, source, ref, options);
    lifecycle.opened('table', drillTable, (opened) => opened.close());
    await drillTable.create();
    lifecycle.opened('rows', drillTable, (opened) => opened.drop());
    const schema = await requireMapped(binlog, sink, ref);
    const managed = await manageProcesses({
      config,
      path,
      settings: context.settings,
      source,
      sink: options.sink,
      folder: options.folder,
      lifecycle,
      seconds,
    });
    const faults = [...managed.faults, ...planned.map((each) => plannedFault(each, signal))];
    const again = new Again({
      clock: systemClock,
      signal,
      patienceMs,
      onRetry: (error, delayMs) =>
        logger.warn({ error: errorForLog(error), waitMs: Math.round(delayMs) }, 'trying again'),
    });
    const requireAlive = (): void => {
      for (const process of managed.processes) process.requireAlive();
    };
    const checkpoints = new CheckpointLook(config, source);
    lifecycle.opened('checkpoint', checkpoints, (opened) => opened.close());
    const loadCheckpoint = (): ReturnType<CheckpointLook['load']> => checkpoints.load();
    const report = await runDrill({
      table: drillTable,
      schema,
      openTable: () => binlog.openTable({ table: ref, chunkRows: 1000, signal }),
      currentPosition: () => binlog.currentPosition(),
      sink,
      pipeline: new Pipeline({ loadCheckpoint, sink, again, requireAlive, clock: systemClock, patienceMs }),
      again,
      faults,
      patienceMs,
      requireAlive,
      onFault: (kind, at, of) => context.output.note(`${at}/${of} ${kind}\n`),
      clock: systemClock,
      signal,
    });
    await tell(context, options, { ...report, omitted: managed.omitted });
  } finally {
    await lifecycle.closeNoting(context.output);
  }
}

function makeReportFolder(context: CommandContext, path: string): void {
  try {
    makeFolder(path);
  } catch (cause) {
    const remedy = 'Name a folder in which this user can make files.';
    const details = { message: `--folder: ${path} cannot be made`, remedy, where: { option: '--folder' }, cause };
    usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
  }
}

interface ToldReport extends DrillReport {
  readonly omitted: readonly Omitted[];
}

async function tell(context: CommandContext, options: DrillOptions, report: ToldReport): Promise<void> {
  const ok = report.lost + report.wrong + report.stale === 0;
  const { output } = context;
  // printed first: an hour of faults must not be lost to a file that cannot be written
  output.result(options.json === true ? `${JSON.stringify({ ok, ...report })}\n` : reportText(report));
  const file = join(options.folder, 'report.md');
  const error = await write(file, reportText(report));
  output.note(error === null ? `The report is in ${file}.\n` : `${error}\n`);
  if (!ok) throw new ExitRequest(EXIT.findings);
  if (error !== null) throw new ExitRequest(EXIT.failed);
}

async function write(file: string, text: string): Promise<Error | null> {
  try {
    await writeFile(file, text);
    return null;
  } catch (cause) {
    const message = `the report cannot be written to ${file}`;
    return drillErrors.DRILL_REPORT_UNWRITTEN({ message, where: { file }, cause });
  }
}

function reportText(report: ToldReport): string {
  const rows = report.faults.map(({ kind, seconds, recoverySeconds }) => [
    kind,
    `${seconds} s`,
    `${recoverySeconds.toFixed(1)} s`,
  ]);
  return [
    '# Drill',
    '',
    `${count(report.faults.length, 'fault')}, ${count(report.changes, 'change')}, the sink was looked at ${report.looks} times.`,
    `Lost ${report.lost}, wrong ${report.wrong}, stale ${report.stale}.`,
    '',
    table([['fault', 'lasted', 'recovered after'], ...rows]).trimEnd(),
    '',
    ...report.omitted.map(({ faults, why }) => `Not tried: ${faults}: ${why}.\n`),
  ].join('\n');
}
