import {
  coreErrors,
  type Finding,
  formatTableRef,
  isMysyncError,
  silentLogger,
  systemClock,
  type TableRef,
  type TableSchema,
} from '@mysync/core';
import { compileRules } from '@mysync/mapping';
import type {
  ApplyBatch,
  ApplyOutcome,
  ClearChange,
  DeleteChange,
  PutChange,
  Refusal,
  Sink,
  SinkChange,
  StreamRef,
} from '@mysync/sink';
import { type BulkItem, type BulkProgress, sendBulk } from './bulk.ts';
import { checkCluster } from './check.ts';
import { clearTable } from './clear.ts';
import { elasticsearchErrors } from './errors.ts';
import { EsHttp } from './http.ts';
import { IndexRegistry } from './index-registry.ts';
import { IndexKeeper } from './indexes.ts';
import { EsInspector } from './inspector.ts';
import { arrayElements, objectMembers } from './json-slices.ts';
import { idOf, MarkerStore } from './markers.ts';
import type { ElasticsearchRule, ElasticsearchSinkOptions } from './options.ts';
import { ruleIndex, TablePlan } from './plan.ts';
import { RestoreWatch } from './restore-watch.ts';

interface BatchState extends BulkProgress {
  /** The doubts known when it began: after another one, everything is sent again. */
  readonly doubts: number;
  readonly refresh: boolean;
}

const DEFAULTS = {
  maxBulkChars: 8 * 1024 * 1024,
  gcDeletesSeconds: 3600,
  ownershipCheckMs: 5000,
  restoreCheckMs: 30_000,
};

/**
 * A sink of documents, one per row.
 *
 * 1. Every write has its change's version as external version: an older one never takes effect while a newer one, or a
 *    deletion, is remembered. Documents remember for ever, deletions for `index.gc_deletes` and until the shard is
 *    opened anew (tried: an orderly restart forgets them). What remains is met by 3.
 * 2. The marker moves after all writes of the batch were confirmed, by compare-and-set.
 * 3. A batch is sent only while the marker is known to be the expected one: it was confirmed a short while ago on a connection that
 *    has not failed since, or it is read again. So a writer that was frozen or cut off and replaced sends nothing old.
 * 4. An index that was put back to an older state without its markers halts every writer; where both were, the writers go back by a span, also
 *    those that have nothing to write just then.
 * 5. Items that failed for now are kept per batch object: the next call with the same batch sends only those.
 */
export class ElasticsearchSink implements Sink {
  readonly kind = 'elasticsearch';
  readonly #options: ElasticsearchSinkOptions;
  readonly #metaField: string;
  readonly #maxChars: number;
  readonly #http: EsHttp;
  readonly #markers: MarkerStore;
  readonly #registry: IndexRegistry;
  readonly #indexes: IndexKeeper;
  readonly #watch: RestoreWatch;
  readonly #ruleOf: (table: TableRef) => ElasticsearchRule | undefined;
  readonly inspector: EsInspector;
  readonly #plans = new Map<string, TablePlan>();
  /** Schemas whose index was found fit since the last one that was restored. */
  readonly #fit = new Set<string>();
  /** That no index was put back without its markers, since the last doubt. */
  #checked: Promise<void> | null = null;
  readonly #states = new WeakMap<ApplyBatch, BatchState>();
  #onDoubt: (reason: string) => void = () => undefined;
  #doubts = 0;

  /** Throws `ES_OPTION_INVALID` and the errors of patterns; connects to nothing yet. */
  constructor(options: ElasticsearchSinkOptions) {
    this.#options = options;
    this.#metaField = options.metaField ?? '_mysync';
    this.#maxChars = options.maxBulkBytes ?? DEFAULTS.maxBulkChars;
    this.#ruleOf = compileRules(options.rules);
    this.#http = new EsHttp(options, () => this.#doubt('the connection to Elasticsearch was lost and is back'));
    const markerIndex = options.markerIndex ?? 'mysync-markers';
    this.#markers = new MarkerStore({
      http: this.#http,
      index: markerIndex,
      sink: options.name,
      clock: options.clock ?? systemClock,
      trustMs: options.ownershipCheckMs ?? DEFAULTS.ownershipCheckMs,
      onFailover: () => this.#doubt('the shard of the applied markers has another primary'),
    });
    const logger = options.logger ?? silentLogger;
    this.#registry = new IndexRegistry({ http: this.#http, markerIndex, sink: options.name, logger });
    this.#indexes = new IndexKeeper({
      http: this.#http,
      registry: this.#registry,
      sink: options.name,
      templates: options.templates ?? true,
      gcDeletesSeconds: options.gcDeletesSeconds ?? DEFAULTS.gcDeletesSeconds,
      logger,
    });
    this.#watch = new RestoreWatch({
      identities: () => this.#registry.identities(),
      everyMs: options.restoreCheckMs ?? DEFAULTS.restoreCheckMs,
      onRestored: (names) => {
        this.#fit.clear();
        this.#doubt(`another index, or one that was restored, stands in place of ${names.join(', ')}`);
      },
    });
    this.inspector = new EsInspector({
      http: this.#http,
      metaField: this.#metaField,
      maxChars: this.#maxChars,
      plan: (schema) => this.#plan(schema),
      indexOf: (table) => {
        const rule = this.#ruleOf(table);
        return rule === undefined ? undefined : ruleIndex(rule, table);
      },
    });
  }

  async check(): Promise<readonly Finding[]> {
    return await checkCluster(this.#http, {
      node: this.#options.nodes.join(', '),
      gcDeletesSeconds: this.#options.gcDeletesSeconds ?? DEFAULTS.gcDeletesSeconds,
    });
  }

  accepts(table: TableRef): boolean {
    return this.#ruleOf(table) !== undefined;
  }

  async prepare(schema: TableSchema): Promise<void> {
    const { fingerprint } = schema;
    if (this.#fit.has(fingerprint)) return;
    const rule = this.#ruleOf(schema);
    if (rule === undefined) return;
    const plan = this.#plans.get(fingerprint) ?? new TablePlan(rule, schema, this.#metaField);
    await this.#indexes.ensure(plan.indexPlan);
    this.#plans.set(fingerprint, plan);
    this.#fit.add(fingerprint);
  }

  async readMarker(stream: StreamRef): Promise<string | null> {
    return await this.#markers.read(stream);
  }

  /** The index of the markers: another one after a restore. Throws `ES_INDEX_LOST` for an index that was restored without them. */
  async holders(): Promise<string> {
    this.#checked ??= this.#registry.check();
    const checked = this.#checked;
    try {
      await checked;
    } catch (error) {
      if (this.#checked === checked) this.#checked = null;
      throw error;
    }
    return await this.#registry.markersIdentity();
  }

  async apply(batch: ApplyBatch, signal: AbortSignal): Promise<ApplyOutcome> {
    const { stream, changes, marker } = batch;
    signal.throwIfAborted();
    if (changes.length > 0) {
      const owns = await this.#markers.owns(stream, marker, signal);
      if (owns === 'moved') return { status: 'marker-moved' };
      // The answer to the move was lost: all of the batch is there.
      if (owns === 'done') return { status: 'applied', stale: 0 };
    }
    const [first] = changes;
    let stale = 0;
    if (first?.kind === 'clear') {
      await this.#clear(first, stream, signal);
    } else if (first !== undefined) {
      const state = await this.#send(batch, signal);
      if (state.refusals.length > 0) return { status: 'refused', refusals: state.refusals };
      stale = state.stale;
    }
    return (await this.#markers.move(stream, marker, signal))
      ? { status: 'applied', stale }
      : { status: 'marker-moved' };
  }

  onDoubt(callback: (reason: string) => void): void {
    this.#onDoubt = callback;
    this.#watch.begin();
  }

  async close(): Promise<void> {
    await this.#watch.stop();
    await this.#http.close();
  }

  async #send(batch: ApplyBatch, signal: AbortSignal): Promise<BatchState> {
    let state = this.#states.get(batch);
    if (state === undefined || state.doubts !== this.#doubts) state = await this.#begin(batch, signal);
    this.#states.set(batch, state);
    const describe = (index: number): Record<string, string | number> => this.#describe(batch.changes[index]);
    try {
      await sendBulk(state, { http: this.#http, maxChars: this.#maxChars, refresh: state.refresh, describe, signal });
    } catch (error) {
      if (!isMysyncError(error) || !error.retriable) this.#states.delete(batch);
      throw error;
    }
    this.#states.delete(batch);
    return state;
  }

  async #begin(batch: ApplyBatch, signal: AbortSignal): Promise<BatchState> {
    const doubts = this.#doubts;
    const pending: BulkItem[] = [];
    const refusals: Refusal[] = [];
    let refresh = false;
    const stored = await this.#storedDocuments(batch.changes, signal);
    const stream = JSON.stringify(idOf(batch.stream));
    for (let index = 0; index < batch.changes.length; index++) {
      const change = batch.changes[index] as SinkChange;
      if (change.kind === 'clear')
        throw coreErrors.INTERNAL({ message: 'a clear stands beside other changes in a batch' });
      const plan = this.#plan(change.schema);
      refresh ||= plan.refresh;
      const text = change.kind === 'put' ? plan.putLines(change, stream, stored?.get(index)) : plan.deleteLines(change);
      if (typeof text === 'string') pending.push({ index, text });
      else refusals.push({ index, error: text });
    }
    return { pending, stale: 0, refusals, doubts, refresh };
  }

  /** Of the rows that lack columns, the members of the documents that are there: place in the batch → members. */
  async #storedDocuments(
    changes: readonly SinkChange[],
    signal: AbortSignal,
  ): Promise<Map<number, ReadonlyMap<string, string>> | undefined> {
    const wanted: { readonly index: number; readonly doc: string }[] = [];
    for (let index = 0; index < changes.length; index++) {
      const change = changes[index] as SinkChange;
      if (change.kind !== 'put' || !change.row.includes(undefined)) continue;
      const plan = this.#plan(change.schema);
      const id = plan.isPartial(change) ? plan.id(change) : undefined;
      if (typeof id !== 'string') continue;
      wanted.push({ index, doc: `{"_index":${JSON.stringify(plan.index)},"_id":${JSON.stringify(id)}}` });
    }
    if (wanted.length === 0) return undefined;
    const body = `{"docs":[${wanted.map(({ doc }) => doc).join(',')}]}`;
    const text = await this.#http.requestText({ method: 'POST', path: '/_mget', body, signal });
    const docs = arrayElements(objectMembers(text).get('docs') ?? '[]');
    const found = new Map<number, ReadonlyMap<string, string>>();
    for (let at = 0; at < wanted.length; at++) {
      const members = objectMembers(docs[at] ?? '{}');
      const source = members.get('_source');
      if (members.has('error')) {
        throw elasticsearchErrors.ES_REQUEST_REFUSED({
          message: 'a stored document could not be read',
          where: this.#describe(changes[wanted[at]?.index ?? -1]),
          cause: new Error(members.get('error')),
        });
      }
      if (source !== undefined) found.set(wanted[at]?.index ?? -1, objectMembers(source));
    }
    return found;
  }

  async #clear(change: ClearChange, stream: StreamRef, signal: AbortSignal): Promise<void> {
    const rule = this.#ruleOf(change.table);
    if (rule === undefined) return;
    await clearTable({
      http: this.#http,
      index: ruleIndex(rule, change.table),
      metaField: this.#metaField,
      stream,
      table: change.table,
      version: change.version,
      keep: change.keep ?? new Set(),
      maxChars: this.#maxChars,
      signal,
    });
  }

  #plan(schema: TableSchema): TablePlan {
    const plan = this.#plans.get(schema.fingerprint);
    if (plan !== undefined) return plan;
    throw coreErrors.INTERNAL({
      message: `a change of ${formatTableRef(schema)} came before its schema was prepared`,
      where: { table: formatTableRef(schema), fingerprint: schema.fingerprint },
    });
  }

  #describe(change: SinkChange | undefined): Record<string, string | number> {
    if (change === undefined) return {};
    const where = {
      table: formatTableRef(change.kind === 'clear' ? change.table : change.schema),
      offset: change.offset,
    };
    if (change.kind === 'clear') return where;
    const plan = this.#plans.get(change.schema.fingerprint);
    const id = plan?.id(change as PutChange | DeleteChange);
    return typeof id === 'string' && plan !== undefined ? { ...where, index: plan.index, id } : where;
  }

  #doubt(reason: string): void {
    this.#doubts++;
    this.#checked = null;
    this.#markers.doubt();
    this.#onDoubt(reason);
  }
}
