/** What the model's parts share: the log, its records, the mutations. */
import type { ChangeId } from '@mysync/core';
import type { PartitionMark, TransactionEnd } from './checkpoint-tracker.ts';
import type { SeededRandom } from './random.ts';
import type { SequenceGuard, Verdict } from './sequence-guard.ts';

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
  ackedmarks: 'a checkpoint keeps the marks of the last messages acked, not of those up to its position',
} as const;
export type Mutation = keyof typeof MUTATIONS;

export interface Seen {
  rewinds: number;
  crashes: number;
  anomalies: number;
  earlyRecords: number;
  compactedGaps: number;
  backedFrontiers: number;
}

export interface Change {
  readonly key: string;
  /** null deletes. */
  readonly value: number | null;
  readonly transaction: ChangeId;
  readonly ordinal: number;
  /** Place in the source, from 1. */
  readonly version: number;
}

export interface Item extends Change {
  readonly heartbeat: boolean;
}

export interface LogRecord {
  readonly key: string;
  readonly value: number | null;
  readonly epoch: number;
  readonly generation: number;
  readonly base: number;
  /** 0: a fence. */
  readonly sequence: number;
  readonly item: Item | null;
}

/** What a partition's log, a consumer and a reader see of the run around them. */
export interface Surroundings {
  readonly random: SeededRandom;
  readonly logs: readonly Log[];
  readonly source: readonly Change[];
  readonly seen: Seen;
  /** Batches that nothing keeps from being stored late: only under a mutation. */
  readonly zombies: { readonly partition: number; readonly records: readonly LogRecord[] }[];
  has(mutation: Mutation): boolean;
  partitionOf(key: string): number;
  /** The guard as a consumer uses it; null for a fence. */
  offer(guard: SequenceGuard, offset: number, record: LogRecord): Verdict | null;
}

export interface SavedCheckpoint {
  readonly epoch: number;
  readonly end: TransactionEnd;
  readonly marks: readonly PartitionMark[];
}

export const WINDOW_ITEMS = 12;

export const FILE = 'binlog.000001';

export function endAt(offset: number): TransactionEnd {
  return { position: { file: FILE, offset, gtidSet: '' }, transactionCounter: offset / 100 };
}

export function changeOf(item: Change): ChangeId {
  return { ...item.transaction, ordinal: item.ordinal };
}

/** True when the change lies at or before the frontier's. */
export function published(change: Change, frontier: ChangeId): boolean {
  if (frontier.file === '') return false;
  const { offset } = change.transaction;
  return offset < frontier.offset || (offset === frontier.offset && change.ordinal <= frontier.ordinal);
}
/** One partition's log. */
export class Log {
  readonly start: number;
  readonly #records: (LogRecord | null)[] = [];
  /** Every record ever stored: what the log would be without compaction. */
  readonly history: LogRecord[] = [];
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
    this.history.push(...records);
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
