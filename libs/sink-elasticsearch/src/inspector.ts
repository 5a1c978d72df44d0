import { changeVersion, type TableRef, type TableSchema } from '@mysync/core';
import type {
  InspectedRow,
  PutChange,
  Refusal,
  RowVerdict,
  SinkInspector,
  StoredRecord,
  StreamRef,
} from '@mysync/sink';
import { type BulkItem, type BulkProgress, sendBulk } from './bulk.ts';
import { deleteLine, term } from './clear.ts';
import { elasticsearchErrors } from './errors.ts';
import type { EsHttp } from './http.ts';
import { parseIndexInfo } from './index-info.ts';
import { arrayElements, objectMembers } from './json-slices.ts';
import { idOf } from './markers.ts';
import type { TablePlan } from './plan.ts';
import { scrollRecords } from './scroll.ts';

export interface EsInspectorOptions {
  readonly http: EsHttp;
  readonly metaField: string;
  readonly maxChars: number;
  plan(schema: TableSchema): TablePlan;
  /** Index of a table; undefined when no rule maps it. */
  indexOf(table: TableRef): string | undefined;
}

/** Documents that one request asks for. */
const PAGE = 500;
const FLAT = { flat_settings: 'true' };
/** Of a source's first transaction. What somebody else made counts its versions from one, unless it stands where a row of ours was. */
const FIRST_VERSION = changeVersion(1, 0);

/**
 * Looks at documents. Elasticsearch makes no checksums, so the documents themselves are read; their text is compared member by
 * member with the one that the sink writes, without reading numbers into doubles.
 *
 * A document without our fields is somebody else's, unless its version goes on from one of ours: then it was put where a row of ours stood, or in
 * place of one whose deletion Elasticsearch still remembered, and is a record.
 */
export class EsInspector implements SinkInspector {
  readonly #options: EsInspectorOptions;

  constructor(options: EsInspectorOptions) {
    this.#options = options;
  }

  targetOf(row: InspectedRow): string {
    const id = this.#options.plan(row.schema).id(asPut(row, 0n));
    if (typeof id !== 'string') throw id;
    return id;
  }

  async compare(rows: readonly InspectedRow[], signal: AbortSignal): Promise<readonly RowVerdict[]> {
    const verdicts: RowVerdict[] = [];
    for (let from = 0; from < rows.length; from += PAGE) {
      const page = rows.slice(from, from + PAGE);
      const wanted = page.map((row) => ({ index: this.#options.plan(row.schema).index, id: this.targetOf(row) }));
      const documents = await this.#get(wanted, signal);
      for (const [at, row] of page.entries()) verdicts.push(this.#compareRow(row, documents[at] ?? null));
    }
    return verdicts;
  }

  async *records(
    table: TableRef,
    streams: readonly StreamRef[],
    signal: AbortSignal,
  ): AsyncGenerator<readonly StoredRecord[]> {
    const { http, metaField } = this.#options;
    const index = this.#options.indexOf(table);
    if (index === undefined) return;
    const filters = [
      `{"terms":{${JSON.stringify(`${metaField}.stream`)}:${JSON.stringify(streams.map(idOf))}}}`,
      term(`${metaField}.database`, table.database),
      term(`${metaField}.table`, table.table),
    ];
    yield* scrollRecords({ http, index, table, filters, signal });
    const info = await http.request({
      method: 'GET',
      path: `/${encodeURIComponent(index)}`,
      query: FLAT,
      accept: [404],
      signal,
    });
    // whose row it would be cannot be told where tables share the index
    if (info.status === 404 || parseIndexInfo(info.body).owners.length > 1) return;
    const strange = [`{"bool":{"must_not":{"exists":{"field":${JSON.stringify(`${metaField}.stream`)}}}}}`];
    for await (const page of scrollRecords({ http, index, table, filters: strange, signal })) {
      yield page.filter(({ version }) => version > FIRST_VERSION);
    }
  }

  async find(
    table: TableRef,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (StoredRecord | null)[]> {
    const index = this.#options.indexOf(table);
    if (index === undefined) return targets.map(() => null);
    const documents = await this.#get(
      targets.map((id) => ({ index, id })),
      signal,
    );
    return documents.map((document, at) =>
      document === null ? null : { target: targets[at] as string, version: document.version },
    );
  }

  async rewrite(
    stream: StreamRef,
    rows: readonly InspectedRow[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]> {
    const streamText = JSON.stringify(idOf(stream));
    const refusals: Refusal[] = [];
    const items = rows.flatMap((row, index): BulkItem[] => {
      const text = this.#options.plan(row.schema).putLines(asPut(row, version), streamText, undefined, 'external_gte');
      if (typeof text === 'string') return [{ index, text }];
      refusals.push({ index, error: text });
      return [];
    });
    return [...refusals, ...(await this.#send(items, signal))];
  }

  async remove(
    table: TableRef,
    targets: readonly string[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]> {
    const index = this.#options.indexOf(table);
    if (index === undefined) return [];
    return await this.#send(
      targets.map((id, at) => ({ index: at, text: deleteLine(index, id, version, 'external_gte') })),
      signal,
    );
  }

  async #send(pending: readonly BulkItem[], signal: AbortSignal): Promise<readonly Refusal[]> {
    const { http, maxChars } = this.#options;
    const progress: BulkProgress = { pending, stale: 0, refusals: [] };
    await sendBulk(progress, { http, maxChars, refresh: false, describe: () => ({}), signal });
    return progress.refusals;
  }

  #compareRow(row: InspectedRow, document: StoredDocument | null): RowVerdict {
    if (document === null) return { state: 'missing', version: null, fields: [] };
    const { metaField, plan } = this.#options;
    const { version, members } = document;
    const lines = plan(row.schema).putLines(asPut(row, version), '""');
    // What cannot be stored should not be there.
    if (typeof lines !== 'string') return { state: 'different', version, fields: [lines.message] };
    const expected = objectMembers(lines.slice(lines.indexOf('\n') + 1));
    const names = new Set([...expected.keys(), ...members.keys()]);
    names.delete(metaField);
    const fields = [...names]
      .filter((name) => expected.get(name) !== members.get(name))
      .map((name) => (expected.has(name) ? name : `${name} (should not be there)`));
    if (!isMeta(members.get(metaField), expected.get(metaField) ?? '{}')) fields.push(metaField);
    return { state: fields.length === 0 ? 'equal' : 'different', version, fields };
  }

  /** In order; null where there is no document. */
  async #get(
    wanted: readonly { readonly index: string; readonly id: string }[],
    signal: AbortSignal,
  ): Promise<readonly (StoredDocument | null)[]> {
    if (wanted.length === 0) return [];
    const docs = wanted.map(({ index, id }) => `{"_index":${JSON.stringify(index)},"_id":${JSON.stringify(id)}}`);
    const body = `{"docs":[${docs.join(',')}]}`;
    const text = await this.#options.http.requestText({ method: 'POST', path: '/_mget', body, signal });
    return arrayElements(objectMembers(text).get('docs') ?? '[]').map((doc, at) => {
      const members = objectMembers(doc);
      if (members.has('error')) {
        throw elasticsearchErrors.ES_REQUEST_REFUSED({
          message: 'a stored document could not be read',
          where: { index: wanted[at]?.index ?? '', id: wanted[at]?.id ?? '' },
          cause: new Error(members.get('error')),
        });
      }
      const source = members.get('_source');
      if (source === undefined) return null;
      return { version: BigInt(members.get('_version') ?? '0'), members: objectMembers(source) };
    });
  }
}

/** By these members a table's documents are found; which partition and version they name is not compared. */
function isMeta(found: string | undefined, expected: string): boolean {
  if (found === undefined || !found.startsWith('{')) return false;
  const [members, wanted] = [objectMembers(found), objectMembers(expected)];
  const same = ['database', 'table'].every((name) => members.get(name) === wanted.get(name));
  return same && members.has('stream') && members.has('version');
}

interface StoredDocument {
  readonly version: bigint;
  readonly members: ReadonlyMap<string, string>;
}

function asPut({ schema, key, row }: InspectedRow, version: bigint): PutChange {
  return { kind: 'put', schema, key, row, version, offset: -1 };
}
