/** `mysync check`: everything that can be found before a start, each with what mends it. */
import type { Checkpoint } from '@mysync/checkpoint';
import { type Config, loadConfig, sourcesOf } from '@mysync/config';
import { type Finding, type MysyncError, silentLogger, type TableSchema } from '@mysync/core';
import { type BinlogSource, createMysqlSource, type StartIntent } from '@mysync/source-mysql';
import { mappingFindings, patternFindings } from './check-mapping.ts';
import { firstStart, knownTableFindings, loadCheckpoint, type SourceStart, topicFindings } from './check-start.ts';
import { openQuietTransport, openSink, required, sourceOptions, topicSpec } from './compose.ts';
import type { CommandContext, CommonOptions } from './context.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { count, errorFinding, table } from './output.ts';

export interface PartFinding extends Finding {
  /** What was looked at: `source shop`, `transport`, `sink cache` … */
  readonly part: string;
}

export async function runCheck(context: CommandContext, options: CommonOptions & { json?: boolean }): Promise<void> {
  const { settings } = context;
  const loaded = loadConfig({ settings, ...(options.config === undefined ? {} : { path: options.config }) });
  const found: PartFinding[] = loaded.warnings.map((warning) => configFinding(warning, 'warning'));
  if (loaded.ok) {
    found.unshift({
      part: 'configuration',
      level: 'ok',
      code: 'CONFIG_VALID',
      message: `${loaded.path} is valid`,
      remedy: '',
    });
    found.push(...(await checkEverything(loaded.config)));
  } else {
    found.push(...loaded.problems.map((problem) => configFinding(problem, 'error')));
  }
  const errors = found.filter((finding) => finding.level === 'error').length;
  if (options.json === true) context.output.result(`${JSON.stringify({ ok: errors === 0, findings: found })}\n`);
  else context.output.result(findingsText(found));
  if (!loaded.ok) throw new ExitRequest(EXIT.usage);
  if (errors > 0) throw new ExitRequest(EXIT.findings);
}

function configFinding(problem: MysyncError, level: Finding['level']): PartFinding {
  const place = problem.where['place'];
  const message = place === undefined ? problem.message : `${problem.message} (${place})`;
  return { part: 'configuration', level, code: problem.code, message, remedy: problem.remedy };
}

async function checkEverything(config: Config): Promise<readonly PartFinding[]> {
  const found: PartFinding[] = [];
  const schemas = new Map<string, readonly TableSchema[]>();
  const starts = new Map<string, SourceStart>();
  for (const source of Object.keys(config.sources)) {
    const part = `source ${source}`;
    const checkpoint = await loadCheckpoint(config, source);
    const { findings, tables, serverUuid } = await checkSource(config, source, checkpoint);
    found.push(...[...findings, checkpoint.finding].map((finding) => ({ part, ...finding })));
    starts.set(source, { loaded: checkpoint.loaded, serverUuid });
    if (tables !== null) schemas.set(source, tables);
  }
  found.push(...(await checkTransport(config, starts)));
  for (const sink of Object.keys(config.sinks)) found.push(...(await checkSink(config, sink)));
  found.push(...(await mappingFindings(config, schemas)));
  return found;
}

async function checkSource(
  config: Config,
  name: string,
  { intent, loaded }: { readonly intent: StartIntent | undefined; readonly loaded: Checkpoint | null | undefined },
): Promise<{ findings: readonly Finding[]; tables: readonly TableSchema[] | null; serverUuid: string | null }> {
  const source = createMysqlSource(sourceOptions(config, name, silentLogger));
  try {
    const findings = await source.check(intent);
    const tables = await source.tableSchemas();
    return {
      findings: [
        ...findings,
        ...patternFindings(required(config.sources, name), tables),
        ...(await knownTableFindings(source, loaded, tables)),
      ],
      tables,
      serverUuid: await serverUuidOf(source),
    };
  } catch (error) {
    return { findings: [errorFinding(error)], tables: null, serverUuid: null };
  } finally {
    await source.close();
  }
}

/** null while the server has findings of its own: they come first. */
async function serverUuidOf(source: BinlogSource): Promise<string | null> {
  try {
    return (await source.identify()).uuid;
  } catch {
    return null;
  }
}

async function checkTransport(
  config: Config,
  starts: ReadonlyMap<string, SourceStart>,
): Promise<readonly PartFinding[]> {
  const part = 'transport';
  try {
    const transport = await openQuietTransport(config);
    try {
      const found: PartFinding[] = [];
      for (const [source, start] of starts) {
        const spec = topicSpec(config, source);
        const findings = [
          ...(await transport.check(spec)).map((finding) => firstStart(finding, spec.name, start)),
          ...(await topicFindings(transport, source, spec.name, start)),
        ];
        found.push(...findings.map((finding) => ({ part: `topic ${spec.name}`, ...finding })));
      }
      return found;
    } finally {
      await transport.close();
    }
  } catch (error) {
    return [{ part, ...errorFinding(error) }];
  }
}

async function checkSink(config: Config, name: string): Promise<readonly PartFinding[]> {
  const part = `sink ${name}`;
  const [source] = sourcesOf(config, required(config.sinks, name));
  if (source === undefined) return [];
  try {
    const sink = await openSink(config, name, source, silentLogger);
    try {
      return (await sink.check()).map((finding) => ({ part, ...finding }));
    } finally {
      await sink.close();
    }
  } catch (error) {
    return [{ part, ...errorFinding(error) }];
  }
}

/** One line each, what mends it below. */
export function findingsText(findings: readonly PartFinding[]): string {
  const rows = findings.map(({ level, part, code, message }) => [
    level,
    part,
    level === 'ok' ? '' : code,
    message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message,
  ]);
  const lines = table(rows).split('\n').slice(0, -1);
  const text = findings.map(({ level, remedy }, index) =>
    level === 'ok' || remedy === '' ? lines[index] : `${lines[index]}\n         what to do: ${remedy}`,
  );
  const errors = findings.filter((finding) => finding.level === 'error').length;
  const warnings = findings.filter((finding) => finding.level === 'warning').length;
  return `${text.join('\n')}\n${count(errors, 'error')}, ${count(warnings, 'warning')}\n`;
}
