/** All that is decided once per table version: where its rows go, under which id, and how they are written. */

import { formatTableRef, isMysyncError, type MysyncError, type TableRef, type TableSchema } from '@mysync/core';
import { compileTemplate, type RowTemplate } from '@mysync/mapping';
import { type DeleteChange, type PutChange, sinkErrors } from '@mysync/sink';
import type { VersionType } from './clear.ts';
import { compileFieldsWriter, type FieldsWriter, quote, RowRefusal } from './document.ts';
import { compileFields, type Field, propertiesOf } from './fields.ts';
import type { IndexPlan } from './indexes.ts';
import { documentId, indexName } from './names.ts';
import type { ElasticsearchRule } from './options.ts';

export const DEFAULT_INDEX = '{database}-{table}';
export const DEFAULT_ID = '{key}';

export function ruleIndex(rule: ElasticsearchRule, table: TableRef): string {
  return indexName(rule.index ?? DEFAULT_INDEX, table);
}

export class TablePlan {
  readonly index: string;
  readonly refresh: boolean;
  readonly fields: readonly Field[];
  readonly indexPlan: IndexPlan;
  readonly #rule: ElasticsearchRule;
  readonly #schema: TableSchema;
  readonly #idText: RowTemplate;
  readonly #writeFields: FieldsWriter;
  /** The text before the id, for index and for delete. */
  readonly #indexHead: string;
  readonly #deleteHead: string;
  readonly #metaHead: string;
  readonly #metaTail: string;

  /** Throws the errors of mappings and names. */
  constructor(rule: ElasticsearchRule, schema: TableSchema, metaField: string) {
    this.#rule = rule;
    this.#schema = schema;
    this.index = ruleIndex(rule, schema);
    this.refresh = rule.refresh === true;
    this.#idText = compileTemplate(rule.id ?? DEFAULT_ID, schema, {
      role: 'key',
      ...(rule.partitionBy === undefined ? {} : { partitionBy: rule.partitionBy }),
    });
    this.fields = compileFields(rule, schema, metaField);
    this.#writeFields = compileFieldsWriter(this.fields, rule.zeroDates ?? 'raw');
    this.indexPlan = {
      index: this.index,
      table: { database: schema.database, table: schema.table },
      id: rule.id ?? DEFAULT_ID,
      properties: propertiesOf(this.fields, metaField),
      settings: rule.settings ?? {},
      dynamic: rule.dynamic ?? 'false',
    };
    const index = JSON.stringify(this.index);
    this.#indexHead = `{"index":{"_index":${index},"_id":`;
    this.#deleteHead = `{"delete":{"_index":${index},"_id":`;
    this.#metaHead = `{${JSON.stringify(metaField)}:{"stream":`;
    this.#metaTail = `,"database":${JSON.stringify(schema.database)},"table":${JSON.stringify(schema.table)},"version":`;
  }

  /**
   * The lines of a put. `stream` as JSON text. `stored`: the members of the stored document, for columns that the row
   * lacks. Returns the refusal instead when the row cannot be written.
   */
  putLines(
    change: PutChange,
    stream: string,
    stored?: ReadonlyMap<string, string>,
    versionType: VersionType = 'external',
  ): string | MysyncError {
    const id = this.id(change);
    if (typeof id !== 'string') return id;
    let fields: string;
    try {
      fields = this.#writeFields(change.row);
    } catch (error) {
      if (!(error instanceof RowRefusal)) throw error;
      return this.#refusal(change, `column '${error.column}': ${error.message}`);
    }
    if (stored !== undefined) fields += this.#storedFields(change, stored);
    return `${this.#indexHead}${quote(id)},"version":${change.version},"version_type":"${versionType}"}}\n${this.#metaHead}${stream}${this.#metaTail}${change.version}}${fields}}\n`;
  }

  deleteLines(change: DeleteChange): string | MysyncError {
    const id = this.id(change);
    if (typeof id !== 'string') return id;
    return `${this.#deleteHead}${quote(id)},"version":${change.version},"version_type":"external"}}\n`;
  }

  id(change: PutChange | DeleteChange): string | MysyncError {
    let text: string;
    try {
      text = this.#idText(change.row, change.key);
    } catch (error) {
      if (isMysyncError(error)) return error;
      throw error;
    }
    return (
      documentId(text, this.#rule.longIds ?? 'hash') ??
      this.#refusal(change, `the id would have ${Buffer.byteLength(text)} bytes, more than 512`)
    );
  }

  /** True when the image lacks a column that the document has: the stored value must stay. */
  isPartial(change: PutChange): boolean {
    return (
      change.row.includes(undefined) && this.fields.some((field) => change.row[field.projected.index] === undefined)
    );
  }

  #storedFields(change: PutChange, stored: ReadonlyMap<string, string>): string {
    let text = '';
    for (const field of this.fields) {
      if (change.row[field.projected.index] !== undefined) continue;
      for (const name of field.raw === null ? [field.name] : [field.name, field.raw]) {
        const value = stored.get(name);
        if (value !== undefined) text += `,${JSON.stringify(name)}:${value}`;
      }
    }
    return text;
  }

  #refusal(change: PutChange | DeleteChange, what: string): MysyncError {
    return sinkErrors.SINK_VALUE_REFUSED({
      message: `a row of ${formatTableRef(this.#schema)} cannot be stored: ${what}`,
      where: { table: formatTableRef(this.#schema), index: this.index, offset: change.offset },
    });
  }
}
