/** A table's rule compiled for one schema: turns changes into the rows of the apply script. */
import { createHash } from 'node:crypto';
import { type Column, type ColumnValue, formatTableRef, numberText, type RowKey, type TableSchema } from '@mysync/core';
import {
  bytesText,
  columnIndex,
  compileJsonWriter,
  compileProjection,
  compileTemplate,
  isDecimalColumn,
  maskValue,
  type ProjectedColumn,
  type RowTemplate,
} from '@mysync/mapping';
import type { DeleteChange, PutChange } from '@mysync/sink';
import type { Argument } from './connection.ts';
import { redisErrors } from './errors.ts';
import type { RedisIndexRule, RedisTableRule } from './options.ts';
import { keySlot } from './slot.ts';

interface CompiledIndex {
  /** Names the entry among a row's memberships: the same for the same rule. */
  readonly id: string;
  readonly kind: 's' | 'z';
  readonly key: RowTemplate;
  readonly member: RowTemplate;
  readonly score: number;
  /** Columns that decide whether the row is a member. */
  readonly columns: readonly number[];
}

export interface TableMapper {
  readonly schema: TableSchema;
  readonly keyOf: RowTemplate;
  /** 8 hex digits: what a row written under another rule or schema does not share. */
  readonly shape: string;
  /** Appends the row to the script's arguments. `id`: 12 hex digits of stream and table. Throws when it can never be applied. */
  encode(change: PutChange | DeleteChange, version: string, id: string, args: Argument[]): void;
  /** What is stored of a whole row. */
  stored(row: readonly ColumnValue[]): StoredForm;
  readonly expires: boolean;
  /** The keys of a row's memberships, for the check that they share its slot. */
  indexKeys(row: readonly ColumnValue[], key: RowKey): readonly string[];
}

/** A string, or the fields of a hash: null where the field is not there. */
export type StoredForm =
  | { readonly kind: 'string'; readonly text: Argument }
  | { readonly kind: 'hash'; readonly fields: readonly (readonly [name: string, value: Argument | null])[] };

type FieldWriter = (value: Exclude<ColumnValue, null | undefined>) => Argument;

/** Throws the mapping's errors, `REDIS_INDEX_INVALID` and (in a cluster) `REDIS_INDEX_CROSS_SLOT`. */
export function compileTable(rule: RedisTableRule, schema: TableSchema, cluster: boolean): TableMapper {
  const partitionBy = rule.partitionBy ?? [];
  const keyOf = compileTemplate(rule.key ?? '{table}:{key}', schema, { role: 'key', partitionBy });
  const fields = compileProjection(rule, schema);
  const indexes = (rule.indexes ?? []).map((index) => compileIndex(index, schema));
  if (cluster) for (const index of indexes) checkSlot(schema, keyOf, index);
  const names = fields.map((field) => field.name);
  const shape = digest(JSON.stringify([rule.as, names, rule.nulls ?? 'omit', rule.ttlSeconds ?? 0])).slice(0, 8);
  const { encodePut, stored } =
    rule.as === 'json' ? jsonEncoder(rule, schema, fields, indexes) : hashEncoder(rule, fields, indexes, names);
  return {
    schema,
    keyOf,
    shape,
    encode: (change, version, id, args) => {
      if (change.kind === 'delete') args.push('d', `${version}-${shape}${id}`);
      else encodePut(change, `${version}+${shape}${id}`, args);
    },
    stored,
    expires: rule.ttlSeconds !== undefined,
    indexKeys: (row, key) => indexes.filter((index) => isMember(index, row)).map((index) => index.key(row, key)),
  };
}

interface RowForms {
  readonly encodePut: (change: PutChange, record: string, args: Argument[]) => void;
  readonly stored: (row: readonly ColumnValue[]) => StoredForm;
}

function jsonEncoder(
  rule: RedisTableRule,
  schema: TableSchema,
  fields: readonly ProjectedColumn[],
  indexes: readonly CompiledIndex[],
): RowForms {
  const write = compileJsonWriter(fields, {
    decimals: rule.decimals ?? 'string',
    bytes: rule.bytes === 'hex' ? 'hex' : 'base64',
  });
  const plain = indexes.length === 0 && rule.ttlSeconds === undefined;
  const ttl = rule.ttlSeconds === undefined ? '' : String(rule.ttlSeconds);
  const encodePut: RowForms['encodePut'] = (change, record, args) => {
    if (change.row.includes(undefined) && fields.some((field) => change.row[field.index] === undefined)) {
      throw redisErrors.REDIS_PARTIAL_ROW({
        message: `a row of ${formatTableRef(schema)} lacks columns, and a JSON value cannot be changed in part`,
        where: { table: formatTableRef(schema) },
      });
    }
    if (plain) args.push('j', record, write(change.row));
    else {
      args.push('g', record, 'j', '0', ttl, '1', write(change.row), '0');
      pushMemberships(indexes, change, args);
    }
  };
  return { encodePut, stored: (row) => ({ kind: 'string', text: write(row) }) };
}

function hashEncoder(
  rule: RedisTableRule,
  fields: readonly ProjectedColumn[],
  indexes: readonly CompiledIndex[],
  names: readonly string[],
): RowForms {
  const writers = fields.map((field) => fieldWriter(field.column, rule.bytes ?? 'base64'));
  const masked = fields.some((field) => field.mask !== 'none');
  const emptyNulls = rule.nulls === 'empty';
  const ttl = rule.ttlSeconds === undefined ? '' : String(rule.ttlSeconds);
  /** null: the field is not there; undefined: the image lacks the column. */
  const fieldValue = (row: readonly ColumnValue[], field: ProjectedColumn, at: number): Argument | null | undefined => {
    const value = maskValue(row[field.index], field);
    if (value === undefined) return undefined;
    if (value === null) return emptyNulls ? '' : null;
    return field.mask === 'none' ? (writers[at] as FieldWriter)(value) : String(value);
  };
  const general: RowForms['encodePut'] = (change, record, args) => {
    const pairs: Argument[] = [];
    const nulls: string[] = [];
    let partial = false;
    fields.forEach((field, at) => {
      const value = fieldValue(change.row, field, at);
      if (value === undefined) partial = true;
      else if (value === null) nulls.push(field.name);
      else pairs.push(field.name, value);
    });
    args.push('g', record, 'h', partial ? '1' : '0', ttl, String(pairs.length));
    for (const each of pairs) args.push(each);
    args.push(String(nulls.length), ...nulls);
    pushMemberships(indexes, change, args);
  };
  const stored: RowForms['stored'] = (row) => ({
    kind: 'hash',
    fields: fields.map((field, at) => [field.name, fieldValue(row, field, at) ?? null] as const),
  });
  const plain = indexes.length === 0 && ttl === '' && !masked;
  if (!plain || fields.length === 0 || fields.length > MAX_PLAIN_FIELDS) return { encodePut: general, stored };
  const places = fields.map((field) => field.index);
  const encodePut: RowForms['encodePut'] = (change, record, args) => {
    if (announced.get(args) !== names) {
      announced.set(args, names);
      args.push('f', String(names.length), ...names);
    }
    const start = args.length;
    args.push('h', record);
    const { row } = change;
    for (let at = 0; at < places.length; at++) {
      const value = row[places[at] as number];
      if (value === null || value === undefined) {
        args.length = start;
        general(change, record, args);
        return;
      }
      args.push((writers[at] as FieldWriter)(value));
    }
  };
  return { encodePut, stored };
}

/** The field names that the `h` rows of a script's arguments have, as last said in them. */
const announced = new WeakMap<Argument[], readonly string[]>();
/** Lua unpacks less than 8000 values at once. */
const MAX_PLAIN_FIELDS = 3_000;

/** Takes back what was appended for a row that cannot be applied. */
export function takeBack(args: Argument[], length: number): void {
  args.length = length;
  announced.delete(args);
}

function fieldWriter(column: Column, bytes: 'base64' | 'hex' | 'raw'): FieldWriter {
  const single = column.kind === 'float';
  return (value) => {
    if (typeof value === 'string') return value;
    if (typeof value === 'number') return numberText(value, single);
    if (typeof value === 'bigint') return value.toString();
    if (bytes === 'raw') return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return bytesText(value, bytes);
  };
}

function compileIndex(rule: RedisIndexRule, schema: TableSchema): CompiledIndex {
  const key = compileTemplate(rule.key, schema, { role: 'text' });
  const member = compileTemplate(rule.member ?? '{key}', schema, { role: 'text' });
  const where = { table: formatTableRef(schema), index: rule.key };
  if ((rule.kind === 'sorted-set') !== (rule.score !== undefined)) {
    const message = `index '${rule.key}' of ${where.table}: a sorted set needs a score, a set has none`;
    throw redisErrors.REDIS_INDEX_INVALID({ message, where });
  }
  const score = rule.score === undefined ? -1 : columnIndex(schema, rule.score, `score of index '${rule.key}'`);
  const column = schema.columns[score];
  if (column !== undefined && (column.kind === 'bytes' || (column.kind === 'text' && !isDecimalColumn(column)))) {
    const message = `index '${rule.key}' of ${where.table}: the score '${column.name}' is ${column.type}, not a number`;
    throw redisErrors.REDIS_INDEX_INVALID({ message, where });
  }
  const columns = [...new Set([...key.columns, ...member.columns, ...(score < 0 ? [] : [score])])];
  const id = digest(JSON.stringify([rule.kind, rule.key, rule.member ?? ''])).slice(0, 8);
  return { id, kind: rule.kind === 'set' ? 's' : 'z', key, member, score, columns };
}

function isMember(index: CompiledIndex, row: readonly ColumnValue[]): boolean {
  return index.columns.every((column) => row[column] !== null && row[column] !== undefined);
}

function pushMemberships(indexes: readonly CompiledIndex[], change: PutChange, args: Argument[]): void {
  const at = args.length;
  args.push('0');
  let count = 0;
  for (const index of indexes) {
    const { row, key } = change;
    if (index.columns.some((column) => row[column] === undefined)) args.push(index.id, 'k', '', '', '');
    else if (!isMember(index, row)) continue;
    else
      args.push(
        index.id,
        index.kind,
        index.key(row, key),
        index.member(row, key),
        index.score < 0 ? '' : String(row[index.score]),
      );
    count++;
  }
  args[at] = String(count);
}

/** Two templates share their slot when they do so for made-up rows of every kind. */
function checkSlot(schema: TableSchema, keyOf: RowTemplate, index: CompiledIndex): void {
  for (let probe = 1; probe <= 16; probe++) {
    const row = schema.columns.map((column, at) => probeValue(column, probe * 1009 + at));
    const inKey = row.map((_, at) => at).filter((at) => (schema.columns[at]?.keyPosition ?? 0) > 0);
    inKey.sort((a, b) => (schema.columns[a]?.keyPosition ?? 0) - (schema.columns[b]?.keyPosition ?? 0));
    const values = schema.keyRule === 'row-hash' ? [new Uint8Array([probe])] : inKey.map((at) => row[at]);
    const key: RowKey = { database: schema.database, table: schema.table, columns: [], values };
    const [rowKey, indexKey] = [keyOf(row, key), index.key(row, key)];
    if (keySlot(rowKey) === keySlot(indexKey)) continue;
    throw redisErrors.REDIS_INDEX_CROSS_SLOT({
      message: `index key '${indexKey}' and row key '${rowKey}' of ${formatTableRef(schema)} lie in different slots`,
      where: { table: formatTableRef(schema) },
    });
  }
}

function probeValue(column: Column, seed: number): ColumnValue {
  if (column.kind === 'text') return `probe${seed}`;
  if (column.kind === 'bytes') return Buffer.from(`probe${seed}`);
  return seed;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
