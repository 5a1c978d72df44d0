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
import { AckWindow, type Batch } from './ack-window.ts';
import { CheckpointTracker, type PartitionMark, type TransactionEnd } from './checkpoint-tracker.ts';
import { NaiveWindow, type WindowLike } from './naive-window.ts';
import { SeededRandom } from './random.ts';
import { type GuardState, guardStateAt, initialGuardState, SequenceGuard, type Verdict } from './sequence-guard.ts';
import { recoverTail, type TailRecord } from './tail-recovery.ts';

export const MUTATIONS = {
  nogen: 'no generation: a rewind sends under the old number',
  nobase: 'a generation does not say where it begins',
  norestart: 'a new generation does not set the guard back to its base',
  noversion: 'sinks keep no version per key',
  nobudget: 'gaps are never explained by compaction',
  anygap: 'gaps are always accepted',
  earlyack: 'the base moves over a batch although one that was sent before its ack is still open',
  laxtail: 'recovery takes what follows an anomaly in the same generation',
  losttomb: 'tombstones are purged before a lagging consumer has read them',
  late: 'a batch given up by a rewind may still be stored later (producer epoch not raised)',
  zombie: 'batches of a dead reader may still be stored after the new one has read the tail (no fence)',
  arrival: 'the order in which acks arrive counts, not the order as stored',
  eagercheckpoint: 'a checkpoint is saved at the last transaction read, acked or not',
  keepfrontier: 'the frontier does not go back with a generation that begins below it',
  fencecounts: 'fences are not counted as seen',
} as const;
export type Mutation = keyof typeof MUTATIONS;

/**
 * `live`, `fresh`: that consumer's sink differs from the table · `backward`: a key of the live sink went back · `hole`: the live
 * consumer accepted a gap of more sequences than offsets were absent · `error`: something threw.
 */
export type Failure = 'live' | 'backward' | 'fresh' | 'hole' | 'error';

export interface RunReport {
  readonly failures: readonly Failure[];
  /** What happened, to see that the runs reach what they are for. */
  readonly seen: Seen;
  readonly detail: string;
}

export interface Seen {
  rewinds: number;
  crashes: number;
  anomalies: number;
  earlyRecords: number;
  compactedGaps: number;
  backedFrontiers: number;
}

interface Change {
  readonly key: string;
  /** null deletes. */
  readonly value: number | null;
  readonly transaction: ChangeId;
  readonly ordinal: number;
  /** Place in the source, from 1. */
  readonly version: number;
}

interface Item extends Change {
  readonly heartbeat: boolean;
}

interface LogRecord {
  readonly key: string;
  readonly value: number | null;
  readonly epoch: number;
  readonly generation: number;
  readonly base: number;
  /** 0: a fence. */
  readonly sequence: number;
  readonly item: Item | null;
}

interface Flying {
  readonly partition: number;
  readonly batch: Batch<Item>;
  readonly records: readonly LogRecord[];
  state: 'sent' | 'answered' | 'failed';
  offset: number;
}

/** One partition's log. */
class Log {
  readonly start: number;
  #records: (LogRecord | null)[] = [];
  /** Offsets from here on are too young to be compacted. */
  protectedFrom: number;

  constructor(start: number) {
    this.start = start;
    this.protectedFrom = start;
  }

  get end(): number {
    return this.start + this.#records.length;
  }

  append(records: readonly LogRecord[]): number {
    const base = this.end;
    this.#records.push(...records);
    return base;
  }

  at(offset: number): LogRecord | null {
    return this.#records[offset - this.start] ?? null;
  }

  compact(random: SeededRandom, bound: number, purgeBelow: number): void {
    const last = new Map<string, number>();
    for (let offset = this.start; offset < bound; offset++) {
      const record = this.at(offset);
      if (record !== null) last.set(record.key, offset);
    }
    for (let offset = this.start; offset < bound; offset++) {
      const record = this.at(offset);
      if (record === null) continue;
      const purged = record.value === null && offset < purgeBelow && random.chance(0.5);
      if (last.get(record.key) !== offset || purged) this.#records[offset - this.start] = null;
    }
  }

  text(): string {
    const lines: string[] = [];
    for (let offset = this.start; offset < this.end; offset++) {
      const r = this.at(offset);
      if (r !== null) {
        lines.push(`${offset}: (${r.epoch},${r.generation}) base ${r.base} seq ${r.sequence} ${r.key}=${r.value}`);
      }
    }
    return lines.join('\n');
  }
}

interface Commit {
  readonly next: readonly number[];
  readonly states: readonly GuardState[];
  readonly absent: readonly number[];
}

/** A sink and its guards. */
class Consumer {
  readonly guards: SequenceGuard[];
  readonly next: number[];
  readonly rows = new Map<string, number>();
  readonly #versions = new Map<string, number>();
  readonly #highest = new Map<string, number>();
  readonly #world: World;
  /** Per partition: offsets passed since the last accepted record at which there was none. */
  readonly #absent: number[];
  wentBack = false;
  sawHole = false;
  #commit: Commit;

  constructor(world: World) {
    this.#world = world;
    this.guards = world.logs.map((log) => new SequenceGuard(initialGuardState(log.start)));
    this.next = world.logs.map((log) => log.start);
    this.#absent = world.logs.map(() => 0);
    this.#commit = this.#now();
  }

  committed(partition: number): number {
    return this.#commit.next[partition] ?? 0;
  }

  commit(): void {
    this.#commit = this.#now();
  }

  crash(): void {
    for (const [partition, state] of this.#commit.states.entries()) {
      this.guards[partition]?.restore(state);
      this.next[partition] = this.committed(partition);
      this.#absent[partition] = this.#commit.absent[partition] ?? 0;
    }
  }

  consume(partition: number, atMost: number): void {
    const log = this.#world.logs[partition] as Log;
    const guard = this.guards[partition] as SequenceGuard;
    let left = atMost;
    let absent = this.#absent[partition] as number;
    let offset = this.next[partition] as number;
    for (; offset < log.end && left > 0; offset++) {
      const record = log.at(offset);
      if (record === null) {
        absent++;
        continue;
      }
      left--;
      const explained = guard.counts.compactedSequences;
      if (this.#world.offer(guard, offset, record) !== 'accept') continue;
      if (guard.counts.compactedSequences - explained > absent) this.sawHole = true;
      absent = 0;
      if (record.item !== null && !record.item.heartbeat) this.#apply(record.item);
    }
    this.#absent[partition] = absent;
    this.next[partition] = offset;
  }

  #now(): Commit {
    const states = this.guards.map((guard) => guard.state());
    return { next: [...this.next], states, absent: [...this.#absent] };
  }

  #apply(change: Change): void {
    if (change.version < (this.#versions.get(change.key) ?? 0) && !this.#world.has('noversion')) return;
    this.#versions.set(change.key, change.version);
    if (change.value === null) this.rows.delete(change.key);
    else this.rows.set(change.key, change.value);
    if (change.version < (this.#highest.get(change.key) ?? 0)) this.wentBack = true;
    else this.#highest.set(change.key, change.version);
  }
}

interface SavedCheckpoint {
  readonly epoch: number;
  readonly end: TransactionEnd;
  readonly marks: readonly PartitionMark[];
}

const NO_CHANGE: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };
const FILE = 'binlog.000001';

class World {
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
  /** Batches that nothing keeps from being stored late: only under a mutation. */
  readonly #zombies: { readonly partition: number; readonly records: readonly LogRecord[] }[] = [];
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
    for (const zombie of this.#zombies) this.logs[zombie.partition]?.append(zombie.records);
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
      const start = this.#checkpoint.marks[partition] as PartitionMark;
      const result = this.#recover(start, log, fences[partition] as number);
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
        reader.die(this.#zombies);
        return false;
      }
      const dice = random.next();
      if (dice < 0.3) reader.send();
      else if (dice < 0.55) reader.store();
      else if (dice < 0.8) {
        if (reader.answer(this.#zombies) && random.chance(0.5)) {
          this.#checkpoint = { epoch, ...reader.progress() };
        }
      } else if (dice < 0.84 && this.#zombies.length > 0) {
        const zombie = this.#zombies.pop();
        if (zombie !== undefined) this.logs[zombie.partition]?.append(zombie.records);
      } else if (dice < 0.92) this.live.consume(random.integer(0, this.logs.length - 1), random.integer(1, 5));
      else if (dice < 0.94) this.live.commit();
      else if (dice < 0.95) this.live.crash();
      if (dice >= 0.95 || this.#eager) this.#compact();
    }
    return true;
  }

  #recover(start: PartitionMark, log: Log, fence: number): ReturnType<typeof recoverTail> {
    const records: TailRecord[] = [];
    for (let offset = start.offset + 1; offset < fence; offset++) {
      const record = log.at(offset);
      if (record === null) continue;
      if (record.item === null) records.push({ kind: 'fence', offset, epoch: record.epoch });
      else records.push({ kind: 'message', offset, delivery: record, change: changeOf(record.item) });
    }
    const result = recoverTail(start, records);
    if (this.has('laxtail') || this.has('nobase') || this.has('anygap')) {
      return { ...result, frontier: bentFrontier(start, records, this) };
    }
    if (result.frontier.sequence < highestAccepted(start, records).sequence) {
      this.seen.backedFrontiers++;
      if (this.has('keepfrontier')) return { ...result, frontier: highestAccepted(start, records) };
    }
    return result;
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

const ZERO = { epoch: 0, generation: 0, sequence: 0 };
const FENCE: LogRecord = { key: 'fence', value: 1, epoch: 0, generation: 0, base: 0, sequence: 0, item: null };

function endAt(offset: number): TransactionEnd {
  return { position: { file: FILE, offset, gtidSet: '' }, transactionCounter: offset / 100 };
}

function changeOf(item: Change): ChangeId {
  return { ...item.transaction, ordinal: item.ordinal };
}

/** True when the change lies at or before the frontier's. */
function published(change: Change, frontier: ChangeId): boolean {
  if (frontier.file === '') return false;
  const { offset } = change.transaction;
  return offset < frontier.offset || (offset === frontier.offset && change.ordinal <= frontier.ordinal);
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

/** One life of a reader. */
class Reader {
  readonly #world: World;
  readonly #epoch: number;
  readonly #frontier: readonly PartitionMark[];
  readonly #windows: readonly WindowLike<Item>[];
  readonly #tracker: CheckpointTracker;
  readonly #lastChange: (ChangeId & { ordinal: number })[];
  #flying: Flying[] = [];
  #next: number;
  #end: TransactionEnd;
  #heartbeats: number;
  #arrivals = 0;

  constructor(
    world: World,
    epoch: number,
    checkpoint: SavedCheckpoint,
    frontier: readonly PartitionMark[],
    fences: readonly number[],
  ) {
    this.#world = world;
    this.#epoch = epoch;
    this.#frontier = frontier;
    this.#windows = frontier.map((mark, partition) => {
      const limits = { maxItems: 12, maxBytes: 100, maxOpen: 4 };
      const options = { ...limits, firstSequence: mark.sequence + 1, lastOffset: fences[partition] ?? -1 };
      return world.has('earlyack')
        ? new NaiveWindow<Item>({ ...options, earlyAck: true })
        : new AckWindow<Item>(options);
    });
    const { end, marks } = checkpoint;
    this.#end = end;
    this.#tracker = new CheckpointTracker({ epoch, start: end, covered: marks, frontier, maxGroups: 4 });
    this.#lastChange = frontier.map((mark) => mark.change);
    const next = world.source.findIndex((change) => change.transaction.offset >= end.position.offset);
    this.#next = next < 0 ? world.source.length : next;
    this.#heartbeats = world.random.integer(0, 3);
  }

  finished(): boolean {
    return this.#next === this.#world.source.length && this.#windows.every((window) => window.length === 0);
  }

  progress(): { readonly end: TransactionEnd; readonly marks: readonly PartitionMark[] } {
    const { end, partitions } = this.#tracker.current();
    return { end: this.#world.has('eagercheckpoint') ? this.#end : end, marks: partitions };
  }

  /** Reads a little of the source into the windows, then sends one batch. */
  send(): void {
    const { random } = this.#world;
    for (let n = random.integer(1, 4); n > 0 && this.#next < this.#world.source.length; n--) {
      if (!this.#windows.every((window) => window.canPut())) break;
      this.#read(this.#world.source[this.#next++] as Change);
    }
    const partition = random.integer(0, this.#windows.length - 1);
    if (this.#heartbeats > 0 && random.chance(0.1)) this.#heartbeat(partition);
    const batch = this.#windows[partition]?.take(random.integer(1, 3), 100) ?? null;
    if (batch === null) return;
    const generation = this.#world.has('nogen') ? 0 : batch.generation;
    const numbers = { epoch: this.#epoch, generation, base: batch.base };
    const records = batch.items.map((item, i) => {
      return { key: item.key, value: item.value, ...numbers, sequence: batch.firstSequence + i, item };
    });
    this.#flying.push({ partition, batch, records, state: 'sent', offset: -1 });
  }

  /** The broker stores a batch, or loses it; the answer may be lost. */
  store(): void {
    const { random } = this.#world;
    if (this.#flying.length === 0) return;
    const flying = random.pick(this.#flying);
    if (flying.state !== 'sent') return;
    if (random.chance(0.8)) {
      flying.offset = this.#world.logs[flying.partition]?.append(flying.records) ?? -1;
      flying.state = random.chance(0.9) ? 'answered' : 'failed';
    } else {
      flying.state = 'failed';
    }
  }

  /** An answer arrives. True when a base moved. */
  answer(zombies: { partition: number; records: readonly LogRecord[] }[]): boolean {
    const { random } = this.#world;
    if (this.#flying.length === 0) return false;
    const flying = random.pick(this.#flying);
    if (flying.state === 'sent') return false;
    const window = this.#windows[flying.partition] as WindowLike<Item>;
    this.#flying.splice(this.#flying.indexOf(flying), 1);
    const offset = this.#world.has('arrival') ? this.#arrivals++ + 1000 * (flying.batch.id + 1) : flying.offset;
    const { id } = flying.batch;
    const outcome = flying.state === 'failed' ? window.failed(id) : window.acked(id, offset);
    if (outcome.kind === 'advanced') {
      for (const run of outcome.passed) this.#tracker.acked(flying.partition, run);
      return true;
    }
    if (outcome.kind === 'rewind') {
      if (outcome.reason === 'log-shrank') throw new Error('a batch was stored below what was passed');
      this.#world.seen.rewinds++;
      if (this.#world.has('late')) zombies.push(...this.#flying.filter(({ state }) => state === 'sent'));
      this.#flying = [];
      for (const each of this.#windows) each.rewind();
    }
    return false;
  }

  /** What was on its way lands now, or never; unfenced, later. */
  die(zombies: { partition: number; records: readonly LogRecord[] }[]): void {
    const { random } = this.#world;
    for (const flying of random.shuffle(this.#flying)) {
      if (flying.state !== 'sent') continue;
      if (random.chance(0.5)) this.#world.logs[flying.partition]?.append(flying.records);
      else if (this.#world.has('zombie')) zombies.push(flying);
    }
  }

  #read(change: Change): void {
    const partition = this.#world.partitionOf(change.key);
    const { transaction, ordinal } = change;
    if (!published(change, (this.#frontier[partition] as PartitionMark).change)) {
      const sequence = this.#windows[partition]?.put({ ...change, heartbeat: false }, 1) ?? 0;
      this.#tracker.put(partition, sequence, transaction, ordinal);
      this.#lastChange[partition] = changeOf(change);
    }
    const following = this.#world.source[this.#next];
    if (following === undefined || following.transaction.offset !== transaction.offset) {
      this.#end = endAt(transaction.offset + 50);
      this.#tracker.commit(this.#end);
    }
  }

  #heartbeat(partition: number): void {
    const window = this.#windows[partition];
    if (!window?.canPut()) return;
    this.#heartbeats--;
    const transaction = this.#lastChange[partition] as ChangeId;
    const { ordinal } = transaction;
    const item = { key: 'heartbeat', value: this.#heartbeats, transaction, ordinal, version: 0, heartbeat: true };
    this.#tracker.put(partition, window.put(item, 1), transaction, ordinal);
    if (this.#atBoundary()) this.#tracker.keepalive(this.#end);
  }

  #atBoundary(): boolean {
    const last = this.#world.source[this.#next - 1];
    return last === undefined || last.transaction.offset < this.#end.position.offset;
  }
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
