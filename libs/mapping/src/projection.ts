/** Which columns of a row go into a target document, under which names, and masked how. */
import { createHash } from 'node:crypto';
import { type Column, type ColumnValue, formatTableRef, type TableSchema } from '@mysync/core';
import { mappingErrors } from './errors.ts';
import { didYouMean } from './suggest.ts';
import { compileJsonValue, type JsonOptions, valueText } from './value.ts';

/**
 * `null`: always NULL · `redact`: `***` · `hash`: SHA-256 of the value's text in hex (equal values stay equal; values that can
 * be guessed can be found again, so it hides, it does not protect). A NULL stays NULL.
 */
export type Mask = 'null' | 'hash' | 'redact';

export interface ProjectionRule {
  /** Only these columns, in this order; all when missing. */
  readonly fields?: readonly string[];
  readonly exclude?: readonly string[];
  /** Column name → target name. */
  readonly rename?: Readonly<Record<string, string>>;
  readonly mask?: Readonly<Record<string, Mask>>;
}

export interface ProjectedColumn {
  /** Target name. */
  readonly name: string;
  /** Place in the row. */
  readonly index: number;
  readonly column: Column;
  readonly mask: Mask | 'none';
}

/** Throws `MAPPING_COLUMN_UNKNOWN` and `MAPPING_NAME_TAKEN`. */
export function compileProjection(rule: ProjectionRule, schema: TableSchema): readonly ProjectedColumn[] {
  const indexOf = (name: string, option: string): number => columnIndex(schema, name, option);
  const chosen = rule.fields?.map((name) => indexOf(name, 'fields')) ?? schema.columns.map((_, index) => index);
  const excluded = new Set((rule.exclude ?? []).map((name) => indexOf(name, 'exclude')));
  const renamed = new Map(Object.entries(rule.rename ?? {}).map(([from, to]) => [indexOf(from, 'rename'), to]));
  const masked = new Map(Object.entries(rule.mask ?? {}).map(([name, mask]) => [indexOf(name, 'mask'), mask]));
  const taken = new Map<string, Column>();
  const projected: ProjectedColumn[] = [];
  for (const index of new Set(chosen)) {
    const column = schema.columns[index];
    if (column === undefined || excluded.has(index)) continue;
    const name = renamed.get(index) ?? column.name;
    const other = taken.get(name);
    if (other !== undefined) {
      throw mappingErrors.MAPPING_NAME_TAKEN({
        message: `columns '${other.name}' and '${column.name}' of ${formatTableRef(schema)} would both be called '${name}'`,
        where: { table: formatTableRef(schema), name },
      });
    }
    taken.set(name, column);
    projected.push({ name, index, column, mask: masked.get(index) ?? 'none' });
  }
  return projected;
}

/** The place of a column in the row; throws `MAPPING_COLUMN_UNKNOWN`, naming the option that asked for it. */
export function columnIndex(schema: TableSchema, name: string, option: string): number {
  const index = schema.columns.findIndex((column) => column.name === name);
  if (index >= 0) return index;
  const names = schema.columns.map((column) => column.name);
  throw mappingErrors.MAPPING_COLUMN_UNKNOWN({
    message: `${formatTableRef(schema)} has no column '${name}' (in ${option})${didYouMean(name, names)}`,
    where: { table: formatTableRef(schema), column: name, option },
  });
}

/** A value after its mask. undefined stays undefined. */
export function maskValue(value: ColumnValue, projected: ProjectedColumn): ColumnValue {
  if (projected.mask === 'none' || value === undefined || value === null) return value;
  if (projected.mask === 'null') return null;
  if (projected.mask === 'redact') return '***';
  return createHash('sha256').update(valueText(value, projected.column)).digest('hex');
}

/**
 * Writes projected rows as one JSON object each: numbers as digits (bigints too), DECIMAL as text unless `decimals` is
 * 'number', bytes as base64, JSON columns embedded, dates and the rest as text, NULL as null. Absent columns are left out.
 */
export function compileJsonWriter(
  projection: readonly ProjectedColumn[],
  options: JsonOptions = {},
): (row: readonly ColumnValue[]) => string {
  const writers = projection.map((projected) => {
    const write = compileJsonValue(projected.column, options);
    return {
      index: projected.index,
      first: `{${JSON.stringify(projected.name)}:`,
      further: `,${JSON.stringify(projected.name)}:`,
      projected,
      masked: projected.mask !== 'none',
      // A masked value is text, whatever the column is.
      write: projected.mask === 'none' ? write : (value: Exclude<ColumnValue, undefined>) => JSON.stringify(value),
    };
  });
  return (row) => {
    let json = '';
    for (const writer of writers) {
      let value = row[writer.index];
      if (writer.masked) value = maskValue(value, writer.projected);
      if (value === undefined) continue;
      json += (json === '' ? writer.first : writer.further) + writer.write(value);
    }
    return json === '' ? '{}' : `${json}}`;
  };
}
