import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MysyncError, NO_POSITION, type SourcePosition, systemClock, type TableRef } from '@mysync/core';
import type { InspectedRow, RowVerdict, Sink, SinkInspector, StoredRecord } from '@mysync/sink';
import { type SourceRow, sourceErrors, type TableReader } from '@mysync/source-mysql';
import { Again } from './again.ts';
import type { Pipeline, Settled } from './pipeline.ts';
import type { TableReport } from './report.ts';
import { idOf, planOf, readerOf, rowOf } from './rows.fixture.ts';
import { SteadyTable } from './steady-table.ts';
import { TableVerifier } from './table-verifier.ts';

const plan = planOf();

/** Records by id, each with its version and its row's state. */
class Records {
  readonly stored = new Map<number, { version: bigint; state: string }>();
  /** Called before each comparison. */
  beforeCompare: () => void = () => undefined;
  /** What the next question meets. */
  failure: Error | undefined;

  get sink(): Sink {
    const inspector: SinkInspector = {
      targetOf: ({ key }) => String(idOf(key)),
      compare: (rows) =>
        this.#answer(() => {
          this.beforeCompare();
          return rows.map((row) => this.#verdict(row));
        }),
      find: (_: TableRef, targets) => this.#answer(() => targets.map((target) => this.#record(Number(target)))),
      records: async function* (this: Records) {
        await Promise.resolve();
        yield [...this.stored.keys()].map((id) => this.#record(id) as StoredRecord);
      }.bind(this),
      rewrite: (_, rows, version) =>
        this.#answer(() => {
          for (const { key, row } of rows) this.stored.set(idOf(key), { version, state: String(row[1]) });
          return [];
        }),
      remove: (_, targets) =>
        this.#answer(() => {
          for (const target of targets) this.stored.delete(Number(target));
          return [];
        }),
    };
    const sink: Pick<Sink, 'inspector' | 'prepare'> = { inspector, prepare: () => Promise.resolve() };
    return sink as Sink;
  }

  #answer<T>(answer: () => T): Promise<T> {
    const { failure } = this;
    this.failure = undefined;
    return failure === undefined ? Promise.resolve(answer()) : Promise.reject(failure);
  }

  #record(id: number): StoredRecord | null {
    const record = this.stored.get(id);
    return record === undefined ? null : { target: String(id), version: record.version };
  }

  #verdict({ key, row }: InspectedRow): RowVerdict {
    const record = this.stored.get(idOf(key));
    if (record === undefined) return { state: 'missing', version: null, fields: [] };
    const isEqual = record.state === row[1];
    return { state: isEqual ? 'equal' : 'different', version: record.version, fields: isEqual ? [] : ['state'] };
  }
}

async function verify(records: Records, readers: readonly TableReader[], repair: boolean): Promise<TableReport> {
  const settled: Settled = { topic: { name: 'shop', id: 't', partitions: 1 }, transactionCounter: 100, parked: [] };
  const pipeline: Pick<Pipeline, 'settled'> = { settled: () => Promise.resolve(settled) };
  const { signal } = new AbortController();
  const clock = { ...systemClock, sleep: () => Promise.resolve() };
  const again = new Again({ clock, signal, patienceMs: 10_000, onRetry: () => undefined });
  const left = [...readers];
  const open = (): Promise<TableReader> => Promise.resolve(left.shift() as TableReader);
  const verifier = new TableVerifier({
    reader: await SteadyTable.open({ table: { database: 'shop', table: 'orders' }, open, again }),
    currentPosition: (): Promise<SourcePosition> => Promise.resolve(NO_POSITION),
    sink: records.sink,
    pipeline: pipeline as Pipeline,
    again,
    repair,
    rowsPerSecond: 0,
    clock,
    onProgress: () => undefined,
    signal,
  });
  return await verifier.run();
}

function filled(ids: readonly number[]): { records: Records; rows: readonly SourceRow[] } {
  const records = new Records();
  for (const id of ids) records.stored.set(id, { version: BigInt(id), state: `state ${id}` });
  return { records, rows: ids.map((id) => rowOf(plan, id, `state ${id}`)) };
}

test('what is wrong is repaired, and looked at afterwards', async () => {
  const { records, rows } = filled([1, 2, 3]);
  records.stored.set(2, { version: 2n, state: 'spoilt' });
  records.stored.set(9, { version: 2n, state: 'extra' });
  const report = await verify(records, [readerOf(plan, rows)], true);
  assert.deepEqual([report.different, report.extra, report.repaired], [1, 1, 2]);
  assert.deepEqual([...records.stored.keys()], [1, 2, 3]);
  assert.equal(records.stored.get(2)?.state, 'state 2');
});

test('a row that turns hot under its repair does not count as repaired, nor as wrong', async () => {
  const { records, rows } = filled([1, 2]);
  records.stored.set(2, { version: 2n, state: 'spoilt' });
  let version = 1000n << 40n;
  records.beforeCompare = () => {
    // once it is repaired, changes that go on write it anew before each look
    if (records.stored.get(2)?.version !== 2n) records.stored.set(2, { version: version++, state: 'newer' });
  };
  const report = await verify(records, [readerOf(plan, rows)], true);
  assert.deepEqual([report.different, report.repaired, report.changing], [0, 0, 1]);
});

test('a connection to either side that drops ends nothing, and no row counts twice', async () => {
  const { records, rows } = filled([1, 2, 3, 4, 5]);
  records.stored.set(1, { version: 1n, state: 'spoilt' });
  records.failure = new MysyncError('LOST', { remedy: '', retriable: true }, { message: 'the store is away' });
  const lost = (id: number): void => {
    if (id === 3) throw sourceErrors.SOURCE_CONNECTION_LOST({ message: 'the source is away' });
  };
  for (const isCut of [true, false]) {
    const another = (): TableReader => readerOf(plan, rows, { isCut });
    const readers = [readerOf(plan, rows, { isCut, onChunk: lost }), another(), another()];
    const report = await verify(records, readers, false);
    assert.deepEqual([report.rows, report.equal, report.different], [5, 4, 1]);
  }
});
