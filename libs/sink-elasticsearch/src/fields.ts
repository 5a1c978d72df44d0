/** From columns to fields: the mapping that Elasticsearch gets and how each value is written. */
import { type Column, formatTableRef, type TableSchema } from '@mysync/core';
import { compileProjection, isDecimalColumn, isJsonColumn, type ProjectedColumn } from '@mysync/mapping';
import { elasticsearchErrors } from './errors.ts';
import { fieldName } from './names.ts';
import type { ElasticsearchRule, FieldMapping } from './options.ts';

/** How a value becomes JSON. */
export type Encoding = 'plain' | 'quoted' | 'text' | 'float' | 'bytes' | 'date' | 'set' | 'json' | 'masked';

export interface Field {
  readonly name: string;
  readonly projected: ProjectedColumn;
  readonly encoding: Encoding;
  readonly mapping: FieldMapping;
  /** Of a date whose text may be no day: where that text goes. */
  readonly raw: string | null;
}

/**
 * A keyword's longest value in characters. Lucene takes 32,766 bytes at most and a character has up to 4; a longer value stands in the
 * source, but not in the index.
 */
const IGNORE_ABOVE = 8191;
const KEYWORD: FieldMapping = { type: 'keyword', ignore_above: IGNORE_ABOVE };
const TEXT: FieldMapping = { type: 'text', fields: { keyword: { type: 'keyword', ignore_above: 256 } } };
/** Up to this many characters a VARCHAR is taken for a name or a code, beyond for prose. */
const LONGEST_KEYWORD = 64;
/** Wrong types are refused, never truncated to fit. */
const LONG: FieldMapping = { type: 'long', coerce: false };
export const UNSIGNED_LONG: FieldMapping = { type: 'unsigned_long' };
/** First the format that Elasticsearch prints in; the second reads what MySQL prints, with up to six digits. */
const DATE_TIME: FieldMapping = {
  type: 'date',
  format: 'strict_date_optional_time||uuuu-MM-dd HH:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]',
};
const DATE: FieldMapping = { type: 'date', format: 'strict_date_optional_time' };

/** Throws the mapping errors of projections, and `ES_FIELD_COLLISION`. */
export function compileFields(rule: ElasticsearchRule, schema: TableSchema, metaField: string): readonly Field[] {
  const overrides = new Map(
    compileProjection({ fields: Object.keys(rule.mappings ?? {}) }, schema).map(({ column }) => [
      column.name,
      rule.mappings?.[column.name],
    ]),
  );
  const taken = new Map<string, string>([[metaField, 'the field of stream and version']]);
  const take = (name: string, owner: string): void => {
    const other = taken.get(name);
    if (other !== undefined) {
      throw elasticsearchErrors.ES_FIELD_COLLISION({
        message: `${owner} and ${other} would both be the field '${name}'`,
        where: { table: formatTableRef(schema), field: name },
      });
    }
    taken.set(name, owner);
  };
  const fields = compileProjection(rule, schema).map((projected) => {
    const { column } = projected;
    const name = fieldName(projected.name);
    take(name, `column '${column.name}'`);
    const override = overrides.get(column.name);
    const mapping = override ?? (projected.mask === 'none' ? derivedMapping(column, rule) : KEYWORD);
    return { name, projected, mapping, encoding: encodingOf(projected, mapping, rule), raw: null };
  });
  if ((rule.zeroDates ?? 'raw') !== 'raw') return fields;
  return fields.map((field) => {
    if (field.encoding !== 'date') return field;
    const raw = `${field.name}_raw`;
    take(raw, `the raw text of column '${field.projected.column.name}'`);
    return { ...field, raw };
  });
}

/** The `properties` of an index: all fields and the one with stream and version. */
export function propertiesOf(fields: readonly Field[], metaField: string): Record<string, FieldMapping> {
  const properties: Record<string, FieldMapping> = {
    [metaField]: {
      properties: {
        stream: { type: 'keyword', doc_values: false },
        database: { type: 'keyword', doc_values: false },
        table: { type: 'keyword', doc_values: false },
        version: { type: 'long' },
      },
    },
  };
  for (const field of fields) {
    properties[field.name] = field.mapping;
    if (field.raw !== null) properties[field.raw] = KEYWORD;
  }
  return properties;
}

/** As `index.mapping.total_fields.limit` counts: objects, fields, and fields within fields. */
export function countFields(properties: Readonly<Record<string, FieldMapping>>): number {
  let count = 0;
  for (const mapping of Object.values(properties)) {
    count++;
    for (const inner of [mapping['properties'], mapping['fields']]) {
      if (inner !== undefined) count += countFields(inner as Record<string, FieldMapping>);
    }
  }
  return count;
}

function derivedMapping(column: Column, rule: ElasticsearchRule): FieldMapping {
  const { base, size } = parseType(column.type);
  switch (column.kind) {
    case 'int':
      return LONG;
    case 'uint':
      if (base === 'year') return { type: 'short', coerce: false };
      return base === 'bigint' || (base === 'bit' && size > 63) ? UNSIGNED_LONG : LONG;
    case 'float':
      return { type: 'float', coerce: false };
    case 'double':
      return { type: 'double', coerce: false };
    case 'bytes':
      return { type: 'binary' };
    case 'text':
      return textMapping(column, base, size, rule);
  }
}

function textMapping(column: Column, base: string, size: number, rule: ElasticsearchRule): FieldMapping {
  if (isDecimalColumn(column)) return decimalMapping(column, rule);
  if (isJsonColumn(column)) {
    if (rule.json === 'object') return { type: 'object', enabled: false };
    if (rule.json === 'flattened') return { type: 'flattened', ignore_above: IGNORE_ABOVE };
    return { type: 'keyword', index: false, doc_values: false };
  }
  switch (base) {
    case 'date':
      return DATE;
    case 'datetime':
    case 'timestamp':
      return DATE_TIME;
    case 'varchar':
      return size > LONGEST_KEYWORD ? TEXT : KEYWORD;
    case 'tinytext':
    case 'text':
    case 'mediumtext':
    case 'longtext':
      return TEXT;
    default:
      return KEYWORD;
  }
}

function decimalMapping(column: Column, rule: ElasticsearchRule): FieldMapping {
  if (rule.decimals === 'double') return { type: 'double' };
  if (rule.decimals !== 'scaled_float') return KEYWORD;
  const scale = Number(/\(\d+\s*,\s*(\d+)\)/.exec(column.type)?.[1] ?? 0);
  return { type: 'scaled_float', scaling_factor: 10 ** scale };
}

function encodingOf(projected: ProjectedColumn, mapping: FieldMapping, rule: ElasticsearchRule): Encoding {
  const { column } = projected;
  if (projected.mask !== 'none') return 'masked';
  switch (column.kind) {
    case 'int':
    case 'uint':
      return 'plain';
    case 'float':
    case 'double':
      return 'float';
    case 'bytes':
      return 'bytes';
    case 'text':
      break;
  }
  if (mapping['type'] === 'date' || mapping['type'] === 'date_nanos') return 'date';
  if (isDecimalColumn(column)) return 'quoted';
  if (isJsonColumn(column)) return rule.json === 'object' || rule.json === 'flattened' ? 'json' : 'text';
  const { base } = parseType(column.type);
  if (base === 'set' && rule.sets !== 'text') return 'set';
  return base === 'time' || base === 'date' || base === 'datetime' || base === 'timestamp' ? 'quoted' : 'text';
}

/** `varchar(20)` → varchar, 20. */
export function parseType(type: string): { readonly base: string; readonly size: number } {
  const match = /^\s*([a-z0-9]+)(?:\s*\(\s*(\d+))?/i.exec(type);
  return { base: (match?.[1] ?? '').toLowerCase(), size: Number(match?.[2] ?? 0) };
}
