import { formatTableRef, type TableRef } from '@mysync/core';
import { type StreamRef, sinkErrors } from '@mysync/sink';
import { type BulkItem, type BulkProgress, sendBulk } from './bulk.ts';
import type { EsHttp } from './http.ts';
import { idOf } from './markers.ts';

export interface ClearOptions {
  readonly http: EsHttp;
  readonly index: string;
  readonly metaField: string;
  readonly stream: StreamRef;
  readonly table: TableRef;
  readonly version: bigint;
  /** Ids of documents that stay. */
  readonly keep: ReadonlySet<string>;
  readonly maxChars: number;
  readonly signal: AbortSignal;
}

/** Which stored versions a write replaces: older ones (`external`), or its own as well. */
export type VersionType = 'external' | 'external_gte';

interface Hit {
  readonly _index: string;
  readonly _id: string;
}

const PAGE = 5000;

/**
 * Deletes this stream's documents of a table with a lower version, each with the version of the clear, so that an older write
 * stays refused afterwards.
 *
 * A search sees what was refreshed: so it refreshes, finds a page, deletes it, and does so again until a search finds nothing.
 * Nothing is kept between the rounds, so it can be broken off at any point and begun again.
 */
export async function clearTable(options: ClearOptions): Promise<void> {
  const { http, index, metaField, stream, table, version, keep, signal } = options;
  const path = `/${encodeURIComponent(index)}`;
  const query = `{"size":${PAGE},"_source":false,"track_total_hits":false,"sort":["_doc"],"query":{"bool":{"filter":[${[
    term(`${metaField}.stream`, idOf(stream)),
    term(`${metaField}.database`, table.database),
    term(`${metaField}.table`, table.table),
    `{"range":{${JSON.stringify(`${metaField}.version`)}:{"lt":${version}}}}`,
  ].join(',')}],"must_not":{"ids":{"values":${JSON.stringify([...keep])}}}}}}`;
  for (;;) {
    const refreshed = await http.request({ method: 'POST', path: `${path}/_refresh`, accept: [404], signal });
    // Never prepared, so there is nothing in it.
    if (refreshed.status === 404) return;
    checkShards(refreshed.body, options);
    const found = await http.request({
      method: 'POST',
      path: `${path}/_search`,
      query: { allow_partial_search_results: 'false' },
      body: query,
      signal,
    });
    checkShards(found.body, options);
    const hits = (found.body as { hits: { hits: readonly Hit[] } }).hits.hits;
    if (hits.length === 0) return;
    await deleteHits(hits, options);
  }
}

async function deleteHits(hits: readonly Hit[], options: ClearOptions): Promise<void> {
  const { http, table, version, maxChars, signal } = options;
  const pending = hits.map((hit, index): BulkItem => ({ index, text: deleteLine(hit._index, hit._id, version) }));
  const progress: BulkProgress = { pending, stale: 0, refusals: [] };
  const describe = (at: number): Record<string, string> => ({
    table: formatTableRef(table),
    index: options.index,
    id: hits[at]?._id ?? '',
  });
  await sendBulk(progress, { http, maxChars, refresh: false, describe, signal });
  const [refused] = progress.refusals;
  if (refused !== undefined) throw refused.error;
}

/** The line of a bulk request that deletes a document. */
export function deleteLine(index: string, id: string, version: bigint, versionType: VersionType = 'external'): string {
  return `{"delete":{"_index":${JSON.stringify(index)},"_id":${JSON.stringify(id)},"version":${version},"version_type":"${versionType}"}}\n`;
}

/** A shard that did not answer may hold documents that were not seen. */
export function checkShards(body: unknown, options: Pick<ClearOptions, 'table' | 'index'>): void {
  const answer = body as { readonly timed_out?: boolean; readonly _shards?: { readonly failed: number } };
  if (answer.timed_out !== true && (answer._shards?.failed ?? 0) === 0) return;
  throw sinkErrors.SINK_OVERLOADED({
    message: 'some shards did not answer while a table was searched',
    where: { table: formatTableRef(options.table), index: options.index },
  });
}

/** A filter of a search. */
export function term(field: string, value: string): string {
  return `{"term":{${JSON.stringify(field)}:${JSON.stringify(value)}}}`;
}
