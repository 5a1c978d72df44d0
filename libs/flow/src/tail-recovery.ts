import { type ChangeId, type Delivery, MAX_WINDOW_MESSAGES } from '@mysync/core';
import type { PartitionMark } from './checkpoint-tracker.ts';
import { flowErrors } from './errors.ts';
import { type GuardCounts, type GuardRule, guardStateAt, SequenceGuard, type Verdict } from './sequence-guard.ts';
import { type TailMark, TailMarks } from './tail-marks.ts';

export type DeliveryNumbers = Pick<Delivery, 'epoch' | 'generation' | 'base' | 'sequence'>;

/** A record of the tail: a message with its numbers, or an operation fence. */
export type TailRecord =
  | { readonly kind: 'message'; readonly offset: number; readonly delivery: DeliveryNumbers; readonly change: ChangeId }
  | { readonly kind: 'fence'; readonly offset: number; readonly epoch: number };

export interface TailResult<Mark extends TailMark = TailMark> {
  /** The last message that counts: publish what lies beyond its change, from `sequence` + 1 on. */
  readonly frontier: Mark;
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
 *    are remembered, by their offsets. A rewind goes back no further than the window of its reader was large (ADR 0212).
 * 3. No generation begins below the checkpoint's sequence, since that was acked. One that does is an error, never guessed at.
 */
export class TailRecovery {
  readonly #start: PartitionMark;
  readonly #guard: SequenceGuard;
  readonly #remember: number;
  readonly #marks: TailMarks;
  #highestEpoch: number;
  #anomaly: TailResult['anomaly'] = null;

  /** `remember`: messages; at least the largest window that any reader of this partition had. Default: the largest there may be. */
  constructor(start: PartitionMark, options: { readonly remember?: number } = {}) {
    this.#start = start;
    this.#remember = options.remember ?? MAX_WINDOW_MESSAGES;
    this.#marks = new TailMarks(start, this.#remember);
    this.#guard = new SequenceGuard(guardStateAt(start), { strict: true });
    this.#highestEpoch = start.epoch;
  }

  /** The next record in offset order. Throws FLOW_TAIL_INVALID. */
  offer(offset: number, delivery: DeliveryNumbers): Verdict {
    const { epoch, generation, base, sequence } = delivery;
    const takeovers = this.#guard.counts.takeovers;
    const verdict = this.#guard.offer(offset, epoch, generation, base, sequence);
    this.#highestEpoch = Math.max(this.#highestEpoch, epoch);
    if (this.#guard.counts.takeovers > takeovers) this.#goBack(offset, delivery);
    if (verdict === 'accept') this.#marks.add(epoch, generation, offset);
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
      frontier: this.#marks.last,
      highestEpoch: this.#highestEpoch,
      anomaly: this.#anomaly,
      counts: { ...this.#guard.counts },
    };
  }

  #goBack(offset: number, delivery: DeliveryNumbers): void {
    const sequence = delivery.base - 1;
    if (sequence >= this.#marks.last.sequence || this.#marks.goBackTo(sequence)) return;
    const begins = `epoch ${delivery.epoch}, generation ${delivery.generation} begins at sequence ${delivery.base}`;
    const acked = `but ${this.#start.sequence} was acked before`;
    const forgotten = `further back than the ${this.#remember} messages remembered`;
    throw flowErrors.FLOW_TAIL_INVALID({
      message: `${begins}, ${sequence < this.#start.sequence ? acked : forgotten}`,
      where: { offset },
    });
  }
}

/** The frontier of one partition: `records` are those after the checkpoint's offset and before the fence, in order. */
export function recoverTail(
  start: PartitionMark,
  records: readonly TailRecord[],
  options: { readonly remember?: number } = {},
): TailResult<PartitionMark> {
  const recovery = new TailRecovery(start, options);
  for (const record of records) {
    if (record.kind === 'fence') recovery.skip(record.offset, record.epoch);
    else recovery.offer(record.offset, record.delivery);
  }
  const result = recovery.result();
  const last = records.find(({ offset }) => offset === result.frontier.offset);
  const { change } = last?.kind === 'message' ? last : start;
  return { ...result, frontier: { ...result.frontier, change } };
}
