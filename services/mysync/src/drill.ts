/** `mysync drill`: breaks this very set-up on purpose, under a table of its own, and reports lost, wrong and stale rows. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, parseHost, plainTable, redisStore, sourcesOf } from '@mysync/config';
import { formatTableRef, systemClock, type TableRef } from '@mysync/core';
import {
  DrillProcess,
  type DrillReport,
  DrillTable,
  drillErrors,
  type Fault,
  FaultProxy,
  frozen,
  killed,
  parsePlan,
  plannedFault,
  runDrill,
  waysBroken,
} from '@mysync/drill';
import { createMysqlSource, secureOptions } from '@mysync/source-mysql';
import { createLogger } from '@mysync/telemetry';
import { Pipeline } from '@mysync/verifier';
import { readCheckpoint } from './checkpoints.ts';
import { MYSQL_PORT, openSink, required, sourceOptions, sqlTls } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { Lifecycle } from './lifecycle.ts';
import { chooseSource, requireName, wholeNumber } from './names.ts';
import { count, table } from './output.ts';

export interface DrillOptions extends CommonOptions {
  readonly sink: string;
  readonly source?: string;
  readonly table: string;
  readonly seconds: string;
  readonly patience: string;
  readonly user?: string;
  readonly passwordFile?: string;
  readonly plan?: string;
  readonly folder: string;
  readonly json?: boolean;
}

/** What the drill starts in place of the user's own processes. */
interface Managed {
  readonly processes: readonly DrillProcess[];
  readonly faults: readonly Fault[];
}

export async function runDrillVerb(context: CommandContext, options: DrillOptions): Promise<void> {
  const { config, path } = requireConfig(context, options);
  requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  const sources = sourcesOf(config, required(config.sinks, options.sink));
  const source = chooseSource(context, sources, options.source);
  const seconds = wholeNumber(context, '--seconds', options.seconds);
  const patienceMs = wholeNumber(context, '--patience', options.patience) * 1000;
  const ref = drillTableOf(context, options.table);
  const planned =
    options.plan === undefined ? [] : parsePlan(await readGiven(context, '--plan', options.plan), options.plan);
  const logger = createLogger({ level: 'warn' });
  const { signal } = context;
  const lifecycle = new Lifecycle();
  context.allowStop(60_000);
  try {
    await mkdir(options.folder, { recursive: true });
    const binlog = createMysqlSource(sourceOptions(config, source, logger));
    lifecycle.opened('source', binlog, (opened) => opened.close());
    const sink = await openSink(config, options.sink, source, logger);
    lifecycle.opened('sink', sink, (opened) => opened.close());
    const drillTable = await openTable(context, config, source, ref, options);
    lifecycle.opened('table', drillTable, (opened) => opened.close());
    await drillTable.create();
    lifecycle.opened('rows', drillTable, (opened) => opened.drop());
    await requireMapped(binlog, sink, ref);
    const managed = await manage({ config, path, settings: context.settings, source, options, lifecycle, seconds });
    const reader = await binlog.openTable({ table: ref, chunkRows: 1000, signal });
    lifecycle.opened('rows of the table', reader, (opened) => opened.close());
    const faults = [...managed.faults, ...planned.map((each) => plannedFault(each, signal))];
    const report = await runDrill({
      table: drillTable,
      reader,
      currentPosition: () => binlog.currentPosition(),
      sink,
      pipeline: new Pipeline({
        loadCheckpoint: () => readCheckpoint(config, source),
        sink,
        clock: systemClock,
        patienceMs,
      }),
      faults,
      patienceMs,
      requireAlive: () => {
        for (const process of managed.processes) process.requireAlive();
      },
      onFault: (kind, at, of) => context.output.note(`${at}/${of} ${kind}\n`),
      clock: systemClock,
      signal,
    });
    await tell(context, options, report);
  } finally {
    for (const { name, error } of await lifecycle.close()) context.output.note(`closing ${name} failed: ${error}\n`);
  }
}

async function readGiven(context: CommandContext, option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const remedy = 'Name a file that this user can read.';
    const details = { message: `${option}: ${path} cannot be read`, remedy, where: { option }, cause };
    usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
  }
}

async function requireMapped(
  binlog: ReturnType<typeof createMysqlSource>,
  sink: { accepts(ref: TableRef): boolean },
  ref: TableRef,
): Promise<void> {
  const captured = await binlog.tableSchemas();
  const isCaptured = captured.some(({ database, table: name }) => database === ref.database && name === ref.table);
  if (isCaptured && sink.accepts(ref)) return;
  const message = isCaptured
    ? `the sink has no rule for ${formatTableRef(ref)}`
    : `the source does not capture ${formatTableRef(ref)}`;
  throw drillErrors.DRILL_TABLE_UNMAPPED({ message, where: { table: formatTableRef(ref) } });
}

function drillTableOf(context: CommandContext, text: string): TableRef {
  const ref = plainTable(text);
  if (ref !== null) return ref;
  const details = { message: `--table is '${text}'`, remedy: 'Allowed: DATABASE.TABLE.', where: { option: '--table' } };
  usageError(context, commandErrors.COMMAND_VALUE_INVALID(details));
}

async function openTable(
  context: CommandContext,
  config: Config,
  source: string,
  ref: TableRef,
  { user, passwordFile }: DrillOptions,
): Promise<DrillTable> {
  if (passwordFile !== undefined && user === undefined) {
    const message = '--password-file is given without --user: whose password it is, is not said';
    usageError(
      context,
      commandErrors.COMMAND_INVALID({ message, remedy: 'Add --user, or leave out --password-file.' }),
    );
  }
  const { hosts, user: own, password, tls } = required(config.sources, source);
  const given = passwordFile === undefined ? '' : (await readGiven(context, '--password-file', passwordFile)).trimEnd();
  const address = parseHost(hosts[0] ?? '', MYSQL_PORT);
  return new DrillTable({
    ...address,
    user: user ?? own,
    password: user === undefined ? (password?.reveal() ?? '') : given,
    ...(tls === undefined ? {} : { secure: secureOptions(sqlTls(tls), address) }),
    table: ref,
    clock: systemClock,
  });
}

interface Management {
  readonly config: Config;
  readonly path: string;
  readonly settings: readonly string[];
  readonly source: string;
  readonly options: DrillOptions;
  readonly lifecycle: Lifecycle;
  readonly seconds: number;
}

/** A reader and a writer of this configuration, with ways to source and sink that can be broken where that can be put in between. */
async function manage(parts: Management): Promise<Managed> {
  const { config, path, settings, source, options, lifecycle, seconds } = parts;
  const faults: Fault[] = [];
  const through = async (name: string, target: { host: string; port: number } | null): Promise<FaultProxy | null> => {
    if (target === null) return null;
    const proxy = lifecycle.opened(name, await FaultProxy.open(target), (opened) => opened.close());
    faults.push(...waysBroken(name, proxy, seconds));
    return proxy;
  };
  const sourceWay = await through('source', sourceTarget(config, source));
  const sinkWay = await through('sink', sinkTarget(config, options.sink));
  const common = ['--config', path, ...settings.flatMap((setting) => ['--set', setting]), '--telemetry.port=0'];
  const start = (name: string, args: readonly string[]): DrillProcess => {
    const child = new DrillProcess({ name, args: [...args, ...common], logFile: join(options.folder, `${name}.log`) });
    child.start();
    return lifecycle.opened(name, child, (opened) => opened.stop());
  };
  const reader = start('reader', [
    ...['reader', '--source', source],
    ...(sourceWay === null ? [] : [`--sources.${source}.hosts=127.0.0.1:${sourceWay.port}`]),
  ]);
  const writer = start('writer', [
    ...['writer', '--sink', options.sink],
    ...(sinkWay === null ? [] : [sinkSetting(config, options.sink, sinkWay.port)]),
  ]);
  for (const [name, child] of [
    ['reader', reader],
    ['writer', writer],
  ] as const) {
    faults.push(killed(name, child), frozen(name, child, seconds));
  }
  return { processes: [reader, writer], faults };
}

/** null where a proxy would be another host to a certificate. */
function sourceTarget(config: Config, source: string): { host: string; port: number } | null {
  const { hosts, tls } = required(config.sources, source);
  return tls === undefined && hosts.length === 1 ? parseHost(hosts[0] ?? '', MYSQL_PORT) : null;
}

/** null where there are several servers, or a certificate. */
function sinkTarget(config: Config, name: string): { host: string; port: number } | null {
  const sink = required(config.sinks, name);
  if (sink.kind === 'redis') {
    const { hosts, encrypted } = redisStore(sink);
    return !sink.cluster && !encrypted && hosts.length === 1 ? (hosts[0] ?? null) : null;
  }
  const [node] = sink.nodes;
  const url = sink.nodes.length === 1 && node !== undefined ? new URL(node) : null;
  return url?.protocol === 'http:' ? { host: url.hostname, port: Number(url.port || 80) } : null;
}

function sinkSetting(config: Config, name: string, port: number): string {
  const sink = required(config.sinks, name);
  if (sink.kind === 'elasticsearch') return `--sinks.${name}.nodes=http://127.0.0.1:${port}`;
  if (sink.url === undefined) return `--sinks.${name}.hosts=127.0.0.1:${port}`;
  const url = new URL(sink.url);
  url.host = `127.0.0.1:${port}`;
  return `--sinks.${name}.url=${url.href}`;
}

async function tell(context: CommandContext, options: DrillOptions, report: DrillReport): Promise<void> {
  const ok = report.lost + report.wrong + report.stale === 0;
  const file = join(options.folder, 'report.md');
  await writeFile(file, reportText(report));
  context.output.result(options.json === true ? `${JSON.stringify({ ok, ...report })}\n` : reportText(report));
  context.output.note(`The report is in ${file}.\n`);
  if (!ok) throw new ExitRequest(EXIT.findings);
}

function reportText(report: DrillReport): string {
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
  ].join('\n');
}
