/** The sink port's contracts, on a real Elasticsearch. */
import type { Column, ColumnValue, TableRef, TableSchema } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { type SinkBench, type StoredDocument, sinkConformance } from '@mysync/sink/conformance';
import { EsBench } from './bench.fixture.ts';
import { TestProxy } from './proxy.fixture.ts';

class ElasticsearchBench implements SinkBench {
  readonly #bench: EsBench;
  readonly #proxy: TestProxy;
  readonly #spoiled = new Set<number>();

  constructor(bench: EsBench, proxy: TestProxy) {
    this.#bench = bench;
    this.#proxy = proxy;
  }

  async createSink(): Promise<Sink> {
    return this.#bench.sink({ match: 'conf_*.*' }, { nodes: [this.#proxy.url] });
  }

  async createUnreachableSink(): Promise<Sink> {
    return this.#bench.sink({}, { nodes: ['http://127.0.0.1:1'] });
  }

  async readAll(table: TableRef): Promise<readonly StoredDocument[]> {
    const documents = await this.#bench.documents(`${this.#bench.prefix}-${table.database}-${table.table}`);
    return [...documents.values()].map((document) =>
      Object.fromEntries(
        Object.entries(document).map(([name, text]) => [name, text.startsWith('"') ? JSON.parse(text) : { text }]),
      ),
    );
  }

  /** Strings as they are, the rest as the text in the document, so that no digit is lost on the way. */
  show(value: Exclude<ColumnValue, undefined>, column: Column): unknown {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    if (typeof value === 'string') return value;
    const text = column.kind === 'double' && typeof value === 'number' ? JSON.stringify(value) : String(value);
    return { text };
  }

  /** The document gets text into its field of numbers on the way: Elasticsearch itself refuses it. */
  async spoil(schema: TableSchema, id: number): Promise<void> {
    const index = `${this.#bench.prefix}-${schema.database}-${schema.table}`;
    this.#spoiled.add(id);
    this.#proxy.onRequest = ({ path, body }) => {
      if (!path.startsWith('/_bulk') || !body.includes(`"_index":"${index}"`)) return body;
      let text = body;
      for (const each of this.#spoiled) text = text.replace(`"id":${each},`, '"id":"no number",');
      return text;
    };
  }

  async mend(): Promise<void> {
    this.#spoiled.clear();
  }

  async close(): Promise<void> {
    await this.#bench.close();
    await this.#proxy.close();
  }
}

sinkConformance({
  name: 'elasticsearch',
  open: async () => {
    const bench = await EsBench.open();
    return new ElasticsearchBench(bench, await TestProxy.start(bench.url));
  },
});
