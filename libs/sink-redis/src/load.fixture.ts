/** A load over a sink as a writer drives it: retries what is retriable, resumes from the marker, stops at anything else. */
import assert from 'node:assert/strict';
import { isMysyncError, type TableSchema } from '@mysync/core';
import type { DeleteChange, PutChange, Sink, StreamRef } from '@mysync/sink';
import { del, itemRow, put } from '@mysync/sink/conformance';

const RETRY_MS = 20;
/** Loads take seconds; a machine at its limits makes that tens. */
const LOAD_TIMEOUT_MS = 120_000;

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

export interface RunOptions {
  /** Called before each batch. */
  readonly onBatch?: (at: number) => Promise<void> | void;
  /** What the servers say of themselves, for the message when the load does not get on. */
  readonly state?: () => Promise<string>;
  readonly signal?: AbortSignal;
}

/** Applies all batches, in LOAD_TIMEOUT_MS at most. */
export async function runLoad(sink: Sink, stream: StreamRef, load: Load, options: RunOptions = {}): Promise<RunReport> {
  const { onBatch, state, signal: ended } = options;
  const deadline = AbortSignal.timeout(LOAD_TIMEOUT_MS);
  const signal = ended === undefined ? deadline : AbortSignal.any([deadline, ended]);
  let retries = 0;
  let resumes = 0;
  let at = 0;
  const retrying = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const goesOn = isMysyncError(error) && error.retriable;
        if (goesOn && !signal.aborted) {
          retries++;
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
          continue;
        }
        if (!deadline.aborted) throw error;
        const where = `batch ${at} of ${load.batches.length}, ${retries} retries, ${resumes} resumes`;
        throw new Error(`the load does not get on: ${where}\n${await state?.()}`, { cause: error });
      }
    }
  };
  let marker = await retrying(() => sink.readMarker(stream));
  at = next(marker);
  while (at < load.batches.length) {
    await onBatch?.(at);
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
