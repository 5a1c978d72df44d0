/**
 * One random run of the delivery protocol around the real window, guard, tail recovery and tracker.
 *
 * A reader publishes a source's transactions through the windows with several batches in flight; batches may be stored in any order or
 * never, acks may be lost or late; readers crash at any point and are replaced; each partition's log is compacted at any time
 * (tombstones purged once the live consumer has passed them). The live consumer (crashing, restarting from its commit; its sink keeps
 * what it applied) and fresh consumers (from the first record, at any state of compaction) must end equal to the table, and
 * no key of the live sink may ever go backward.
 *
 * A mutation switches one rule off around the code under test, to see that the runs would notice.
 */
import type { ChangeId } from '@mysync/core';
import type { PartitionMark } from './checkpoint-tracker.ts';
import { Consumer } from './model-consumer.ts';
import {
  type Change,
  changeOf,
  endAt,
  FILE,
  Log,
  type LogRecord,
  type Mutation,
  published,
  type SavedCheckpoint,
  type Seen,
  type Surroundings,
  WINDOW_ITEMS,
} from './model-log.ts';
import { Reader } from './model-reader.ts';
import { SeededRandom } from './random.ts';
import { guardStateAt, initialGuardState, SequenceGuard, type Verdict } from './sequence-guard.ts';
import { recoverTail, type TailRecord } from './tail-recovery.ts';

/**
 * `live`, `fresh`: that consumer's sink differs from the table · `backward`: a key of the live sink went back · `hole`: the live
 * consumer accepted a gap of more sequences than offsets were absent · `effective`: on the log without compaction, the messages that
 * count are not each change once and in order · `tail`: the log behind a checkpoint's marks lacks a message published beyond it ·
 * `error`: something threw.
 */
export type Failure = 'live' | 'backward' | 'fresh' | 'hole' | 'effective' | 'tail' | 'error';

export interface RunReport {
  readonly failures: readonly Failure[];
  /** What happened, to see that the runs reach what they are for. */
  readonly seen: Seen;
  readonly detail: string;
}

const NO_CHANGE: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };
const ZERO = { epoch: 0, generation: 0, sequence: 0 };
const FENCE: LogRecord = { key: 'fence', value: 1, epoch: 0, generation: 0, base: 0, sequence: 0, item: null };

class World implements Surroundings {
  readonly random: SeededRandom;
  readonly #mutations: ReadonlySet<Mutation>;
  readonly source: Change[] = [];
  readonly keys: readonly string[];
  readonly logs: readonly Log[];
  readonly live: Consumer;
  readonly seen: Seen = {
    rewinds: 0,
    crashes: 0,
    anomalies: 0,
    earlyRecords: 0,
    compactedGaps: 0,
    backedFrontiers: 0,
  };
  readonly #eager: boolean;
  readonly zombies: { readonly partition: number; readonly records: readonly LogRecord[] }[] = [];
  tailLacked = false;
  #checkpoint: SavedCheckpoint;

  constructor(seed: number, mutations: ReadonlySet<Mutation>) {
    this.random = new SeededRandom(seed);
    this.#mutations = mutations;
    const { random } = this;
    this.keys = [...'ABCDEF'].slice(0, random.integer(1, 6));
    this.#makeSource(random.integer(3, 25));
    const partitions = random.chance(0.7) ? 1 : 2;
    this.logs = Array.from({ length: partitions }, () => new Log(random.pick([0, 0, 7])));
    this.#eager = random.chance(0.3);
    this.live = new Consumer(this);
    const marks = this.logs.map(({ start }) => ({
      ...guardStateAt({ ...ZERO, offset: start - 1 }),
      change: NO_CHANGE,
    }));
    this.#checkpoint = { epoch: 0, end: endAt(0), marks };
  }

  has(mutation: Mutation): boolean {
    return this.#mutations.has(mutation);
  }

  run(): void {
    while (!this.#readerLife()) this.seen.crashes++;
    for (const zombie of this.zombies) this.logs[zombie.partition]?.append(zombie.records);
    for (let p = 0; p < this.logs.length; p++) this.live.consume(p, Number.POSITIVE_INFINITY);
    for (const guard of this.live.guards) {
      this.seen.earlyRecords += guard.counts.early;
      this.seen.compactedGaps += guard.counts.compactedGaps;
    }
  }

  /** The guard as a consumer uses it, and where the mutations of its rules bite. */
  offer(guard: SequenceGuard, offset: number, record: LogRecord): Verdict | null {
    const { epoch, generation, sequence } = record;
    let { base } = record;
    let at = offset;
    if (this.has('nobudget')) at = guard.state().nextOffset;
    if (this.has('anygap')) at = offset * 1000;
    if (sequence === 0) {
      if (!this.has('fencecounts')) guard.skip(at);
      return null;
    }
    if (this.has('nobase')) base = sequence;
    if (this.has('norestart')) base = Math.max(base, guard.sequence + 1);
    return guard.offer(at, epoch, generation, base, sequence);
  }

  partitionOf(key: string): number {
    return key.charCodeAt(0) % this.logs.length;
  }

  /** Compacts some partition up to a random offset that is old enough. */
  #compact(): void {
    for (const [partition, log] of this.logs.entries()) {
      const mark = this.#checkpoint.marks[partition];
      log.protectedFrom = Math.max(log.protectedFrom, (mark?.offset ?? 0) + 1);
      const bound = this.random.integer(log.start, Math.max(log.start, Math.min(log.protectedFrom, log.end)));
      log.compact(this.random, bound, this.has('losttomb') ? log.end : this.live.committed(partition));
    }
  }

  /** From fence to crash, or true: everything is published and acked. */
  #readerLife(): boolean {
    const { random } = this;
    const fences = this.logs.map((log) => log.append([FENCE]));
    const recovered = this.logs.map((log, partition) => {
      const result = this.#recover(partition, log, fences[partition] as number);
      if (result.anomaly !== null) this.seen.anomalies++;
      return result;
    });
    const epoch = 1 + Math.max(this.#checkpoint.epoch, ...recovered.map((result) => result.highestEpoch));
    this.#checkpoint = { ...this.#checkpoint, epoch };
    const frontier = recovered.map((result) => result.frontier);
    const reader = new Reader(this, epoch, this.#checkpoint, frontier, fences);
    let life = random.integer(1, 60);
    while (!reader.finished()) {
      if (--life <= 0 && random.chance(0.3)) {
        reader.die();
        return false;
      }
      const dice = random.next();
      if (dice < 0.3) reader.send();
      else if (dice < 0.55) reader.store();
      else if (dice < 0.8) {
        if (reader.answer() && random.chance(0.5)) {
          this.#checkpoint = { epoch, ...reader.progress() };
        }
      } else if (dice < 0.84 && this.zombies.length > 0) {
        const zombie = this.zombies.pop();
        if (zombie !== undefined) this.logs[zombie.partition]?.append(zombie.records);
      } else if (dice < 0.92) this.live.consume(random.integer(0, this.logs.length - 1), random.integer(1, 5));
      else if (dice < 0.94) this.live.commit();
      else if (dice < 0.95) this.live.crash();
      if (dice >= 0.95 || this.#eager) this.#compact();
    }
    return true;
  }

  #recover(partition: number, log: Log, fence: number): ReturnType<typeof recoverTail> {
    const start = this.#checkpoint.marks[partition] as PartitionMark;
    const records: TailRecord[] = [];
    for (let offset = start.offset + 1; offset < fence; offset++) {
      const record = log.at(offset);
      if (record === null) continue;
      if (record.item === null) records.push({ kind: 'fence', offset, epoch: record.epoch });
      else records.push({ kind: 'message', offset, delivery: record, change: changeOf(record.item) });
    }
    const result = recoverTail(start, records, { remember: WINDOW_ITEMS });
    if (!this.#holdsAllBeyond(records, result.frontier.change, partition)) this.tailLacked = true;
    if (this.has('laxtail') || this.has('nobase') || this.has('anygap')) {
      return { ...result, frontier: bentFrontier(start, records, this) };
    }
    if (result.frontier.sequence < highestAccepted(start, records).sequence) {
      this.seen.backedFrontiers++;
      if (this.has('keepfrontier')) return { ...result, frontier: highestAccepted(start, records) };
    }
    return result;
  }

  /** Every change beyond the checkpoint's position and up to the frontier is in the tail. */
  #holdsAllBeyond(tail: readonly TailRecord[], frontier: ChangeId, partition: number): boolean {
    const { position } = this.#checkpoint.end;
    return this.source.every((change) => {
      const { transaction, ordinal } = change;
      if (transaction.offset < position.offset || this.partitionOf(change.key) !== partition) return true;
      if (!published(change, frontier)) return true;
      return tail.some((record) => {
        return (
          record.kind === 'message' && record.change.offset === transaction.offset && record.change.ordinal === ordinal
        );
      });
    });
  }

  #makeSource(changes: number): void {
    const { random } = this;
    let transaction: ChangeId = { file: FILE, offset: 100, gtid: '', ordinal: 0 };
    let ordinal = 0;
    for (let version = 1; version <= changes; version++) {
      if (ordinal > 0 && random.chance(0.6)) {
        transaction = { ...transaction, offset: transaction.offset + 100 };
        ordinal = 0;
      }
      ordinal++;
      const value = random.chance(0.75) ? version : null;
      this.source.push({ key: random.pick(this.keys), value, transaction, ordinal, version });
    }
  }
}
/** Tail recovery under the mutations of its guard: a real one, whose state is bent before and after each record. */
function bentFrontier(start: PartitionMark, records: readonly TailRecord[], world: World): PartitionMark {
  const guard = new SequenceGuard(guardStateAt(start), { strict: true });
  const marks = new Map([[start.sequence, start]]);
  for (const record of records) {
    if (record.kind === 'fence') continue;
    const { epoch, generation, base, sequence } = record.delivery;
    const state = guard.state();
    const newer = epoch > state.epoch || (epoch === state.epoch && generation > state.generation);
    const same = epoch === state.epoch && generation === state.generation;
    const takesOver = newer && base <= state.sequence + 1;
    if (takesOver && (world.has('nobase') || world.has('anygap'))) {
      guard.restore({ ...state, epoch, generation, sequence: sequence - 1, closed: false });
    } else if (same && world.has('anygap') && sequence > state.sequence) {
      guard.restore({ ...state, sequence: sequence - 1 });
    }
    if (guard.offer(record.offset, epoch, generation, base, sequence) === 'accept') {
      marks.set(sequence, { epoch, generation, sequence, offset: record.offset, change: record.change });
    }
    if (world.has('laxtail')) guard.restore({ ...guard.state(), closed: false });
  }
  return marks.get(guard.sequence) ?? start;
}
function highestAccepted(start: PartitionMark, records: readonly TailRecord[]): PartitionMark {
  const guard = new SequenceGuard(guardStateAt(start), { strict: true });
  let highest = start;
  for (const record of records) {
    if (record.kind === 'fence') continue;
    const { epoch, generation, base, sequence } = record.delivery;
    const verdict = guard.offer(record.offset, epoch, generation, base, sequence);
    if (verdict === 'accept' && sequence > highest.sequence) {
      highest = { epoch, generation, sequence, offset: record.offset, change: record.change };
    }
  }
  return highest;
}
/** On the whole history: a guard that accepts no gap, and takes back what a newer generation begins below. */
function effectiveVersions(log: Log): number[] {
  const guard = new SequenceGuard(initialGuardState(log.start));
  const accepted: LogRecord[] = [];
  for (const [i, record] of log.history.entries()) {
    const offset = log.start + i;
    if (record.sequence === 0) {
      guard.skip(offset);
      continue;
    }
    const { takeovers } = guard.counts;
    const verdict = guard.offer(offset, record.epoch, record.generation, record.base, record.sequence);
    if (guard.counts.takeovers > takeovers) accepted.length = Math.max(record.base - 1, 0);
    if (verdict === 'accept') accepted[record.sequence - 1] = record;
  }
  return accepted.flatMap(({ item }) => (item === null || item.heartbeat ? [] : [item.version]));
}

function eachOnceInOrder(world: World): boolean {
  return world.logs.every((log, partition) => {
    const want = world.source.filter(({ key }) => world.partitionOf(key) === partition);
    const found = effectiveVersions(log);
    return found.length === want.length && want.every(({ version }, i) => found[i] === version);
  });
}

function same(rows: ReadonlyMap<string, number>, want: ReadonlyMap<string, number>): boolean {
  return rows.size === want.size && [...want].every(([key, value]) => rows.get(key) === value);
}
/** One run; the same seed and mutations give the same run. */
export function simulate(seed: number, mutations: readonly Mutation[] = []): RunReport {
  const world = new World(seed, new Set(mutations));
  const want = new Map<string, number>();
  for (const { key, value } of world.source) {
    if (value === null) want.delete(key);
    else want.set(key, value);
  }
  const failures: Failure[] = [];
  let detail = '';
  try {
    world.run();
  } catch (error) {
    return { failures: ['error'], seen: world.seen, detail: String(error) };
  }
  if (!same(world.live.rows, want)) failures.push('live');
  if (world.live.wentBack) failures.push('backward');
  if (world.live.sawHole) failures.push('hole');
  if (world.tailLacked) failures.push('tail');
  if (!eachOnceInOrder(world)) failures.push('effective');
  for (let round = 0; round < 8; round++) {
    const fresh = new Consumer(world);
    for (let p = 0; p < world.logs.length; p++) fresh.consume(p, Number.POSITIVE_INFINITY);
    if (!same(fresh.rows, want)) {
      failures.push('fresh');
      detail += `fresh ${JSON.stringify([...fresh.rows])}\n`;
      break;
    }
    for (const log of world.logs) log.compact(world.random, world.random.integer(log.start, log.end), log.end);
  }
  if (failures.length > 0) {
    detail += `want ${JSON.stringify([...want])}\nlive ${JSON.stringify([...world.live.rows])}\n`;
    detail += world.logs.map((log, partition) => `partition ${partition}:\n${log.text()}`).join('\n');
  }
  return { failures, seen: world.seen, detail };
}
