/** Mappings against the tables as they are: what a start would only find at the first row. */
import { type Config, plainTable, type SinkConfig, type SourceConfig, sourcesOf } from '@mysync/config';
import { type Finding, formatTableRef, silentLogger, type TableRef, type TableSchema, tableRefKey } from '@mysync/core';
import { compileProjection, compileRules, compileTablePatterns, compileTemplate } from '@mysync/mapping';
import type { PartFinding } from './check.ts';
import { openSink, required, rulesWithPartitionBy } from './compose.ts';
import { commandErrors } from './errors.ts';
import { errorFinding } from './output.ts';

function warning(code: keyof typeof commandErrors.entries, message: string): Finding {
  return { level: 'warning', code, message, remedy: commandErrors.entries[code].remedy };
}

const PER_TABLE = ['partitionBy', 'onPartialRowOf', 'onUnseenChangeOf', 'onLargeRowOf'] as const;

/** Patterns and names of a source that no table answers to: most often a slip of the pen. */
export function patternFindings(source: SourceConfig, tables: readonly TableSchema[]): readonly Finding[] {
  const unused = source.tables.filter(
    (pattern) => !pattern.startsWith('!') && !tables.some(compileTablePatterns([pattern])),
  );
  const names = new Set(tables.map(tableKey));
  const named = PER_TABLE.flatMap((option) =>
    Object.keys(source[option])
      .filter((name) => !names.has(tableKey(plainTable(name))))
      .map((name) => `${option} names '${name}': there is no such table`),
  );
  return [...unused.map((pattern) => `no captured table matches the pattern '${pattern}'`), ...named].map((message) =>
    warning('CHECK_PATTERN_UNUSED', message),
  );
}

function tableKey(ref: TableRef | null): string {
  return ref === null ? '' : tableRefKey(ref);
}

export async function mappingFindings(
  config: Config,
  schemas: ReadonlyMap<string, readonly TableSchema[]>,
): Promise<readonly PartFinding[]> {
  const found: PartFinding[] = [];
  const used = new Set<string>();
  for (const [name, sink] of Object.entries(config.sinks)) {
    const part = `sink ${name}`;
    const sources = sourcesOf(config, sink).filter((source) => schemas.has(source));
    for (const source of sources) {
      const { fitting, findings } = await fitSink(config, name, source, schemas.get(source) ?? []);
      for (const schema of fitting) used.add(`${source} ${formatTableRef(schema)}`);
      found.push(...findings.map((finding) => ({ part, ...finding })));
    }
    const tables = sources.flatMap((source) => schemas.get(source) ?? []);
    if (sources.length > 0) found.push(...unusedRules(sink, tables).map((finding) => ({ part, ...finding })));
  }
  if (Object.keys(config.sinks).length === 0) return found;
  for (const [source, tables] of schemas) {
    for (const schema of tables) {
      const name = formatTableRef(schema);
      if (used.has(`${source} ${name}`)) continue;
      found.push({
        part: `source ${source}`,
        ...warning('CHECK_TABLE_UNUSED', `table ${name} is captured, but no sink takes it`),
      });
    }
  }
  return found;
}

async function fitSink(
  config: Config,
  name: string,
  source: string,
  tables: readonly TableSchema[],
): Promise<{ fitting: readonly TableSchema[]; findings: readonly Finding[] }> {
  const findings: Finding[] = [];
  const options = required(config.sinks, name);
  const ruleOf = compileRules(
    rulesWithPartitionBy<SinkConfig['tables'][number]>(options.tables, required(config.sources, source).partitionBy),
  );
  const taken = tables.filter((schema) => ruleOf(schema) !== undefined);
  // The Redis sink compiles a mapping without talking to the server; the other one makes an index, so only the parts are compiled.
  const sink = options.kind === 'redis' ? await openSink(config, name, source, silentLogger) : null;
  try {
    for (const schema of taken) {
      const rule = ruleOf(schema);
      try {
        if (rule === undefined) continue;
        compileProjection(rule, schema);
        if (sink !== null) await sink.prepare(schema);
        else {
          const id = 'id' in rule && rule.id !== undefined ? rule.id : '{key}';
          compileTemplate(id, schema, { role: 'key', partitionBy: rule.partitionBy ?? [] });
        }
      } catch (error) {
        findings.push(errorFinding(error));
      }
    }
  } finally {
    await sink?.close();
  }
  if (findings.length === 0 && taken.length > 0) {
    const message = `${taken.length} of ${tables.length} captured tables of ${source} fit their rules`;
    findings.push({ level: 'ok', code: 'MAPPING_KEY_INCOMPLETE', message, remedy: '' });
  }
  return { fitting: taken, findings };
}

function unusedRules(sink: SinkConfig, tables: readonly TableSchema[]): readonly Finding[] {
  return sink.tables
    .filter((rule) => !tables.some(compileTablePatterns(rule.match)))
    .map((rule) => warning('CHECK_RULE_UNUSED', `no captured table matches the rule for ${rule.match.join(', ')}`));
}
