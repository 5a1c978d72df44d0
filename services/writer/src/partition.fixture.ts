import assert from 'node:assert/strict';
import type { Clock, Outage, TableRef, TableSchema } from '@mysync/core';
import type { ApplyBatch, ApplyOutcome, InspectedRow, Sink, SinkChange, SinkInspector } from '@mysync/sink';
import { type AssignedPartition, type Header, type RecordBatch, transportErrors } from '@mysync/transport';
import { parseMarker } from './marker.ts';
import type { TestLog } from './test-log.fixture.ts';

interface StoredRow {
  readonly state: string | null;
  readonly version: bigint;
}

/** What a test lets happen in the place of an apply, or around it. */
export type ApplyHook = (batch: ApplyBatch, apply: () => ApplyOutcome) => Promise<ApplyOutcome> | ApplyOutcome;

/** A sink in memory: versions, and the marker by compare-and-set, as the port asks for. */
export class MemorySink implements Sink {
  readonly kind = 'memory';
  readonly rows = new Map<string, StoredRow>();
  marker: string | null = null;
  /** Offsets of the changes as they were made, in order; never those that were refused as stale. */
  readonly changed: number[] = [];
  /** The hook of the next applies with changes, one each; when there is none, they are simply made. */
  readonly hooks: ApplyHook[] = [];
  /** Owners in the order in which they put their names into the marker. */
  readonly owners: string[] = [];
  readMarker = (): Promise<string | null> => Promise.resolve(this.marker);
  /** Set by tests of sinks that tell who holds their data. */
  holders?: () => Promise<string>;
  inFlight = 0;
  /** Why a change can never be taken; asked before anything of a batch is made. */
  refuses: (change: SinkChange) => Error | null = () => null;
  /** Schemas are prepared here; may throw. */
  onPrepare: (schema: TableSchema) => void = () => undefined;
  /** Two writers use it. */
  shared = false;
  #doubt: (reason: string) => void = () => undefined;

  get inspector(): SinkInspector {
    return { targetOf: ({ key }: InspectedRow) => key.values.join() } as Pick<
      SinkInspector,
      'targetOf'
    > as SinkInspector;
  }

  check(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  async prepare(schema: TableSchema): Promise<void> {
    await Promise.resolve();
    this.onPrepare(schema);
  }

  accepts(table: TableRef): boolean {
    return table.table !== 'secret';
  }

  onDoubt(callback: (reason: string) => void): void {
    this.#doubt = callback;
  }

  doubt(): void {
    this.#doubt('test');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async apply(batch: ApplyBatch): Promise<ApplyOutcome> {
    this.inFlight += 1;
    assert.ok(this.inFlight === 1 || this.shared, 'two applies of one partition at a time');
    try {
      const hook = batch.changes.length === 0 ? undefined : this.hooks.shift();
      await Promise.resolve();
      return hook === undefined ? this.#make(batch) : await hook(batch, () => this.#make(batch));
    } finally {
      this.inFlight -= 1;
    }
  }

  /** Next offset by the marker. */
  get next(): number {
    return this.marker === null ? -1 : parseMarker(this.marker, {}).nextOffset;
  }

  states(): Record<string, string> {
    const live = [...this.rows].filter(([, row]) => row.state !== null);
    return Object.fromEntries(live.map(([key, row]) => [key, row.state ?? '']));
  }

  #make({ changes, marker }: ApplyBatch): ApplyOutcome {
    if (this.marker === marker.next && marker.next !== marker.expected) return { status: 'applied', stale: 0 };
    if (this.marker !== marker.expected) return { status: 'marker-moved' };
    const refusals = changes.flatMap((change, index) => {
      const error = this.refuses(change);
      return error === null ? [] : [{ index, error }];
    });
    if (refusals.length > 0) return { status: 'refused', refusals };
    let stale = 0;
    for (const change of changes) {
      if (change.kind === 'clear') {
        for (const [key, row] of this.rows) {
          if (row.version < change.version && change.keep?.has(key) !== true) this.rows.delete(key);
        }
        this.changed.push(change.offset);
        continue;
      }
      const key = change.key.values.join();
      const stored = this.rows.get(key);
      if (stored !== undefined && stored.version >= change.version) {
        if (stored.version > change.version) stale += 1;
        continue;
      }
      const state = change.kind === 'delete' ? null : String(change.row[1]);
      this.rows.set(key, { state, version: change.version });
      this.changed.push(change.offset);
    }
    this.marker = marker.next;
    const { owner } = parseMarker(marker.next, {});
    if (this.owners.at(-1) !== owner) this.owners.push(owner);
    return { status: 'applied', stale };
  }
}

function copy(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : Uint8Array.prototype.slice.call(bytes);
}

function lend({ name, value }: Header): Header {
  return { name, value: Uint8Array.prototype.slice.call(value) };
}

/** Time that passes only by sleeping and by hand. */
export class FastClock implements Clock {
  ms = Date.UTC(2026, 0, 1);
  readonly slept: number[] = [];

  now(): number {
    return this.ms;
  }

  monotonic(): number {
    return this.ms;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.slept.push(ms);
    this.ms += ms;
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
}

/** Waits for something that follows from what already happened: no time, only turns of the event loop. */
export async function turnsUntil(what: string, condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 5_000; turn += 1) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail(`never: ${what}`);
}

export interface ScriptedOptions {
  readonly log: TestLog;
  readonly committed?: number | null;
  readonly topicId?: string;
  readonly partitions?: number;
  readonly earliest?: number;
  /** For the time at which the log's end was looked up. */
  readonly nowMs?: () => number;
  /** Records in one batch at most. */
  readonly batchRecords?: number;
}

/** An assigned partition over a `TestLog`: follows it as records are added (call `news`), until revoked. */
export class ScriptedPartition implements AssignedPartition {
  readonly topic;
  readonly partition = 0;
  readonly committed: number | null;
  readonly range;
  readonly revoke = new AbortController();
  outage: Outage | null = null;
  readonly commits: number[] = [];
  /** Called with each commit before it counts; may throw. */
  onCommit: (nextOffset: number) => void = () => undefined;
  /** Called before each batch; may throw. */
  onBatch: (from: number) => void = () => undefined;
  readonly #options: ScriptedOptions;
  #wake: () => void = () => undefined;

  constructor(options: ScriptedOptions) {
    this.#options = options;
    this.topic = { name: 'shop', id: options.topicId ?? 'topic-1', partitions: options.partitions ?? 1 };
    this.committed = options.committed ?? null;
    this.range = { earliest: options.earliest ?? 0, end: options.log.end };
  }

  get revoked(): AbortSignal {
    return this.revoke.signal;
  }

  /** Tells the follower that the log has more. */
  news(): void {
    this.#wake();
  }

  async *batches(from: number, signal: AbortSignal = this.revoked): AsyncGenerator<RecordBatch> {
    const { log, batchRecords = 100, earliest = 0, nowMs = Date.now } = this.#options;
    const stop = AbortSignal.any([signal, this.revoked]);
    let next = from;
    while (!stop.aborted) {
      this.onBatch(next);
      if (next < earliest || next > log.end) {
        throw transportErrors.TRANSPORT_OFFSET_OUT_OF_RANGE({ message: `offset ${next}` });
      }
      const records = log.records.filter(({ offset }) => offset >= next).slice(0, batchRecords);
      const last = records.at(-1);
      if (next === log.end) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          stop.addEventListener('abort', () => resolve(), { once: true });
        });
        continue;
      }
      next = last === undefined || records.length < batchRecords ? log.end : last.offset + 1;
      const lent = records.map((record) => ({
        ...record,
        value: copy(record.value),
        headers: record.headers.map(lend),
      }));
      yield { partition: 0, records: lent, nextOffset: next, endOffset: log.end, endOffsetAtMs: nowMs() };
      // The bytes are the transport's again.
      for (const { value, headers } of lent)
        for (const bytes of [value, ...headers.map((h) => h.value)]) bytes?.fill(255);
    }
  }

  commit(nextOffset: number): Promise<void> {
    try {
      this.onCommit(nextOffset);
      this.commits.push(nextOffset);
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error);
    }
  }
}
