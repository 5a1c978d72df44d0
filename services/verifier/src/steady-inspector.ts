import type { TableRef } from '@mysync/core';
import type { InspectedRow, Refusal, RowVerdict, SinkInspector, StoredRecord } from '@mysync/sink';
import type { Again } from './again.ts';

/** Records were read again from the first one: not for ever. */
const MOST_RESTARTS = 10;

/** A sink's inspector, asked again where it fails in passing. Repairs are guarded by their version: done twice, they are done once. */
export class SteadyInspector {
  readonly #inspector: SinkInspector;
  readonly #again: Again;

  constructor(inspector: SinkInspector, again: Again) {
    this.#inspector = inspector;
    this.#again = again;
  }

  compare(rows: readonly InspectedRow[], signal: AbortSignal): Promise<readonly RowVerdict[]> {
    return this.#again.call(() => this.#inspector.compare(rows, signal));
  }

  find(table: TableRef, targets: readonly string[], signal: AbortSignal): Promise<readonly (StoredRecord | null)[]> {
    return this.#again.call(() => this.#inspector.find(table, targets, signal));
  }

  rewrite(...given: Parameters<SinkInspector['rewrite']>): Promise<readonly Refusal[]> {
    return this.#again.call(() => this.#inspector.rewrite(...given));
  }

  remove(...given: Parameters<SinkInspector['remove']>): Promise<readonly Refusal[]> {
    return this.#again.call(() => this.#inspector.remove(...given));
  }

  records(...given: Parameters<SinkInspector['records']>): AsyncIterable<readonly StoredRecord[]> {
    return this.#again.iterate(() => this.#inspector.records(...given), MOST_RESTARTS);
  }
}
