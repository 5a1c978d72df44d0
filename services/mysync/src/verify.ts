/** `mysync verify`: compares tables with what a sink holds of them, while changes go on. */
import { sourcesOf } from '@mysync/config';
import { isClean } from '@mysync/verifier';
import { required } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { MOST_SECONDS, requireName, tablePatterns, wholeNumber } from './names.ts';
import { type SourceReport, type VerifySettings, verifySource } from './verify-source.ts';

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

/** More rows at once only take memory. */
const MOST_CHUNK_ROWS = 1_000_000;

export async function runVerify(context: CommandContext, options: VerifyOptions): Promise<void> {
  const { config } = requireConfig(context, options);
  requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  const sources = sourcesOf(config, required(config.sinks, options.sink));
  if (options.source !== undefined) requireName(context, 'source', options.source, sources);
  const settings = settingsOf(context, options);
  const { output } = context;
  const tell = options.json === true ? () => undefined : output.result;
  const reports: SourceReport[] = [];
  let failure: { readonly error: unknown } | undefined;
  for (const source of options.source === undefined ? sources : [options.source]) {
    const report: SourceReport = { sink: options.sink, source, tables: [], uncompared: [], lostDeletions: null };
    reports.push(report);
    try {
      await verifySource({ context, config, settings, report, tell });
    } catch (error) {
      failure = { error };
      break;
    }
  }
  const isDone = failure === undefined && reports.every(({ uncompared }) => uncompared.length === 0);
  if (isDone && reports.every(({ tables }) => tables.length === 0)) nothingToCompare(context, options);
  const ok =
    isDone &&
    reports.every(({ tables, lostDeletions }) => tables.every(isClean) && (lostDeletions?.standing.length ?? 0) === 0);
  if (options.json === true) output.result(`${JSON.stringify({ ok, reports })}\n`);
  // what was done is told by now
  if (failure !== undefined) throw failure.error;
  if (!isDone) throw new ExitRequest(EXIT.failed);
  if (!ok) throw new ExitRequest(EXIT.findings);
}

function settingsOf(context: CommandContext, options: VerifyOptions): VerifySettings {
  const settings = {
    chunkRows: wholeNumber(context, '--chunk-rows', options.chunkRows, { least: 1, most: MOST_CHUNK_ROWS }),
    rowsPerSecond: wholeNumber(context, '--rate', options.rate),
    patienceMs: wholeNumber(context, '--patience', options.patience, { least: 1, most: MOST_SECONDS }) * 1000,
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
  return settings;
}

function nothingToCompare(context: CommandContext, { table, sink }: VerifyOptions): never {
  const message = `there is nothing to compare: no captured table ${table === undefined ? '' : 'that matches --table '}has a rule in sink '${sink}'`;
  const remedy =
    table === undefined
      ? '`mysync check` shows which tables are captured, and which have no rule.'
      : 'Correct --table (patterns as in the configuration), or leave it out.';
  usageError(context, commandErrors.COMMAND_VALUE_INVALID({ message, remedy }));
}
