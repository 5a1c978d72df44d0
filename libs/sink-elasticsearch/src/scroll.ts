/** All documents of a search, page by page, as the server printed them (versions have more digits than a double). */
import type { TableRef } from '@mysync/core';
import type { StoredRecord } from '@mysync/sink';
import { checkShards } from './clear.ts';
import type { EsHttp } from './http.ts';
import { arrayElements, objectMembers } from './json-slices.ts';

export interface ScrollOptions {
  readonly http: EsHttp;
  readonly index: string;
  /** For error texts. */
  readonly table: TableRef;
  /** Filters of the query, as JSON. */
  readonly filters: readonly string[];
  readonly signal: AbortSignal;
}

const PAGE = 2000;
/** How long the server keeps the search between two pages. */
const KEEP = '5m';

/** Refreshes first, so that everything written before is found. */
export async function* scrollRecords(options: ScrollOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { http, index, filters, signal } = options;
  const path = `/${encodeURIComponent(index)}`;
  const refreshed = await http.request({ method: 'POST', path: `${path}/_refresh`, accept: [404], signal });
  // Never prepared, so there is nothing in it.
  if (refreshed.status === 404) return;
  checkShards(refreshed.body, options);
  let text = await http.requestText({
    method: 'POST',
    path: `${path}/_search`,
    query: { scroll: KEEP, allow_partial_search_results: 'false' },
    body: `{"size":${PAGE},"_source":false,"version":true,"sort":["_doc"],"query":{"bool":{"filter":[${filters.join(',')}]}}}`,
    signal,
  });
  let scrollId = '';
  try {
    for (;;) {
      const answer = objectMembers(text);
      checkShards({ _shards: JSON.parse(answer.get('_shards') ?? '{}') }, options);
      scrollId = answer.get('_scroll_id') ?? '""';
      const hits = arrayElements(objectMembers(answer.get('hits') ?? '{}').get('hits') ?? '[]').map(readRecord);
      if (hits.length === 0) return;
      yield hits;
      const body = `{"scroll":"${KEEP}","scroll_id":${scrollId}}`;
      text = await http.requestText({ method: 'POST', path: '/_search/scroll', body, signal });
    }
  } finally {
    if (scrollId !== '') {
      const body = `{"scroll_id":${scrollId}}`;
      // The server forgets it by itself after a while.
      await http.request({ method: 'DELETE', path: '/_search/scroll', body, accept: [404] }).catch(() => undefined);
    }
  }
}

function readRecord(hit: string): StoredRecord {
  const members = objectMembers(hit);
  return { target: String(JSON.parse(members.get('_id') ?? '""')), version: BigInt(members.get('_version') ?? '0') };
}
