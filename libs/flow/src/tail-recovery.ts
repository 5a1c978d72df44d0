import type { ChangeId, Delivery } from '@mysync/core';
import type { PartitionMark } from './checkpoint-tracker.ts';
import { flowErrors } from './errors.ts';
import { type GuardCounts, type GuardRule, guardStateAt, SequenceGuard, type Verdict } from './sequence-guard.ts';

export type DeliveryNumbers = Pick<Delivery, 'epoch' | 'generation' | 'base' | 'sequence'>;

/** A record of the tail: a message with its numbers, or an operation fence. */
export type TailRecord =
  | { readonly kind: 'message'; readonly offset: number; readonly delivery: DeliveryNumbers; readonly change: ChangeId }
  | { readonly kind: 'fence'; readonly offset: number; readonly epoch: number };

export interface TailResult {
  /** The last message that counts: publish what lies beyond its change, from `sequence` + 1 on. */
  readonly frontier: PartitionMark;
  /** The highest epoch met, in the checkpoint, messages and fences: the new one is above those of all partitions. */
  readonly highestEpoch: number;
  /** The first record that did not follow in its generation; null when the tail is whole. Usual after a crash. */
  readonly anomaly: { readonly offset: number; readonly rule: GuardRule } | null;
  readonly counts: Readonly<GuardCounts>;
}

/**
 * Runs one partition's tail, from the checkpoint's mark to the fence, through the guard in strict mode and finds the frontier.
 *
 * 1. The frontier is the guard's F at the fence. What was stored beyond an anomaly is published again, under a higher epoch.
 * 2. A generation that begins below F takes F back to its base − 1 (it was rewound), so the last `remember` messages that count
 *    are remembered with their changes. A rewind goes back no further than the window of its reader was large.
 * 3. No generation begins below the checkpoint's sequence, since that was acked. One that does is an error, never guessed at.
 */
export class TailRecovery {
  readonly #start: PartitionMark;
  readonly #guard: SequenceGuard;
  readonly #remember: number;
  /** Marks of consecutive sequences up to F: the start's and those after it, less the forgotten ones. */
  #marks: PartitionMark[];
  #highestEpoch: number;
  #anomaly: TailResult['anomaly'] = null;

  /** `remember`: messages; at least the largest window that any reader of this log had. Default 500,000. */
  constructor(start: PartitionMark, options: { readonly remember?: number } = {}) {
    this.#start = start;
    this.#marks = [start];
    this.#remember = options.remember ?? 500_000;
    this.#guard = new SequenceGuard(guardStateAt(start), { strict: true });
    this.#highestEpoch = start.epoch;
  }

  /** The next record in offset order. `change` is asked for only if the record counts. Throws FLOW_TAIL_INVALID. */
  offer(offset: number, delivery: DeliveryNumbers, change: () => ChangeId): Verdict {
    const { epoch, generation, base, sequence } = delivery;
    const takeovers = this.#guard.counts.takeovers;
    const verdict = this.#guard.offer(offset, epoch, generation, base, sequence);
    this.#highestEpoch = Math.max(this.#highestEpoch, epoch);
    if (this.#guard.counts.takeovers > takeovers) this.#goBack(offset, delivery);
    if (verdict === 'accept') this.#note({ epoch, generation, sequence, offset, change: change() });
    if (verdict === 'early' && this.#anomaly === null) this.#anomaly = { offset, rule: this.#guard.lastRule };
    return verdict;
  }

  /** An operation fence (ours or an older one): seen, not judged. `epoch` 0 when it carries none. */
  skip(offset: number, epoch = 0): void {
    this.#guard.skip(offset);
    this.#highestEpoch = Math.max(this.#highestEpoch, epoch);
  }

  result(): TailResult {
    return {
      frontier: this.#frontier(),
      highestEpoch: this.#highestEpoch,
      anomaly: this.#anomaly,
      counts: { ...this.#guard.counts },
    };
  }

  #frontier(): PartitionMark {
    return this.#marks.at(-1) ?? this.#start;
  }

  #note(mark: PartitionMark): void {
    // Half of it goes at a time, so that forgetting costs nothing per message; F and `remember` more always stay.
    if (this.#marks.length > 2 * this.#remember) this.#marks = this.#marks.slice(-this.#remember);
    this.#marks.push(mark);
  }

  #goBack(offset: number, delivery: DeliveryNumbers): void {
    const back = this.#frontier().sequence - (delivery.base - 1);
    if (back <= 0) return;
    if (back < this.#marks.length) {
      this.#marks.length -= back;
      return;
    }
    const begins = `epoch ${delivery.epoch}, generation ${delivery.generation} begins at sequence ${delivery.base}`;
    const acked = `but ${this.#start.sequence} was acked before`;
    const forgotten = `further back than the ${this.#remember} messages remembered`;
    throw flowErrors.FLOW_TAIL_INVALID({
      message: `${begins}, ${delivery.base - 1 < this.#start.sequence ? acked : forgotten}`,
      where: { offset },
    });
  }
}

/** The frontier of one partition: `records` are those after the checkpoint's offset and before the fence, in order. */
export function recoverTail(
  start: PartitionMark,
  records: Iterable<TailRecord>,
  options: { readonly remember?: number } = {},
): TailResult {
  const recovery = new TailRecovery(start, options);
  for (const record of records) {
    if (record.kind === 'fence') recovery.skip(record.offset, record.epoch);
    else recovery.offer(record.offset, record.delivery, () => record.change);
  }
  return recovery.result();
}
