/**
 * Compares a table with what a sink holds of it, while both change.
 *
 * 1. The table is read in chunks, each compared at once; what looks wrong is a suspect, no more.
 * 2. A suspect is looked at again, each time after everything that was committed before has arrived, until it is right, or a difference for
 *    certain (`Suspects`), or has changed at every look.
 * 3. Extra records are sought among those that are older than the comparison: what is newer was written by changes that went on meanwhile.
 * 4. Repairs carry the version right behind the newest transaction that had surely arrived before the row was read again: not below anything
 *    that the row stands for, below every change to come. So they overwrite what is wrong, and nothing newer.
 * 5. A row whose changes are set aside is left alone: releasing them is another command's. A row that the sink refuses is told; the rest goes on.
 * 6. A row that is set aside because the log withholds it is repaired like any other, and released once it is right: as far as the repair's
 *    version covers it, and in the marker only (`releaseMended`).
 * 7. Where the log had forgotten deletions, rows that are set aside and gone from the source are mended and released likewise: their deletion may never come.
 * 8. Repaired is only what was looked at afterwards, and right. A row that turned hot under the repair is neither wrong nor repaired: it is changing.
 * 9. What fails in passing is done again (`Again`): a lost connection to source, sink or checkpoint ends nothing. All that is done here may be done twice.
 */
import { type Clock, formatTableRef, type SourcePosition } from '@mysync/core';
import type { Sink, StoredRecord } from '@mysync/sink';
import type { SnapshotProgress } from '@mysync/source-mysql';
import { causeOf, parkedName } from '@mysync/writer';
import type { Again } from './again.ts';
import { verifierErrors } from './errors.ts';
import { NONE_PARKED, type PlacedRow, parkedRowsOf, refusedTargets } from './hindrances.ts';
import { KeySet } from './key-set.ts';
import type { Pipeline, Settled } from './pipeline.ts';
import { type Difference, type Hindrance, MAX_EXAMPLES, type TableReport } from './report.ts';
import { RowDecoder, type SourceRecord, type UnstorableRow } from './source-rows.ts';
import { SteadyInspector } from './steady-inspector.ts';
import type { SteadyTable } from './steady-table.ts';
import { type Finding, type Suspect, Suspects } from './suspects.ts';
import { releaseMended, repairVersion } from './withheld.ts';

export interface TableVerifierOptions {
  readonly reader: SteadyTable;
  currentPosition(): Promise<SourcePosition>;
  /** Its schemas are prepared by the verifier. */
  readonly sink: Sink;
  readonly pipeline: Pipeline;
  readonly again: Again;
  readonly repair: boolean;
  /** 0: as fast as it goes. */
  readonly rowsPerSecond: number;
  readonly clock: Clock;
  onProgress(progress: SnapshotProgress): void;
  readonly signal: AbortSignal;
}

/** Suspects that are looked at together. */
const MAX_SUSPECTS = 2000;
const MAX_ROUNDS = 20;
const MAX_EXTRAS = 1_000_000;
/** Above that of every change. */
const LAST_VERSION = 2n ** 64n;

interface Repair {
  /** Targets that are right afterwards. */
  readonly done: ReadonlySet<string>;
  readonly refused: ReadonlyMap<string, Hindrance>;
  /** Targets that were written over since by changes that go on. */
  readonly hot: ReadonlySet<string>;
}

const NOTHING: Repair = { done: new Set(), refused: new Map(), hot: new Set() };

export class TableVerifier {
  readonly #options: TableVerifierOptions;
  readonly #decoder: RowDecoder;
  readonly #inspector: SteadyInspector;
  readonly #seen = new KeySet();
  readonly #unstorable = new KeySet();
  readonly #differences: Difference[] = [];
  /** Rows whose changes were set aside when everything else had arrived. */
  #parked = NONE_PARKED;
  readonly #counts = {
    rows: 0,
    equal: 0,
    different: 0,
    missing: 0,
    extra: 0,
    expired: 0,
    changing: 0,
    unsettled: 0,
    repaired: 0,
    unremoved: 0,
  };

  constructor(options: TableVerifierOptions) {
    this.#options = options;
    const { sink, again } = options;
    this.#inspector = new SteadyInspector(sink.inspector, again);
    this.#decoder = new RowDecoder(sink.inspector, ({ schema }) => again.call(() => sink.prepare(schema)));
  }

  async run(): Promise<TableReport> {
    const { clock, reader, sink, again } = this.#options;
    const startedAt = clock.monotonic();
    await again.call(() => sink.prepare(reader.schema));
    const before = await this.#settle();
    await this.#compareRows();
    await this.#findExtras(before);
    if (this.#options.repair) await this.#releaseRight();
    const seconds = (clock.monotonic() - startedAt) / 1000;
    this.#progress(true);
    return { table: reader.table, ...this.#counts, seconds, differences: this.#differences };
  }

  async #compareRows(): Promise<void> {
    const { reader, signal, clock, rowsPerSecond } = this.#options;
    const startedAt = clock.monotonic();
    let suspects: Suspect[] = [];
    for await (const chunk of reader.chunks()) {
      const decoded = await this.#decoder.decode(chunk, (row) => this.#noteUnstorable(row));
      const rows = reader.cameAgain ? decoded.filter(({ target }) => !this.#seen.has(target)) : decoded;
      const verdicts = await this.#inspector.compare(rows, signal);
      for (const [at, row] of rows.entries()) {
        const state = verdicts[at]?.state;
        this.#seen.add(row.target);
        if (state === 'equal') this.#counts.equal++;
        else if (state === 'expired') this.#counts.expired++;
        else suspects.push(row);
      }
      this.#counts.rows += chunk.length - (decoded.length - rows.length);
      if (suspects.length >= MAX_SUSPECTS) {
        await this.#judge(suspects);
        suspects = [];
      }
      this.#progress(false);
      const ahead =
        rowsPerSecond === 0 ? 0 : this.#counts.rows / rowsPerSecond - (clock.monotonic() - startedAt) / 1000;
      if (ahead > 0) await clock.sleep(ahead * 1000, signal);
    }
    await this.#judge(suspects);
  }

  async #judge(list: readonly Suspect[]): Promise<void> {
    const suspects = new Suspects(list);
    for (let round = 1; suspects.open.length > 0 && round <= MAX_ROUNDS; round++) {
      await this.#settle();
      await this.#look(suspects);
    }
    suspects.giveUp();
    this.#counts.equal += suspects.right.size;
    this.#counts.changing += suspects.hot.size;
    await this.#report(suspects.found);
  }

  /** Each open suspect in the source first, then in the sink. */
  async #look(suspects: Suspects): Promise<void> {
    const { reader, signal } = this.#options;
    const { open } = suspects;
    const rows = await this.#decoder.decode(await reader.rows(open.map(({ key }) => key)));
    const verdicts = await this.#inspector.compare(rows, signal);
    const found = new Set(rows.map(({ target }) => target));
    for (const [at, row] of rows.entries()) {
      const verdict = verdicts[at];
      if (verdict !== undefined) suspects.see(row.target, { row, verdict });
    }
    const gone = open.map(({ target }) => target).filter((target) => !found.has(target));
    const stored = await this.#inspector.find(reader.table, gone, signal);
    for (const [at, target] of gone.entries()) {
      const record = stored[at] ?? null;
      const state = record === null ? 'missing' : 'different';
      suspects.see(target, { row: null, verdict: { state, version: record?.version ?? null, fields: [] } });
    }
  }

  async #findExtras(before: Settled): Promise<void> {
    const { reader, signal } = this.#options;
    const limit = repairVersion(before);
    const { name: topic, partitions } = before.topic;
    const streams = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }));
    const candidates = new Map<string, StoredRecord>();
    for await (const page of this.#inspector.records(reader.table, streams, signal)) {
      for (const record of page) {
        if (record.version <= limit && !this.#seen.has(record.target)) candidates.set(record.target, record);
      }
      if (candidates.size > MAX_EXTRAS) {
        const table = formatTableRef(reader.table);
        const message = `the sink has more than ${MAX_EXTRAS} records that ${table} lacks`;
        throw verifierErrors.VERIFY_TOO_MANY_EXTRAS({ message, where: { table } });
      }
    }
    await this.#keepStored(candidates);
    if (candidates.size === 0) return;
    // names in the sink cannot be looked up in the source, so it is read once more
    for await (const chunk of reader.chunks()) {
      for (const { target } of await this.#decoder.decode(chunk)) candidates.delete(target);
    }
    const settled = await this.#keepStored(candidates);
    const removed = this.#options.repair ? await this.#removeExtras([...candidates.keys()], settled) : NOTHING;
    for (const [target, { version }] of candidates) {
      this.#note({ kind: 'extra', target, fields: [], version: String(version), ...this.#outcomeOf(target, removed) });
    }
  }

  async #removeExtras(extras: readonly string[], settled: Settled): Promise<Repair> {
    const { reader, signal } = this.#options;
    const held = this.#heldTargets();
    const orphans = await this.#orphans();
    for (const { target } of orphans) if (target !== null) held.delete(target);
    const targets = extras.filter((target) => !held.has(target));
    const version = repairVersion(settled);
    const refused = new Map<string, Hindrance>();
    const done = new Set<string>();
    for (let from = 0; from < targets.length; from += MAX_SUSPECTS) {
      const page = targets.slice(from, from + MAX_SUSPECTS);
      const refusals = await this.#inspector.remove(reader.table, page, version, signal);
      for (const [target, hindrance] of refusedTargets(refusals, page)) refused.set(target, hindrance);
      const left = await this.#inspector.find(reader.table, page, signal);
      for (const [at, target] of page.entries()) {
        // a newer record is that of a row which has come since
        if ((left[at]?.version ?? LAST_VERSION) > version) done.add(target);
      }
    }
    const right = orphans.filter(({ target }) => target !== null && done.has(target));
    await this.#releaseMended(settled, right);
    await this.#release(settled, done);
    await this.#settle();
    return { done, refused, hot: new Set() };
  }

  /** Rows that are set aside where deletions were lost, and gone from the source. */
  async #orphans(): Promise<readonly PlacedRow[]> {
    const { afterLoss } = this.#parked;
    if (afterLoss.length === 0) return [];
    const there = new Set<string>();
    const note = (key: Uint8Array): unknown => there.add(Buffer.from(key).toString('base64'));
    const rows = await this.#options.reader.rows(afterLoss.map(({ key }) => key));
    for (const { keyBytes } of await this.#decoder.decode(rows, ({ key }) => note(key))) note(keyBytes);
    return afterLoss.filter(({ entry }) => !there.has(entry.key));
  }

  /** Drops what the sink does not hold any more in this version. */
  async #keepStored(candidates: Map<string, StoredRecord>): Promise<Settled> {
    const { reader, signal } = this.#options;
    const settled = await this.#settle();
    const targets = [...candidates.keys()];
    for (let from = 0; from < targets.length; from += MAX_SUSPECTS) {
      const page = targets.slice(from, from + MAX_SUSPECTS);
      const stored = await this.#inspector.find(reader.table, page, signal);
      for (const [at, target] of page.entries()) {
        if (stored[at]?.version !== candidates.get(target)?.version) candidates.delete(target);
      }
    }
    return settled;
  }

  async #report(findings: readonly Finding[]): Promise<void> {
    const repair = this.#options.repair ? await this.#repair(findings) : NOTHING;
    for (const { kind, target, verdict } of findings) {
      if (repair.hot.has(target)) {
        this.#counts.changing++;
        continue;
      }
      const version = verdict.version === null ? null : String(verdict.version);
      this.#note({ kind, target, fields: verdict.fields, version, ...this.#outcomeOf(target, repair) });
    }
  }

  #outcomeOf(target: string, { done, refused }: Repair): Pick<Difference, 'repaired' | 'hindrance'> {
    const hindrance = this.#parked.byTarget.get(target) ?? null;
    if (hindrance === null && done.has(target)) return { repaired: true, hindrance };
    return { repaired: false, hindrance: hindrance ?? refused.get(target) ?? null };
  }

  async #repair(findings: readonly Finding[]): Promise<Repair> {
    if (findings.length === 0) return NOTHING;
    const { reader, signal } = this.#options;
    const settled = await this.#settle();
    const version = repairVersion(settled);
    const held = this.#heldTargets();
    const free = findings.filter(({ target }) => !held.has(target));
    const rows = await this.#decoder.decode(await reader.rows(free.map(({ key }) => key)));
    const refused = new Map<string, Hindrance>();
    for (const [partition, group] of groupByPartition(rows, settled.topic.partitions)) {
      const stream = { topic: settled.topic.name, partition };
      const refusals = await this.#inspector.rewrite(stream, group, version, signal);
      const targets = group.map(({ target }) => target);
      for (const [target, hindrance] of refusedTargets(refusals, targets)) refused.set(target, hindrance);
    }
    const found = new Set(rows.map(({ target }) => target));
    const gone = free.map(({ target }) => target).filter((target) => !found.has(target));
    const refusals = await this.#inspector.remove(reader.table, gone, version, signal);
    for (const [target, hindrance] of refusedTargets(refusals, gone)) refused.set(target, hindrance);
    const again = new Suspects(findings);
    for (let round = 1; again.open.length > 0 && round <= MAX_ROUNDS; round++) {
      await this.#look(again);
      if (again.open.length > 0) await this.#settle();
    }
    again.giveUp();
    const { right: done, hot } = again;
    await this.#release(settled, done);
    // what was set aside meanwhile
    await this.#settle();
    return { done, refused, hot };
  }

  /** Rows that a repair leaves alone. */
  #heldTargets(): Set<string> {
    const held = new Set(this.#parked.byTarget.keys());
    for (const { target } of this.#parked.withheld) if (target !== null) held.delete(target);
    return held;
  }

  /** Those of the targets that are set aside because the log withholds their rows; the sink holds the rows as they were at `settled`, or newer. */
  async #release(settled: Settled, targets: ReadonlySet<string>): Promise<void> {
    const right = this.#parked.withheld.filter(({ target }) => target !== null && targets.has(target));
    await this.#releaseMended(settled, right);
  }

  async #releaseMended(settled: Settled, right: readonly PlacedRow[]): Promise<void> {
    const { sink, clock, signal, again } = this.#options;
    await again.call(() => releaseMended({ sink, clock, signal, settled, right }));
  }

  /** What is set aside though it is right: the sink has no column that was too large, or a repair was killed before it released the row. */
  async #releaseRight(): Promise<void> {
    const { reader, signal } = this.#options;
    const settled = await this.#settle();
    await this.#releaseGone(settled);
    const { withheld } = this.#parked;
    if (withheld.length === 0) return;
    const rows = await this.#decoder.decode(await reader.rows(withheld.map(({ key }) => key)), () => undefined);
    const verdicts = await this.#inspector.compare(rows, signal);
    const equal = new Set<string>();
    for (const [at, { keyBytes }] of rows.entries()) {
      if (verdicts[at]?.state === 'equal') equal.add(Buffer.from(keyBytes).toString('base64'));
    }
    const right = withheld.filter(({ entry }) => equal.has(entry.key));
    await this.#releaseMended(settled, right);
  }

  /** What is set aside where deletions were lost, though neither side has the row. */
  async #releaseGone(settled: Settled): Promise<void> {
    const { reader, signal } = this.#options;
    const orphans = await this.#orphans();
    const named = orphans.flatMap((row) => (row.target === null ? [] : [{ row, target: row.target }]));
    const stored = await this.#inspector.find(
      reader.table,
      named.map(({ target }) => target),
      signal,
    );
    const right = named.flatMap(({ row }, at) => (stored[at] === null ? [row] : []));
    // which record is theirs cannot be told: there is none when no record is too much
    if (this.#counts.unremoved === 0) right.push(...orphans.filter(({ target }) => target === null));
    await this.#releaseMended(settled, right);
  }

  /** No change under way explains it: while the source has the row, the sink cannot. */
  #noteUnstorable({ key, error }: UnstorableRow): void {
    const entry = { key: Buffer.from(key).toString('base64') };
    if (this.#unstorable.has(entry.key)) return;
    this.#unstorable.add(entry.key);
    const hindrance = this.#parked.nowhere.get(entry.key) ?? ({ kind: 'refused', ...causeOf(error) } as const);
    const target = parkedName(entry);
    this.#note({ kind: 'missing', target, fields: [], version: null, repaired: false, hindrance });
  }

  #note(difference: Difference): void {
    this.#counts[difference.kind]++;
    if (difference.repaired) this.#counts.repaired++;
    else if (difference.kind === 'extra' || difference.kind === 'unsettled') this.#counts.unremoved++;
    if (this.#differences.length < MAX_EXAMPLES) this.#differences.push(difference);
  }

  async #settle(): Promise<Settled> {
    const { pipeline, currentPosition, reader, sink, again, signal } = this.#options;
    const settled = await pipeline.settled(await again.call(currentPosition), signal);
    this.#parked = parkedRowsOf(settled.parked, reader.schema, sink.inspector);
    return settled;
  }

  #progress(done: boolean): void {
    const { reader, onProgress } = this.#options;
    onProgress({ table: reader.table, rows: this.#counts.rows, estimatedRows: reader.estimatedRows, done });
  }
}

function groupByPartition(rows: readonly SourceRecord[], partitions: number): ReadonlyMap<number, SourceRecord[]> {
  const groups = new Map<number, SourceRecord[]>();
  for (const row of rows) {
    const partition = row.partitionHash % partitions;
    const group = groups.get(partition);
    if (group === undefined) groups.set(partition, [row]);
    else group.push(row);
  }
  return groups;
}
