import { type ChangeId, compareBinlogPositions, coreErrors, type SourcePosition } from '@mysync/core';
import { Ring } from './ring.ts';

/** A place between transactions, and the transaction counter there. */
export interface TransactionEnd {
  readonly position: SourcePosition;
  readonly transactionCounter: number;
}

/** The guard state, log offset and change of one stored message: what a checkpoint keeps of a partition. */
export interface PartitionMark {
  readonly epoch: number;
  readonly generation: number;
  readonly sequence: number;
  readonly offset: number;
  readonly change: ChangeId;
}

export interface CheckpointTrackerOptions {
  /** Of this reader: that of every message put. */
  readonly epoch: number;
  /** Where reading begins: the loaded checkpoint's. */
  readonly start: TransactionEnd;
  /** The loaded checkpoint's partitions. */
  readonly covered: readonly PartitionMark[];
  /** What tail recovery found; equal to `covered` where the tail was empty. */
  readonly frontier: readonly PartitionMark[];
  /** Most transaction ends kept apart; neighbours are merged beyond it. Default 4096. */
  readonly maxGroups?: number;
}

/** What the window tells of a batch that its base moved over. */
export interface AckedRun {
  readonly generation: number;
  readonly firstSequence: number;
  readonly count: number;
  readonly baseOffset: number;
}

/** What may be saved: everything up to `end` is acked, in every partition. */
export interface CheckpointProgress {
  readonly end: TransactionEnd;
  readonly partitions: readonly PartitionMark[];
}

/** Neighbouring transactions that count as one: complete when all their messages are acked. */
interface Group {
  end: TransactionEnd | null;
  /** A `commit` is among what it holds. */
  isChange: boolean;
  /** Its marks that are not acked. */
  outstanding: number;
  transactions: number;
}

/** The last message that a group put into a partition. */
interface Mark {
  group: number;
  sequence: number;
  transaction: ChangeId;
  ordinal: number;
  generation: number;
  /** -1 until acked. */
  offset: number;
}

interface Lane {
  /** Oldest first, at most one per group. */
  readonly marks: Ring<Mark>;
  /** Of `marks`, how many from the head are acked. */
  acked: number;
  /** Of the newest message that surely lies at or before the end: the checkpoint's. */
  covered: PartitionMark;
  /** Newer than `covered`, acked, of a complete group; but its change may lie beyond the end (see 3). */
  candidate: PartitionMark | null;
}

/**
 * Finds the newest transaction end for which every message is acked, contiguous over all partitions.
 *
 * 1. `end` moves only to a transaction's end (or a keepalive's position) all of whose messages, and all before it in every partition,
 *    the windows' bases have moved over. It never goes back.
 * 2. A partition's mark is that of the last message of the transactions up to `end`, not of the last message acked: the log read on
 *    from there then holds every message published beyond the checkpoint, none is missing from it (ADR 0020).
 * 3. A heartbeat names the change put before it, which can lie beyond `end` while a stretch is read again; and the frontier
 *    found by tail recovery lies beyond it at first. Such a mark waits until `end` has passed its change.
 * 4. At most `maxGroups` groups and one mark per group and partition are kept: neighbours are merged pairwise when there are more, and
 *    the ends in between are forgotten, which delays a checkpoint and never falsifies it.
 *
 * Cost: constant per message put, per transaction one mark for each partition touched, amortised.
 */
export class CheckpointTracker {
  readonly #epoch: number;
  readonly #maxGroups: number;
  readonly #lanes: readonly Lane[];
  readonly #groups = new Ring<Group>();
  /** Number of the first group of the ring. */
  #headGroup = 0;
  /** Transactions that one group may hold: rises by merging, 1 again once nothing is outstanding. */
  #stride = 1;
  #end: TransactionEnd;
  #revision = 0;
  #changes = 0;

  constructor(options: CheckpointTrackerOptions) {
    this.#epoch = options.epoch;
    this.#maxGroups = Math.max(options.maxGroups ?? 4096, 2);
    this.#end = options.start;
    this.#lanes = options.covered.map((covered, partition) => ({
      marks: new Ring<Mark>(),
      acked: 0,
      covered,
      candidate: options.frontier[partition] ?? null,
    }));
  }

  /** Rises whenever `end` moved: nothing new to save while it stays. */
  get revision(): number {
    return this.#revision;
  }

  /** Rises whenever `end` moved over a commit; while it stays, nothing but keepalives (heartbeats among them) moved `end`. */
  get changes(): number {
    return this.#changes;
  }

  /** Groups that are not complete; 0 when the checkpoint is where reading is. */
  get outstanding(): number {
    return this.#groups.length;
  }

  get end(): TransactionEnd {
    return this.#end;
  }

  /**
   * A message entered the window of a partition. `transaction` and `ordinal` name its change: of a heartbeat, the last change put
   * into that partition. Call it in the order of the source, before the message can be acked.
   */
  put(partition: number, sequence: number, transaction: ChangeId, ordinal: number): void {
    const lane = this.#lane(partition);
    const number = this.#openGroup();
    const last = lane.marks.length === 0 ? undefined : lane.marks.at(lane.marks.length - 1);
    if (last === undefined || last.group !== number) {
      this.#trim(lane);
      lane.marks.push({ group: number, sequence, transaction, ordinal, generation: 0, offset: -1 });
      this.#group(number).outstanding++;
      return;
    }
    if (last.offset >= 0) {
      // Flushed and acked before the transaction ended: it has one more message to wait for.
      lane.acked--;
      last.offset = -1;
      this.#group(number).outstanding++;
    }
    last.sequence = sequence;
    last.transaction = transaction;
    last.ordinal = ordinal;
  }

  /** The transaction ended: all its messages were put. */
  commit(end: TransactionEnd): void {
    this.#close(end, true);
  }

  /** The position moved outside of any transaction, and nothing was put for it but heartbeats. */
  keepalive(end: TransactionEnd): void {
    this.#close(end, false);
  }

  /** The base of the partition's window moved over a batch. Call it for every batch passed, in order. */
  acked(partition: number, run: AckedRun): void {
    const lane = this.#lane(partition);
    const beyond = run.firstSequence + run.count;
    while (lane.acked < lane.marks.length) {
      const mark = lane.marks.at(lane.acked);
      if (mark.sequence >= beyond) break;
      mark.offset = run.baseOffset + (mark.sequence - run.firstSequence);
      mark.generation = run.generation;
      lane.acked++;
      this.#group(mark.group).outstanding--;
    }
    this.#advance();
  }

  /** What may be saved now. */
  current(): CheckpointProgress {
    const partitions: PartitionMark[] = [];
    for (const lane of this.#lanes) {
      this.#trim(lane);
      if (lane.candidate !== null && this.#passed(lane.candidate.change)) {
        lane.covered = lane.candidate;
        lane.candidate = null;
      }
      partitions.push(lane.covered);
    }
    return { end: this.#end, partitions };
  }

  #close(end: TransactionEnd, isChange: boolean): void {
    const count = this.#groups.length;
    const last = count === 0 ? undefined : this.#groups.at(count - 1);
    if (last === undefined) {
      this.#moveTo(end, isChange);
      return;
    }
    if (last.end === null) last.transactions++;
    last.end = end;
    if (isChange) last.isChange = true;
    this.#advance();
  }

  /** A change of a transaction lies behind its begin; ordinal 0 (a snapshot's row) names the place itself. */
  #passed(change: ChangeId): boolean {
    if (change.file === '') return true;
    if (this.#end.position.file === '') return false;
    const distance = compareBinlogPositions(this.#end.position, change);
    return change.ordinal === 0 ? distance >= 0 : distance > 0;
  }

  #lane(partition: number): Lane {
    const lane = this.#lanes[partition];
    if (lane === undefined) throw coreErrors.INTERNAL({ message: `there is no partition ${partition}` });
    return lane;
  }

  #group(number: number): Group {
    return this.#groups.at(number - this.#headGroup);
  }

  /** Number of the group that takes the next message. */
  #openGroup(): number {
    const count = this.#groups.length;
    if (count > 0) {
      const last = this.#groups.at(count - 1);
      if (last.end === null || last.transactions < this.#stride) {
        last.end = null;
        return this.#headGroup + count - 1;
      }
      if (count >= this.#maxGroups) {
        this.#merge();
        return this.#openGroup();
      }
    }
    this.#groups.push({ end: null, isChange: false, outstanding: 0, transactions: 0 });
    return this.#headGroup + this.#groups.length - 1;
  }

  #advance(): void {
    while (this.#groups.length > 0) {
      const head = this.#groups.at(0);
      if (head.end === null || head.outstanding > 0) return;
      this.#groups.shift();
      this.#headGroup++;
      this.#moveTo(head.end, head.isChange);
    }
    this.#stride = 1;
  }

  #moveTo(end: TransactionEnd, isChange: boolean): void {
    this.#end = end;
    this.#revision++;
    if (isChange) this.#changes++;
  }

  /** Takes the marks of complete groups off the lane. */
  #trim(lane: Lane): void {
    let newest: Mark | null = null;
    while (lane.marks.length > 0 && lane.marks.at(0).group < this.#headGroup) {
      newest = lane.marks.shift();
      lane.acked--;
    }
    if (newest === null) return;
    const { sequence, generation, offset, ordinal } = newest;
    const mark = { epoch: this.#epoch, generation, sequence, offset, change: { ...newest.transaction, ordinal } };
    if (this.#passed(mark.change)) {
      lane.covered = mark;
      lane.candidate = null;
    } else {
      lane.candidate = mark;
    }
  }

  /** Makes one group of each pair of neighbours. Called between transactions, when no group is open. */
  #merge(): void {
    for (const lane of this.#lanes) this.#trim(lane);
    const before = this.#groups.length;
    const merged: Group[] = [];
    for (let i = 0; i < before; i += 2) {
      const first = this.#groups.at(i);
      const second = i + 1 < before ? this.#groups.at(i + 1) : null;
      const transactions = first.transactions + (second?.transactions ?? 0);
      const isChange = first.isChange || second?.isChange === true;
      merged.push({ end: second?.end ?? first.end, isChange, outstanding: 0, transactions });
    }
    this.#groups.clear();
    for (const group of merged) this.#groups.push(group);
    for (const lane of this.#lanes) {
      const kept: Mark[] = [];
      while (lane.marks.length > 0) {
        const mark = lane.marks.shift();
        mark.group = this.#headGroup + Math.floor((mark.group - this.#headGroup) / 2);
        if (kept.at(-1)?.group === mark.group) kept.pop();
        kept.push(mark);
      }
      lane.acked = 0;
      for (const mark of kept) {
        lane.marks.push(mark);
        if (mark.offset >= 0) lane.acked++;
        else this.#group(mark.group).outstanding++;
      }
    }
    this.#stride *= 2;
  }
}
