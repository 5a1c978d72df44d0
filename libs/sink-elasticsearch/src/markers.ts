import type { Clock } from '@mysync/core';
import { type MarkerMove, type StreamRef, sinkErrors } from '@mysync/sink';
import { elasticsearchErrors } from './errors.ts';
import { errorBody, responseError } from './failures.ts';
import type { EsAnswer, EsHttp } from './http.ts';
import { documentId } from './names.ts';

export interface MarkerStoreOptions {
  readonly http: EsHttp;
  readonly index: string;
  /** Name of the sink. */
  readonly sink: string;
  readonly clock: Clock;
  /** How long a confirmed marker is taken for ours without asking again. */
  readonly trustMs: number;
  /** The marker's shard has another primary. */
  readonly onFailover: () => void;
}

interface Known {
  readonly text: string | null;
  readonly seqNo: number;
  readonly primaryTerm: number;
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * The applied markers: one document per stream, moved by compare-and-set.
 *
 * 1. A marker moves only from the text that the caller expects: the document's sequence number and primary term of the
 *    moment that text was read or written are the condition of the write.
 * 2. A write whose answer never came is met by reading: if the new text stands there, it was ours.
 * 3. `owns` costs nothing while the marker moves; after a pause (a frozen process), and after a lost connection, it reads the
 *    marker again. So a writer that was replaced meanwhile sends nothing, even where the versions of deletions are forgotten.
 */
export class MarkerStore {
  readonly #options: MarkerStoreOptions;
  readonly #known = new Map<string, Known>();
  #primaryTerm = 0;
  #made = false;

  constructor(options: MarkerStoreOptions) {
    this.#options = options;
  }

  async read(stream: StreamRef, signal?: AbortSignal): Promise<string | null> {
    const { http } = this.#options;
    const answer = await http.request({
      method: 'GET',
      path: this.#path(stream),
      accept: [404],
      ...(signal === undefined ? {} : { signal }),
    });
    const known = this.#parse(answer, stream);
    this.#known.set(idOf(stream), known);
    return known.text;
  }

  /**
   * Whether the marker is still the expected one, as far as that can be known beforehand. `done`: the next one stands there
   * already, since the answer to an earlier move was lost.
   */
  async owns(stream: StreamRef, marker: MarkerMove, signal: AbortSignal): Promise<'ours' | 'done' | 'moved'> {
    const known = this.#known.get(idOf(stream));
    if (known !== undefined && known.text === marker.expected && this.#isFresh(known)) return 'ours';
    const text = await this.read(stream, signal);
    if (text === marker.expected) return 'ours';
    return text === marker.next ? 'done' : 'moved';
  }

  /** Nothing of what is known is trusted any more. */
  doubt(): void {
    this.#known.clear();
  }

  /** False when another writer was here. */
  async move(stream: StreamRef, marker: MarkerMove, signal: AbortSignal): Promise<boolean> {
    const { http, sink, clock } = this.#options;
    let known = this.#known.get(idOf(stream));
    if (known === undefined || known.text !== marker.expected) {
      if ((await this.read(stream, signal)) !== marker.expected) return this.#wasOurs(stream, marker);
      known = this.#known.get(idOf(stream));
    }
    if (known === undefined) return false;
    if (marker.expected === null) await this.#make(signal);
    const condition =
      marker.expected === null
        ? { op_type: 'create' }
        : { if_seq_no: String(known.seqNo), if_primary_term: String(known.primaryTerm) };
    const body = `{"kind":"marker","sink":${JSON.stringify(sink)},"topic":${JSON.stringify(stream.topic)},"partition":${stream.partition},"movedAt":${JSON.stringify(new Date(clock.now()).toISOString())},"marker":${JSON.stringify(marker.next)}}`;
    let answer: EsAnswer;
    try {
      answer = await http.request({
        method: 'PUT',
        path: this.#path(stream),
        query: condition,
        body,
        accept: [409],
        signal,
      });
    } catch (error) {
      this.#known.delete(idOf(stream));
      throw error;
    }
    if (answer.status === 409) {
      await this.read(stream, signal);
      return this.#wasOurs(stream, marker);
    }
    const written = answer.body as { readonly _seq_no: number; readonly _primary_term: number };
    this.#remember(stream, { text: marker.next, seqNo: written._seq_no, primaryTerm: written._primary_term });
    if (this.#primaryTerm !== 0 && written._primary_term > this.#primaryTerm) this.#options.onFailover();
    this.#primaryTerm = Math.max(this.#primaryTerm, written._primary_term);
    return true;
  }

  #wasOurs(stream: StreamRef, marker: MarkerMove): boolean {
    return this.#known.get(idOf(stream))?.text === marker.next;
  }

  #isFresh(known: Known): boolean {
    const { http, clock, trustMs } = this.#options;
    // Monotonic clocks may stand still while a machine is suspended, wall clocks may be set back: the longer one counts.
    const age = Math.max(clock.monotonic() - known.monotonic, clock.now() - known.wall);
    return !http.lost && age < trustMs;
  }

  #remember(stream: StreamRef, known: Pick<Known, 'text' | 'seqNo' | 'primaryTerm'>): void {
    const { clock } = this.#options;
    this.#known.set(idOf(stream), { ...known, monotonic: clock.monotonic(), wall: clock.now() });
  }

  #parse(answer: EsAnswer, stream: StreamRef): Known {
    const { clock } = this.#options;
    const times = { monotonic: clock.monotonic(), wall: clock.now() };
    if (answer.status === 404) {
      const { type } = errorBody(answer.body);
      if (type === '' || type === 'index_not_found_exception')
        return { text: null, seqNo: 0, primaryTerm: 0, ...times };
    }
    const body = answer.body as {
      _seq_no?: unknown;
      _primary_term?: unknown;
      _source?: Record<string, unknown>;
    } | null;
    const marker = body?._source?.['marker'];
    if (typeof marker !== 'string' || typeof body?._seq_no !== 'number' || typeof body._primary_term !== 'number') {
      throw sinkErrors.SINK_MARKER_INVALID({
        message: 'what stands in place of the applied marker is none',
        where: { index: this.#options.index, topic: stream.topic, partition: stream.partition },
      });
    }
    return { text: marker, seqNo: body._seq_no, primaryTerm: body._primary_term, ...times };
  }

  /** Makes the markers' index where it is missing. */
  async #make(signal: AbortSignal): Promise<void> {
    if (this.#made) return;
    await makeMarkerIndex(this.#options.http, this.#options.index, signal);
    this.#made = true;
  }

  #path(stream: StreamRef): string {
    const id = documentId(`${this.#options.sink}/${idOf(stream)}`, 'hash') ?? '';
    return `/${encodeURIComponent(this.#options.index)}/_doc/${encodeURIComponent(id)}`;
  }
}

const MARKER_INDEX_BODY = JSON.stringify({
  settings: { 'index.number_of_shards': 1, 'index.auto_expand_replicas': '0-1' },
  mappings: {
    dynamic: false,
    properties: {
      kind: { type: 'keyword' },
      sink: { type: 'keyword' },
      topic: { type: 'keyword' },
      partition: { type: 'integer' },
      movedAt: { type: 'date' },
      index: { type: 'keyword' },
    },
  },
});

/** Makes the index of the markers; harmless when it is there. */
export async function makeMarkerIndex(http: EsHttp, index: string, signal?: AbortSignal): Promise<void> {
  const answer = await http.request({
    method: 'PUT',
    path: `/${encodeURIComponent(index)}`,
    body: MARKER_INDEX_BODY,
    accept: [400],
    ...(signal === undefined ? {} : { signal }),
  });
  if (answer.status < 400) return;
  if (errorBody(answer.body).type === 'resource_already_exists_exception') return;
  if (errorBody(answer.body).type === 'invalid_index_name_exception') {
    const message = `Elasticsearch takes no index of the name '${index}': ${errorBody(answer.body).reason}`;
    throw elasticsearchErrors.ES_OPTION_INVALID({ message, where: { key: 'markerIndex', index } });
  }
  throw responseError(answer.status, answer.body, `PUT /${index}`);
}

/** Names a stream in marker ids and in documents. Topic names hold no slash. */
export function idOf(stream: StreamRef): string {
  return `${stream.topic}/${stream.partition}`;
}
