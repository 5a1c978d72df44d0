import { causeText, formatTableRef, isMysyncError, type Logger, type TableRef } from '@mysync/core';
import { parseTemplate } from '@mysync/mapping';
import { elasticsearchErrors } from './errors.ts';
import { errorBody, responseError } from './failures.ts';
import { countFields, UNSIGNED_LONG } from './fields.ts';
import type { EsAnswer, EsHttp } from './http.ts';
import { gcDeletesSeconds, type IndexInfo, isBuiltFrom, parseIndexInfo, settingNumber } from './index-info.ts';
import type { IndexRegistry } from './index-registry.ts';
import type { FieldMapping } from './options.ts';

/** What an index must be like for a table. */
export interface IndexPlan {
  readonly index: string;
  readonly table: TableRef;
  /** The template of the ids: whether it keeps two tables apart. */
  readonly id: string;
  readonly properties: Readonly<Record<string, FieldMapping>>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly dynamic: string;
}

export interface IndexKeeperOptions {
  readonly http: EsHttp;
  readonly registry: IndexRegistry;
  readonly sink: string;
  readonly templates: boolean;
  readonly gcDeletesSeconds: number;
  readonly logger: Logger;
}

/** A table that an index holds rows of, as noted in the index's `_meta`. */
export interface IndexOwner {
  readonly database: string;
  readonly table: string;
  readonly id: string;
}

/** Above what Elasticsearch's own templates have (100 to 200), so that a name such as `logs-a-b` becomes a plain index. */
const TEMPLATE_PRIORITY = 600;
const MAX_FIELDS = 1000;

/**
 * Makes indices and keeps them fit.
 *
 * 1. An index is made with the whole mapping before its first document, and has a template of its own that forbids making it
 *    by chance: a bulk to a deleted index fails instead of filling a new one with half the rows.
 * 2. It is noted beside the markers before its first document (`IndexRegistry`), and one that is not what is noted there is refused.
 * 3. Mappings only grow. A field that has another type already keeps it; a document that does not fit is refused item by item.
 * 4. Two tables share an index only if their ids cannot meet.
 * 5. Calls for one index run one after the other.
 */
export class IndexKeeper {
  readonly #options: IndexKeeperOptions;
  readonly #chains = new Map<string, Promise<unknown>>();
  /** Stock servers have it; one without the x-pack modules has not. */
  #hasUnsignedLong = true;

  constructor(options: IndexKeeperOptions) {
    this.#options = options;
  }

  async ensure(plan: IndexPlan): Promise<void> {
    const before = this.#chains.get(plan.index) ?? Promise.resolve();
    const done = before.then(
      () => this.#ensure(plan),
      () => this.#ensure(plan),
    );
    this.#chains.set(plan.index, done);
    await done;
  }

  async #ensure(plan: IndexPlan): Promise<void> {
    const { registry } = this.#options;
    const fields = countFields(plan.properties);
    for (;;) {
      const info = await this.#read(plan.index);
      if (info !== null) return await this.#extend(plan, info);
      await registry.isNoted(plan.index, plan.table, null);
      checkFieldCount(plan, fields, settingNumber(plan.settings, 'index.mapping.total_fields.limit') ?? MAX_FIELDS);
      if (await this.#create(plan)) {
        const made = await this.#read(plan.index);
        if (made !== null) return await registry.note(plan.index, plan.table, made);
      }
    }
  }

  async #read(index: string): Promise<IndexInfo | null> {
    const { http } = this.#options;
    const answer = await http.request({
      method: 'GET',
      path: `/${encodeURIComponent(index)}`,
      query: { flat_settings: 'true' },
      accept: [404],
    });
    if (answer.status !== 404) return parseIndexInfo(answer.body);
    if (errorBody(answer.body).type !== 'index_not_found_exception')
      throw responseError(404, answer.body, `GET /${index}`);
    return null;
  }

  /** False when another writer made it meanwhile. */
  async #create(plan: IndexPlan): Promise<boolean> {
    const meta = this.#meta([ownerOf(plan)]);
    await this.#putTemplate(plan, plan.properties, meta);
    const answer = await this.#withFallback(plan.properties, (properties) => ({
      method: 'PUT',
      path: `/${encodeURIComponent(plan.index)}`,
      body: JSON.stringify(this.#body(plan, properties, meta)),
    }));
    if (answer.status < 400) {
      this.#options.logger.info({ index: plan.index, table: formatTableRef(plan.table) }, 'made an index');
      return true;
    }
    if (errorBody(answer.body).type === 'resource_already_exists_exception') return false;
    throw mappingRefused(plan, answer);
  }

  async #extend(plan: IndexPlan, info: IndexInfo): Promise<void> {
    checkOwners(plan, info.owners);
    const { registry } = this.#options;
    const isNoted = await registry.isNoted(plan.index, plan.table, info);
    const missing: Record<string, FieldMapping> = {};
    for (const [name, mapping] of Object.entries(plan.properties)) {
      const existing = info.properties[name];
      if (existing === undefined) missing[name] = mapping;
      else if (!isBuiltFrom(existing, mapping)) this.#warnDiffers(plan, name, existing, mapping);
    }
    const owner = ownerOf(plan);
    const known = info.owners.some((each) => isSameTable(each, owner) && each.id === owner.id);
    if (Object.keys(missing).length > 0 || !known) {
      const all = { ...info.properties, ...missing };
      checkFieldCount(plan, countFields(all), info.fieldLimit ?? MAX_FIELDS);
      const meta = this.#meta([...info.owners.filter((each) => !isSameTable(each, owner)), owner], info.meta);
      await this.#putTemplate(plan, all, meta);
      const answer = await this.#withFallback(missing, (properties) => ({
        method: 'PUT',
        path: `/${encodeURIComponent(plan.index)}/_mapping`,
        body: JSON.stringify({ _meta: meta, properties }),
      }));
      if (answer.status >= 400) throw mappingRefused(plan, answer);
    }
    await this.#raiseGcDeletes(plan, info);
    if (!isNoted) await registry.note(plan.index, plan.table, info);
  }

  /** A server that lacks `unsigned_long` takes the digits as a keyword. */
  async #withFallback(
    properties: Readonly<Record<string, FieldMapping>>,
    request: (properties: Readonly<Record<string, FieldMapping>>) => { method: 'PUT'; path: string; body: string },
  ): Promise<EsAnswer> {
    const { http, logger } = this.#options;
    const send = async (): Promise<EsAnswer> =>
      await http.request({
        ...request(this.#hasUnsignedLong ? properties : withoutUnsignedLong(properties)),
        accept: [400],
      });
    const answer = await send();
    const { type } = errorBody(answer.body);
    const mayLackType = type === 'mapper_parsing_exception' || type === 'illegal_argument_exception';
    const usesIt = Object.values(properties).some((mapping) => mapping === UNSIGNED_LONG);
    if (answer.status < 400 || !mayLackType || !usesIt || !this.#hasUnsignedLong) return answer;
    this.#hasUnsignedLong = false;
    const second = await send();
    if (second.status >= 400 && errorBody(second.body).type !== 'resource_already_exists_exception') {
      this.#hasUnsignedLong = true;
      return answer;
    }
    logger.warn({}, 'the server lacks the field type unsigned_long: unsigned BIGINT columns are keywords');
    return second;
  }

  async #putTemplate(plan: IndexPlan, properties: Readonly<Record<string, FieldMapping>>, meta: object): Promise<void> {
    const { templates, logger, sink } = this.#options;
    if (!templates) return;
    let reason: string;
    try {
      const answer = await this.#withFallback(properties, (fitting) => ({
        method: 'PUT',
        path: `/_index_template/${encodeURIComponent(`mysync-${plan.index}`)}`,
        body: JSON.stringify({
          index_patterns: [plan.index],
          priority: TEMPLATE_PRIORITY,
          allow_auto_create: false,
          _meta: { description: `MySync, sink ${sink}` },
          template: this.#body(plan, fitting, meta),
        }),
      }));
      if (answer.status < 400) return;
      ({ reason } = errorBody(answer.body));
    } catch (error) {
      // Who may not put templates can do without.
      if (!isMysyncError(error) || (error.retriable && error.code !== 'SINK_DENIED')) throw error;
      reason = causeText(error);
    }
    logger.warn({ index: plan.index, reason }, 'no index template could be put');
  }

  #body(plan: IndexPlan, properties: Readonly<Record<string, FieldMapping>>, meta: object): object {
    return {
      settings: { 'index.gc_deletes': `${this.#options.gcDeletesSeconds}s`, ...plan.settings },
      mappings: { dynamic: plan.dynamic, _meta: meta, properties },
    };
  }

  #meta(owners: readonly IndexOwner[], others: object = {}): object {
    return { ...others, mysync: { sink: this.#options.sink, tables: owners } };
  }

  async #raiseGcDeletes(plan: IndexPlan, info: IndexInfo): Promise<void> {
    const { http, logger } = this.#options;
    const wanted = this.#options.gcDeletesSeconds;
    if (gcDeletesSeconds(info.gcDeletes) >= wanted) return;
    await http.request({
      method: 'PUT',
      path: `/${encodeURIComponent(plan.index)}/_settings`,
      body: JSON.stringify({ 'index.gc_deletes': `${wanted}s` }),
    });
    logger.info({ index: plan.index, was: info.gcDeletes ?? '60s', now: `${wanted}s` }, 'raised index.gc_deletes');
  }

  #warnDiffers(plan: IndexPlan, field: string, existing: FieldMapping, wanted: FieldMapping): void {
    this.#options.logger.warn(
      { code: 'ES_FIELD_DIFFERS', index: plan.index, table: formatTableRef(plan.table), field, existing, wanted },
      'a field has another type than its column would get: documents that do not fit will be refused',
    );
  }
}

function withoutUnsignedLong(properties: Readonly<Record<string, FieldMapping>>): Record<string, FieldMapping> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, mapping]) => [
      name,
      mapping === UNSIGNED_LONG ? { type: 'keyword' } : mapping,
    ]),
  );
}

function ownerOf(plan: IndexPlan): IndexOwner {
  return { database: plan.table.database, table: plan.table.table, id: plan.id };
}

function isSameTable(a: IndexOwner, b: IndexOwner): boolean {
  return a.database === b.database && a.table === b.table;
}

/** Ids of two tables cannot meet when both are made by one template that names what the tables differ in. */
function checkOwners(plan: IndexPlan, owners: readonly IndexOwner[]): void {
  for (const other of owners) {
    const sameDatabase = other.database === plan.table.database;
    const sameTable = other.table === plan.table.table;
    if (sameDatabase && sameTable) continue;
    const parts = parseTemplate(plan.id).map((part) => part.kind);
    const apart =
      other.id === plan.id && (sameDatabase || parts.includes('database')) && (sameTable || parts.includes('table'));
    if (apart) continue;
    throw elasticsearchErrors.ES_INDEX_COLLISION({
      message: `tables ${formatTableRef(other)} and ${formatTableRef(plan.table)} both go to index '${plan.index}', where their rows could have the same id`,
      where: { index: plan.index, table: formatTableRef(plan.table), other: formatTableRef(other) },
    });
  }
}

function checkFieldCount(plan: IndexPlan, count: number, limit: number): void {
  if (count <= limit) return;
  throw elasticsearchErrors.ES_TOO_MANY_FIELDS({
    message: `index '${plan.index}' would have ${count} fields; its limit is ${limit}`,
    where: { index: plan.index, table: formatTableRef(plan.table), fields: count, limit },
  });
}

function mappingRefused(plan: IndexPlan, answer: EsAnswer): Error {
  const { type, reason } = errorBody(answer.body);
  return elasticsearchErrors.ES_MAPPING_REFUSED({
    message: `Elasticsearch refused the mapping of index '${plan.index}' (${type})`,
    where: { index: plan.index, table: formatTableRef(plan.table) },
    cause: new Error(reason),
  });
}
