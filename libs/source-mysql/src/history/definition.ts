/** What a table is at some place of the log: everything that its table map lacks there. */
import type { ColumnShape } from '../schema/column-shape.ts';
import { HIDDEN_PERIOD, type Period, withoutEnd } from '../schema/period.ts';

/** null: not known from the definition, the table map decides (and where it does not tell either, the table cannot be read). */
export interface DefinedColumn extends Omit<ColumnShape, 'nullable' | 'charset'> {
  readonly nullable: boolean | null;
  /** '' for what is no text. */
  readonly charset: string | null;
  /** Bounds the time for which a row of a system-versioned table is current (MariaDB). */
  readonly bound?: 'start' | 'end' | undefined;
  /** Computed where it is read (MariaDB). Definitions of before this was noted lack it. */
  readonly virtual?: true | undefined;
}

export interface KeyPart {
  /** '' for an expression. */
  readonly column: string;
  /** Characters or bytes of it; 0: the whole column. */
  readonly prefix: number;
}

export interface TableKey {
  readonly name: string;
  readonly kind: 'primary' | 'unique' | 'other';
  readonly parts: readonly KeyPart[];
}

export interface TableDefinition {
  readonly columns: readonly DefinedColumn[];
  /** In the server's order. */
  readonly keys: readonly TableKey[];
  /** Of columns that name none; null: the database's, which was not known. */
  readonly charset: string | null;
  /** MariaDB keeps the history of its rows: in hidden columns where none bounds it. */
  readonly versioned: boolean;
  /** A MariaDB sequence, which is logged as if it were a table. */
  readonly sequence: boolean;
}

/** null: its rows are current as long as they are there. */
export function periodOf({ columns, versioned }: TableDefinition): Period | null {
  const start = columns.find(({ bound }) => bound === 'start')?.name;
  const end = columns.find(({ bound }) => bound === 'end')?.name;
  if (start !== undefined && end !== undefined) return { start, end, isHidden: false };
  return versioned ? HIDDEN_PERIOD : null;
}

export function virtualColumnsOf({ columns }: TableDefinition): readonly string[] {
  return columns.flatMap(({ name, virtual }) => (virtual ? [name] : []));
}

export function primaryKeyOf(definition: TableDefinition): readonly string[] {
  const key = definition.keys.find((other) => other.kind === 'primary')?.parts.map((part) => part.column) ?? [];
  return withoutEnd(key, periodOf(definition));
}

export function isWhole(part: KeyPart): boolean {
  return part.column !== '' && part.prefix === 0;
}

/** Unique keys without prefix or expression; whether all their columns are NOT NULL is asked elsewhere. */
export function uniqueKeysOf(definition: TableDefinition): readonly (readonly string[])[] {
  const period = periodOf(definition);
  return definition.keys
    .filter((key) => key.kind === 'unique' && key.parts.every(isWhole))
    .map((key) =>
      withoutEnd(
        key.parts.map((part) => part.column),
        period,
      ),
    );
}

const IS_BOOLEAN = (value: unknown): boolean => typeof value === 'boolean';
const IS_TEXT = (value: unknown): boolean => typeof value === 'string';
const IS_NUMBER = (value: unknown): boolean => typeof value === 'number';

const COLUMN_FIELDS: Readonly<Record<keyof DefinedColumn, (value: unknown) => boolean>> = {
  name: IS_TEXT,
  base: IS_TEXT,
  unsigned: IS_BOOLEAN,
  length: IS_NUMBER,
  precision: IS_NUMBER,
  scale: IS_NUMBER,
  nullable: (value) => value === null || IS_BOOLEAN(value),
  charset: (value) => value === null || IS_TEXT(value),
  members: (value) => Array.isArray(value) && value.every(IS_TEXT),
  bound: (value) => value === undefined || value === 'start' || value === 'end',
  virtual: (value) => value === undefined || value === true,
};

/** From what a store gave back; undefined when it is no definition. */
export function asDefinition(value: unknown): TableDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { columns, keys, charset, versioned, sequence } = value as Partial<Record<keyof TableDefinition, unknown>>;
  if (!Array.isArray(columns) || !columns.every(isColumn)) return undefined;
  if (!Array.isArray(keys) || !keys.every(isKey)) return undefined;
  if (!(charset === null || IS_TEXT(charset)) || !IS_BOOLEAN(versioned) || !IS_BOOLEAN(sequence)) return undefined;
  return value as TableDefinition;
}

function isColumn(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.entries(COLUMN_FIELDS).every(([name, fits]) => fits(fields[name]));
}

function isKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { name, kind, parts } = value as Partial<Record<keyof TableKey, unknown>>;
  if (!IS_TEXT(name) || !(kind === 'primary' || kind === 'unique' || kind === 'other') || !Array.isArray(parts))
    return false;
  return parts.every((part: Partial<KeyPart> | null) => IS_TEXT(part?.column) && IS_NUMBER(part?.prefix));
}
