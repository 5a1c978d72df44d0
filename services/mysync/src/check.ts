/** `mysync check`: everything that can be found before a start, each with what mends it. */
import { readCheckpointFile } from '@mysync/checkpoint';
import { type Config, loadConfig, sourcesOf, topicOf } from '@mysync/config';
import { type Finding, formatBinlogPosition, type MysyncError, type TableSchema } from '@mysync/core';
import { createMysqlSource } from '@mysync/source-mysql';
import { createMetrics, silentLogger } from '@mysync/telemetry';
import { mappingFindings, patternFindings } from './check-mapping.ts';
import { checkpointPath, openSink, openTransport, required, sourceOptions, topicSpec } from './compose.ts';
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
  for (const source of Object.keys(config.sources)) {
    const part = `source ${source}`;
    const { findings, tables } = await checkSource(config, source);
    found.push(...findings.map((finding) => ({ part, ...finding })));
    found.push(...(await checkCheckpoint(config, source)).map((finding) => ({ part, ...finding })));
    if (tables !== null) schemas.set(source, tables);
  }
  found.push(...(await checkTransport(config)));
  for (const sink of Object.keys(config.sinks)) found.push(...(await checkSink(config, sink)));
  found.push(...(await mappingFindings(config, schemas)));
  return found;
}

async function checkSource(
  config: Config,
  name: string,
): Promise<{ findings: readonly Finding[]; tables: readonly TableSchema[] | null }> {
  const source = createMysqlSource(sourceOptions(config, name, silentLogger));
  try {
    const findings = await source.check();
    const tables = await source.tableSchemas();
    return { findings: [...findings, ...patternFindings(required(config.sources, name), tables)], tables };
  } catch (error) {
    return { findings: [errorFinding(error)], tables: null };
  } finally {
    await source.close();
  }
}

async function checkCheckpoint(config: Config, source: string): Promise<readonly Finding[]> {
  try {
    const checkpoint = await readCheckpointFile(checkpointPath(config, source));
    const message =
      checkpoint === null
        ? `no checkpoint yet: begins with start: ${required(config.sources, source).start}`
        : `checkpoint at ${formatBinlogPosition(checkpoint.position)}, saved ${checkpoint.savedAt}`;
    return [{ level: 'ok', code: 'CHECKPOINT_INVALID', message, remedy: '' }];
  } catch (error) {
    return [errorFinding(error)];
  }
}

async function checkTransport(config: Config): Promise<readonly PartFinding[]> {
  const part = 'transport';
  try {
    const transport = await openTransport(config, {
      logger: silentLogger,
      metrics: createMetrics(),
      maintenance: false,
    });
    try {
      const found: PartFinding[] = [];
      for (const source of Object.keys(config.sources)) {
        const spec = topicSpec(config, source);
        const findings = await transport.check(spec);
        found.push(...findings.map((finding) => ({ part: `topic ${topicOf(config, source)}`, ...finding })));
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
