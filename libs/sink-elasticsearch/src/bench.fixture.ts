/** What the tests of this room share: a private part of the shared server, schemas, changes, and a client that is not the sink's. */
import { randomBytes } from 'node:crypto';
import type { Column, ColumnKind, ColumnValue, RowKey, TableRef, TableSchema } from '@mysync/core';
import { sharedServer } from '@mysync/harness';
import type { ApplyBatch, ApplyOutcome, DeleteChange, PutChange, SinkChange, StreamRef } from '@mysync/sink';
import { objectMembers } from './json-slices.ts';
import type { ElasticsearchRule, ElasticsearchSinkOptions } from './options.ts';
import { ElasticsearchSink } from './sink.ts';

export const never: AbortSignal = new AbortController().signal;

export class EsBench {
  readonly url: string;
  readonly prefix: string;
  readonly stream: StreamRef;
  readonly #sinks: ElasticsearchSink[] = [];

  constructor(url: string) {
    this.url = url;
    this.prefix = `t${randomBytes(4).toString('hex')}`;
    this.stream = { topic: `${this.prefix}-topic`, partition: 0 };
  }

  /** On the server of `TEST_ELASTICSEARCH_URL` where that is set (for other versions), else on the shared one. */
  static async open(): Promise<EsBench> {
    // biome-ignore lint/style/noProcessEnv: a test's choice of server.
    const url = process.env['TEST_ELASTICSEARCH_URL'];
    if (url !== undefined) return new EsBench(url);
    return new EsBench((await sharedServer('elasticsearch')).get('ELASTICSEARCH_URL'));
  }

  get markerIndex(): string {
    return `${this.prefix}-markers`;
  }

  /** `rule` without `index`: `PREFIX-{database}-{table}`. */
  sink(rule: Partial<ElasticsearchRule> = {}, options: Partial<ElasticsearchSinkOptions> = {}): ElasticsearchSink {
    const sink = new ElasticsearchSink({
      name: this.prefix,
      nodes: [this.url],
      markerIndex: this.markerIndex,
      rules: [{ match: '*.*', index: `${this.prefix}-{database}-{table}`, ...rule }],
      ...options,
    });
    this.#sinks.push(sink);
    return sink;
  }

  async fetch(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
    const answer = await fetch(this.url + path, {
      method,
      ...(body === undefined
        ? {}
        : {
            headers: { 'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json' },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          }),
    });
    return { status: answer.status, text: await answer.text() };
  }

  async json(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const { text } = await this.fetch(method, path, body);
    return JSON.parse(text) as Record<string, unknown>;
  }

  /** Document id → the source's members, as the server stores them (text of JSON). */
  async documents(index: string, metaField = '_mysync'): Promise<Map<string, Record<string, string>>> {
    await this.fetch('POST', `/${encodeURIComponent(index)}/_refresh`);
    const all = new Map<string, Record<string, string>>();
    const answer = await this.json('POST', `/${encodeURIComponent(index)}/_search`, { size: 10_000, _source: false });
    const hits = (answer['hits'] as { hits?: { _id: string }[] } | undefined)?.hits ?? [];
    // `_source` alone, so that it is not parsed on its way
    for (const { _id } of hits) {
      const { text } = await this.fetch('GET', `/${encodeURIComponent(index)}/_source/${encodeURIComponent(_id)}`);
      const members = objectMembers(text);
      members.delete(metaField);
      all.set(_id, Object.fromEntries(members));
    }
    return all;
  }

  async close(): Promise<void> {
    for (const sink of this.#sinks) await sink.close();
    const indexes = await this.json('GET', `/${this.prefix}*/_settings?filter_path=*.settings.index.uuid`);
    for (const name of Object.keys(indexes)) await this.fetch('DELETE', `/${encodeURIComponent(name)}`);
    const templates = await this.json('GET', `/_index_template/mysync-${this.prefix}*`);
    for (const { name } of (templates['index_templates'] ?? []) as { name: string }[]) {
      await this.fetch('DELETE', `/_index_template/${encodeURIComponent(name)}`);
    }
  }
}

export function column(name: string, type: string, kind: ColumnKind, keyPosition = 0): Column {
  const charset = kind === 'text' ? 'utf8mb4' : kind === 'bytes' ? 'binary' : '';
  return { name, type, kind, keyPosition, nullable: keyPosition === 0, charset, members: [] };
}

export function schema(columns: readonly Column[], ref: Partial<TableRef> = {}): TableSchema {
  const table = { database: 'shop', table: 'orders', ...ref };
  const fingerprint = Buffer.from(JSON.stringify([table, columns])).toString('base64');
  return { ...table, columns, keyRule: 'primary', fingerprint };
}

function keyOf(table: TableSchema, row: readonly ColumnValue[]): RowKey {
  const parts = table.columns
    .map((each, index) => ({ each, value: row[index] }))
    .filter(({ each }) => each.keyPosition > 0)
    .sort((a, b) => a.each.keyPosition - b.each.keyPosition);
  const { database, table: name } = table;
  return {
    database,
    table: name,
    columns: parts.map((part) => part.each.name),
    values: parts.map((part) => part.value),
  };
}

export function put(table: TableSchema, row: readonly ColumnValue[], version: number): PutChange {
  return { kind: 'put', schema: table, key: keyOf(table, row), row, version: BigInt(version), offset: version };
}

export function del(table: TableSchema, row: readonly ColumnValue[], version: number): DeleteChange {
  return { kind: 'delete', schema: table, key: keyOf(table, row), row, version: BigInt(version), offset: version };
}

/** Applies batches and keeps the marker. */
export class TestWriter {
  readonly sink: ElasticsearchSink;
  readonly stream: StreamRef;
  marker: string | null = null;
  #moves = 0;

  constructor(sink: ElasticsearchSink, stream: StreamRef) {
    this.sink = sink;
    this.stream = stream;
  }

  batch(...changes: readonly SinkChange[]): ApplyBatch {
    const next = `m${++this.#moves} ${randomBytes(4).toString('hex')}`;
    return { stream: this.stream, changes, marker: { expected: this.marker, next } };
  }

  async send(batch: ApplyBatch, signal: AbortSignal = never): Promise<ApplyOutcome> {
    const outcome = await this.sink.apply(batch, signal);
    if (outcome.status === 'applied') this.marker = batch.marker.next;
    return outcome;
  }

  async apply(...changes: readonly SinkChange[]): Promise<ApplyOutcome> {
    return await this.send(this.batch(...changes));
  }
}
