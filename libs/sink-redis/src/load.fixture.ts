/** A load over a sink as a writer drives it: retries what is retriable, resumes from the marker, stops at anything else. */
import assert from 'node:assert/strict';
import { isMysyncError, type TableSchema } from '@mysync/core';
import type { DeleteChange, PutChange, Sink, StreamRef } from '@mysync/sink';
import { del, itemRow, put } from '@mysync/sink/conformance';

const RETRY_MS = 20;

/** Rows of `items`, each batch touching random ids; a third of the changes are deletes. */
export class Load {
  readonly batches: readonly (readonly (PutChange | DeleteChange)[])[];
  /** What must be there at the end: id → name. */
  readonly expected: ReadonlyMap<number, string>;

  constructor(schema: TableSchema, options: { readonly batches: number; readonly rows: number; readonly ids: number }) {
    const expected = new Map<number, string>();
    let version = 0;
    this.batches = Array.from({ length: options.batches }, () => {
      const changes = new Map<number, PutChange | DeleteChange>();
      while (changes.size < options.rows) {
        const id = Math.floor(Math.random() * options.ids);
        if (changes.has(id)) continue;
        version++;
        const row = itemRow(id, `v${version}`);
        const deletes = Math.random() < 0.33;
        changes.set(id, deletes ? del(schema, row, version) : put(schema, row, version));
        if (deletes) expected.delete(id);
        else expected.set(id, `v${version}`);
      }
      return [...changes.values()];
    });
    this.expected = expected;
  }
}

export interface RunReport {
  readonly retries: number;
  readonly resumes: number;
}

/** Applies all batches; `onBatch` is called before each. */
export async function runLoad(
  sink: Sink,
  stream: StreamRef,
  load: Load,
  onBatch: (at: number) => Promise<void> | void = () => undefined,
): Promise<RunReport> {
  const signal = new AbortController().signal;
  let retries = 0;
  let resumes = 0;
  const retrying = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!isMysyncError(error) || !error.retriable) throw error;
        retries++;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  };
  let marker = await retrying(() => sink.readMarker(stream));
  let at = next(marker);
  while (at < load.batches.length) {
    await onBatch(at);
    const batch = { stream, changes: load.batches[at] ?? [], marker: { expected: marker, next: text(at + 1) } };
    const outcome = await retrying(() => sink.apply(batch, signal));
    if (outcome.status === 'applied') {
      marker = batch.marker.next;
      at++;
      continue;
    }
    assert.equal(outcome.status, 'marker-moved');
    resumes++;
    marker = await retrying(() => sink.readMarker(stream));
    at = next(marker);
  }
  return { retries, resumes };
}

function text(next: number): string {
  return JSON.stringify({ next });
}

function next(marker: string | null): number {
  return marker === null ? 0 : JSON.parse(marker).next;
}
