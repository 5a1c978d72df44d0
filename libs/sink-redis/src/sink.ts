import { type Finding, formatTableRef, type TableRef, type TableSchema, tableRefKey } from '@mysync/core';
import { compileRules } from '@mysync/mapping';
import type { ApplyBatch, ApplyOutcome, DeleteChange, PutChange, Sink, StreamRef } from '@mysync/sink';
import { type ClearBatch, type RedisBackend, type RowBatch, type RowEncoder, versionText } from './backend.ts';
import { Cluster } from './cluster.ts';
import type { Argument } from './connection.ts';
import { redisErrors } from './errors.ts';
import { RedisInspector } from './inspector.ts';
import { compileTable, type TableMapper } from './mapper.ts';
import { recordId, redisNames } from './names.ts';
import { type RedisSinkOptions, type RedisTableRule, redisSettings } from './options.ts';
import { SingleServer } from './single-server.ts';

/**
 * Redis behind the sink port: a row is a hash or a JSON string under a key of its own.
 *
 * 1. Beside each row stands its version; what is older than it is refused, also for deleted rows (for `deletedTtlSeconds`).
 * 2. Rows, versions, index sets and (on one server) the marker change in one atomic step per chunk.
 * 3. No two tables share a key template: one row would overwrite the other's.
 *
 * Spec: docs/spec/sink-redis.md.
 */
export class RedisSink implements Sink {
  readonly kind = 'redis';
  readonly #ruleOf: (table: TableRef) => RedisTableRule | undefined;
  readonly #cluster: boolean;
  readonly #backend: RedisBackend;
  readonly inspector: RedisInspector;
  readonly holders?: (stream: StreamRef) => Promise<string>;
  readonly #mappers = new Map<string, TableMapper>();
  /** The same, by the very object: what almost every change finds. */
  readonly #mapperOf = new WeakMap<TableSchema, TableMapper>();
  readonly #shapes = new Map<string, TableRef>();
  readonly #recordIds = new Map<string, string>();
  #doubt: (reason: string) => void = () => undefined;

  constructor(options: RedisSinkOptions) {
    const settings = redisSettings(options);
    this.#ruleOf = compileRules(options.tables);
    this.#cluster = settings.cluster;
    const backendOptions = { onDoubt: (reason: string) => this.#doubt(reason) };
    this.#backend = settings.cluster
      ? new Cluster(settings, backendOptions)
      : new SingleServer(settings, backendOptions);
    const { holders } = this.#backend;
    if (holders !== undefined) this.holders = (stream) => holders.call(this.#backend, stream);
    this.inspector = new RedisInspector({
      backend: this.#backend,
      names: redisNames(settings.prefix),
      chunkRows: settings.chunkRows,
      deletedTtlSeconds: settings.deletedTtlSeconds,
      oneSlot: !settings.cluster,
      indexed: settings.indexed,
      mapper: (schema) => this.#mapper(schema),
      encoder: (stream) => this.#encoder(stream),
    });
  }

  async check(): Promise<readonly Finding[]> {
    return await this.#backend.check();
  }

  async prepare(schema: TableSchema): Promise<void> {
    this.#mapper(schema);
  }

  accepts(table: TableRef): boolean {
    return this.#ruleOf(table) !== undefined;
  }

  async readMarker(stream: StreamRef): Promise<string | null> {
    return await this.#backend.readMarker(stream);
  }

  async apply(batch: ApplyBatch, signal: AbortSignal): Promise<ApplyOutcome> {
    if (isClear(batch)) return await this.#backend.applyClear(batch, signal);
    return await this.#backend.applyRows(batch as RowBatch, this.#encoder(batch.stream), signal);
  }

  onDoubt(callback: (reason: string) => void): void {
    this.#doubt = callback;
  }

  async close(): Promise<void> {
    await this.#backend.close();
  }

  #encoder(stream: StreamRef): RowEncoder {
    let schema: TableSchema | null = null;
    let mapper: TableMapper | null = null;
    let id = '';
    return {
      encode: (change: PutChange | DeleteChange, args: Argument[]) => {
        if (mapper === null || change.schema !== schema) {
          schema = change.schema;
          mapper = this.#mapper(schema);
          id = this.#recordId(stream, schema);
        }
        const key = mapper.keyOf(change.row, change.key);
        mapper.encode(change, versionText(change.version), id, args);
        return key;
      },
      indexKeys: (change) =>
        change.kind === 'put' ? this.#mapper(change.schema).indexKeys(change.row, change.key) : [],
    };
  }

  #recordId(stream: StreamRef, table: TableRef): string {
    const name = `${stream.topic}\0${stream.partition}\0${tableRefKey(table)}`;
    let id = this.#recordIds.get(name);
    if (id === undefined) {
      id = recordId(stream, table);
      this.#recordIds.set(name, id);
    }
    return id;
  }

  #mapper(schema: TableSchema): TableMapper {
    const known = this.#mapperOf.get(schema);
    if (known !== undefined) return known;
    const name = `${tableRefKey(schema)}\0${schema.fingerprint}`;
    let mapper = this.#mappers.get(name);
    if (mapper === undefined) {
      mapper = this.#compile(schema);
      this.#mappers.set(name, mapper);
    }
    this.#mapperOf.set(schema, mapper);
    return mapper;
  }

  #compile(schema: TableSchema): TableMapper {
    const rule = this.#ruleOf(schema);
    if (rule === undefined) throw new Error(`no rule maps ${formatTableRef(schema)}`);
    const mapper = compileTable(rule, schema, this.#cluster);
    const { shape } = mapper.keyOf;
    const other = this.#shapes.get(shape);
    if (other !== undefined && tableRefKey(other) !== tableRefKey(schema)) {
      throw redisErrors.REDIS_KEY_SHARED({
        message: `${formatTableRef(other)} and ${formatTableRef(schema)} would share the keys ${shape.replaceAll('\0', '*')}`,
        where: { table: formatTableRef(schema), other: formatTableRef(other) },
      });
    }
    this.#shapes.set(shape, schema);
    return mapper;
  }
}

function isClear(batch: ApplyBatch): batch is ClearBatch {
  return batch.changes[0]?.kind === 'clear';
}
