import { formatTableRef, type Logger, type TableRef } from '@mysync/core';
import { elasticsearchErrors } from './errors.ts';
import type { EsAnswer, EsHttp } from './http.ts';
import { type IndexInfo, identityOf } from './index-info.ts';
import { makeMarkerIndex } from './markers.ts';
import { documentId } from './names.ts';

export interface IndexRegistryOptions {
  readonly http: EsHttp;
  readonly markerIndex: string;
  readonly sink: string;
  readonly logger: Logger;
}

/** What stands beside the markers about an index. */
interface Entry {
  readonly index: string;
  /** Identity of the index, and of the markers' index at the same time. */
  readonly uuid: string;
  readonly markers: string;
}

/** Where the server keeps an entry, for its compare-and-set. */
interface Place {
  readonly seqNo: number;
  readonly primaryTerm: number;
}

const MOST_ENTRIES = 10_000;
/** Elasticsearch takes first lines of 4 KiB. */
const MOST_PATH_CHARS = 3_000;

/**
 * Which indices the markers are about, noted beside them.
 *
 * 1. An index that is gone, or is another one, or was put back to an older state, while the markers say that changes are in it, is
 *    `ES_INDEX_LOST`: nothing would ever fill it again.
 * 2. Where the markers were put back as well, they say what the index lacks: its new identity is noted, and the writer goes back by a span,
 *    since a snapshot takes its shards one after the other.
 * 3. Identities are those of `identityOf`: they change when an index is made anew or restored, and never else.
 */
export class IndexRegistry {
  readonly #options: IndexRegistryOptions;

  constructor(options: IndexRegistryOptions) {
    this.#options = options;
  }

  /** Identity of the index of the markers, which is made where it is missing. */
  async markersIdentity(): Promise<string> {
    const { http, markerIndex } = this.#options;
    const found = (await this.#identities([markerIndex])).get(markerIndex);
    if (found !== undefined) return found;
    await makeMarkerIndex(http, markerIndex);
    return (await this.#identities([markerIndex])).get(markerIndex) ?? '';
  }

  /** Whether it is noted as it is; null: it is not there. Throws `ES_INDEX_LOST` when another one is noted. */
  async isNoted(index: string, table: TableRef, info: IndexInfo | null): Promise<boolean> {
    // behind an alias the index may change: nothing is noted
    if (info !== null && info.name !== index) return true;
    const { entry } = await this.#read(index);
    if (entry === null) return false;
    const where = { table: formatTableRef(table) };
    if (info === null)
      throw this.#lost(index, `index '${index}' is gone, but the markers say that changes are in it`, where);
    const markers = await this.markersIdentity();
    this.#compare(entry, info.identity, markers, where);
    return entry.uuid === info.identity && entry.markers === markers;
  }

  /** Notes it as it is now. */
  async note(index: string, table: TableRef, info: IndexInfo): Promise<void> {
    for (;;) {
      const markers = await this.markersIdentity();
      const { entry, place } = await this.#read(index);
      const where = { table: formatTableRef(table) };
      if (entry !== null) this.#compare(entry, info.identity, markers, where);
      if (!(await this.#write({ index, uuid: info.identity, markers }, place))) continue;
      if (entry === null || entry.uuid === info.identity) return;
      const text = 'an index was restored together with the markers, which say what it lacks';
      return this.#options.logger.warn({ index, ...where }, text);
    }
  }

  /** Looks at every index that is noted and there. Throws `ES_INDEX_LOST` for one that was put back without its markers. */
  async check(): Promise<void> {
    const { entries, identities, markers } = await this.#all();
    for (const entry of entries) {
      const identity = identities.get(entry.index);
      if (identity !== undefined) this.#compare(entry, identity, markers, {});
    }
  }

  /** Identities of the markers' index and of all that are noted, as far as they are there. */
  async identities(): Promise<ReadonlyMap<string, string>> {
    const { identities, markers } = await this.#all();
    return new Map([...identities, [this.#options.markerIndex, markers]]);
  }

  /** Throws when the index is another one than the entry says, and the markers are not. */
  #compare(entry: Entry, identity: string, markers: string, where: Readonly<Record<string, string>>): void {
    const { index, uuid } = entry;
    if (identity === uuid || markers !== entry.markers) return;
    const message = `index '${index}' is not what the markers are about: it was made anew or restored without them (${identity}, was ${uuid})`;
    throw this.#lost(index, message, where);
  }

  #lost(index: string, message: string, where: Readonly<Record<string, string>>): Error {
    const { markerIndex, sink } = this.#options;
    const rebuild = elasticsearchErrors.entries.ES_INDEX_LOST.remedy;
    return elasticsearchErrors.ES_INDEX_LOST({
      message,
      where: { index, ...where, sink, markerIndex },
      remedy: `${rebuild} If nothing of it is missed (its table was dropped), or what it holds is to stay: DELETE ${this.#path(index)}, restart the writers, and let 'mysync verify --sink ${sink} --repair' bring what is missing.`,
    });
  }

  async #all(): Promise<{ entries: readonly Entry[]; identities: ReadonlyMap<string, string>; markers: string }> {
    const { http, markerIndex, sink } = this.#options;
    const markers = await this.markersIdentity();
    await http.request({ method: 'POST', path: `/${encodeURIComponent(markerIndex)}/_refresh` });
    const filter = [{ term: { kind: 'index' } }, { term: { sink } }];
    const { body } = await http.request({
      method: 'POST',
      path: `/${encodeURIComponent(markerIndex)}/_search`,
      query: { allow_partial_search_results: 'false' },
      body: JSON.stringify({ size: MOST_ENTRIES, query: { bool: { filter } } }),
    });
    const { hits } = (body as { hits: { hits: readonly { _source: Entry }[] } }).hits;
    const entries = hits.map(({ _source }) => _source);
    return { entries, identities: await this.#identities(entries.map(({ index }) => index)), markers };
  }

  /** By name, of those that are there. */
  async #identities(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const list of lists(names)) {
      const { body } = await this.#options.http.request({
        method: 'GET',
        path: `/${list}/_settings/index.uuid,index.history.uuid`,
        query: { flat_settings: 'true', ignore_unavailable: 'true' },
        accept: [404],
      });
      for (const [name, raw] of Object.entries(body as Record<string, { settings?: Record<string, unknown> }>)) {
        if (raw.settings !== undefined) found.set(name, identityOf(raw.settings));
      }
    }
    return found;
  }

  async #read(index: string): Promise<{ entry: Entry | null; place: Place | null }> {
    const { http } = this.#options;
    const answer = await http.request({ method: 'GET', path: this.#path(index), accept: [404] });
    if (answer.status === 404) return { entry: null, place: null };
    const { _source, _seq_no, _primary_term } = answer.body as {
      readonly _source: Entry;
      readonly _seq_no: number;
      readonly _primary_term: number;
    };
    return { entry: _source, place: { seqNo: _seq_no, primaryTerm: _primary_term } };
  }

  /** False when another writer was faster. */
  async #write(entry: Entry, place: Place | null): Promise<boolean> {
    const { http, sink } = this.#options;
    const answer: EsAnswer = await http.request({
      method: 'PUT',
      path: this.#path(entry.index),
      query:
        place === null
          ? { op_type: 'create' }
          : { if_seq_no: String(place.seqNo), if_primary_term: String(place.primaryTerm) },
      body: JSON.stringify({ kind: 'index', sink, ...entry }),
      accept: [409],
    });
    return answer.status !== 409;
  }

  #path(index: string): string {
    const id = documentId(`${this.#options.sink}/index/${index}`, 'hash') ?? '';
    return `/${encodeURIComponent(this.#options.markerIndex)}/_doc/${encodeURIComponent(id)}`;
  }
}

/** Names as the path of a request takes them, as many at once as fit. */
function* lists(names: readonly string[]): Generator<string> {
  let list = '';
  for (const name of names) {
    const text = encodeURIComponent(name);
    if (list !== '' && list.length + text.length > MOST_PATH_CHARS) {
      yield list;
      list = '';
    }
    list += list === '' ? text : `,${text}`;
  }
  if (list !== '') yield list;
}
