/** What a guard knows; plain data, kept in markers and checkpoints. */
export interface GuardState {
  /** Of the newest generation seen; 0, 0 before the first record. */
  readonly epoch: number;
  readonly generation: number;
  /** F: the last accepted sequence. */
  readonly sequence: number;
  /** Log offset of the last accepted record; the log's first offset − 1 before the first. */
  readonly offset: number;
  /** Records seen since that one, whatever their verdict. */
  readonly seenSince: number;
  /** This generation had an anomaly: something of it came early and only the next generation brings it again. */
  readonly closed: boolean;
  /** Where to read on. */
  readonly nextOffset: number;
}

/** The state of a consumer that knows nothing but where the log begins. */
export function initialGuardState(firstOffset: number): GuardState {
  return guardStateAt({ epoch: 0, generation: 0, sequence: 0, offset: firstOffset - 1 });
}

/** The state right after a record was accepted: how a checkpoint keeps it. */
export function guardStateAt(record: {
  readonly epoch: number;
  readonly generation: number;
  readonly sequence: number;
  readonly offset: number;
}): GuardState {
  const { epoch, generation, sequence, offset } = record;
  return { epoch, generation, sequence, offset, seenSince: 0, closed: false, nextOffset: offset + 1 };
}

/** `accept`: apply this record. The rest: drop it. */
export type Verdict = 'accept' | 'duplicate' | 'stale' | 'early';

/**
 * Why: `next` the sequence after F · `compacted-gap` a gap that compaction explains · `lower-generation` an older epoch or
 * generation · `not-above` a sequence at or below F · `offset-again` an offset that was offered before · `gap` a gap that nothing
 * explains · strict mode only: `closed` after an anomaly of its generation, `base-beyond` a generation that begins beyond F + 1.
 */
export type GuardRule =
  | 'next'
  | 'compacted-gap'
  | 'lower-generation'
  | 'not-above'
  | 'offset-again'
  | 'gap'
  | 'closed'
  | 'base-beyond';

export interface GuardCounts {
  accept: number;
  duplicate: number;
  stale: number;
  early: number;
  /** Operation fences. */
  skipped: number;
  /** Newer generations taken over. */
  takeovers: number;
  /** Accepted gaps, and the sequences they held. */
  compactedGaps: number;
  compactedSequences: number;
}

/**
 * A consumer's check of one partition's records: each effective message once and in order, whatever readers and compaction
 * did to the log. One object per partition; no allocation per record. Spec: docs/spec/guard.md.
 *
 * 1. A lower (epoch, generation) than ours is stale.
 * 2. A higher one is the new truth: it is taken over and F becomes its base − 1. What this lets through twice, the sinks' versions
 *    refuse.
 * 3. A sequence at or below F is a duplicate.
 * 4. F + 1 is accepted.
 * 5. A gap is accepted only if at least as many log offsets are missing since the last accepted record as sequences are:
 *    compaction removed them. Otherwise the record came early, and the next generation brings it again.
 *
 * Strict mode (tail recovery): no gap is explained by compaction; a generation whose base lies beyond F + 1 is not taken over;
 * after the first anomaly nothing more of that generation counts.
 */
export class SequenceGuard {
  readonly #strict: boolean;
  #epoch = 0;
  #generation = 0;
  #sequence = 0;
  #offset = -1;
  #seenSince = 0;
  #closed = false;
  #nextOffset = 0;
  #lastRule: GuardRule = 'next';
  #openGapSince = -1;
  #openGapCount = 0;
  /** Live: read it for metrics, copy it to keep it. */
  readonly counts: Readonly<GuardCounts>;
  readonly #counts: GuardCounts = {
    accept: 0,
    duplicate: 0,
    stale: 0,
    early: 0,
    skipped: 0,
    takeovers: 0,
    compactedGaps: 0,
    compactedSequences: 0,
  };

  constructor(state: GuardState, options: { readonly strict?: boolean } = {}) {
    this.#strict = options.strict ?? false;
    this.counts = this.#counts;
    this.restore(state);
  }

  /** Judges the record at `offset`. Offsets must rise from call to call, shared with `skip`. */
  offer(offset: number, epoch: number, generation: number, base: number, sequence: number): Verdict {
    if (offset < this.#nextOffset) return this.#verdict('duplicate', 'offset-again');
    this.#nextOffset = offset + 1;
    const missing = offset - this.#offset - 1 - this.#seenSince;
    this.#seenSince++;
    if (epoch !== this.#epoch || generation !== this.#generation) {
      if (epoch < this.#epoch || (epoch === this.#epoch && generation < this.#generation)) {
        return this.#verdict('stale', 'lower-generation');
      }
      if (this.#strict && base > this.#sequence + 1) return this.#early(offset, 'base-beyond');
      this.#takeOver(epoch, generation, base);
    }
    if (this.#strict && this.#closed) return this.#early(offset, 'closed');
    if (sequence <= this.#sequence) return this.#verdict('duplicate', 'not-above');
    const gap = sequence - this.#sequence - 1;
    if (gap > 0) {
      if (this.#strict || gap > missing) return this.#early(offset, 'gap');
      this.#counts.compactedGaps++;
      this.#counts.compactedSequences += gap;
    }
    this.#sequence = sequence;
    this.#offset = offset;
    this.#seenSince = 0;
    return this.#verdict('accept', gap > 0 ? 'compacted-gap' : 'next');
  }

  /** Passes a record that has no sequence (an operation fence): seen, and nothing else. */
  skip(offset: number): void {
    if (offset < this.#nextOffset) return;
    this.#nextOffset = offset + 1;
    this.#seenSince++;
    this.#counts.skipped++;
  }

  /** The rule behind the last verdict. */
  get lastRule(): GuardRule {
    return this.#lastRule;
  }

  /** F: the last accepted sequence. */
  get sequence(): number {
    return this.#sequence;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get generation(): number {
    return this.#generation;
  }

  /** True while an anomaly of the present generation waits for the next generation. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Offset of the first early record of a gap that is still open, or null. Alarm when it stays: the next generation should
   * close it within moments. After a restore it is the last accepted offset + 1.
   */
  get openGapSince(): number | null {
    return this.#openGapSince < 0 ? null : this.#openGapSince;
  }

  /** Early records dropped in the gap that is still open. */
  get openGapCount(): number {
    return this.#openGapCount;
  }

  state(): GuardState {
    return {
      epoch: this.#epoch,
      generation: this.#generation,
      sequence: this.#sequence,
      offset: this.#offset,
      seenSince: this.#seenSince,
      closed: this.#closed,
      nextOffset: this.#nextOffset,
    };
  }

  /** Goes back (or on) to a state; the counts stay. */
  restore(state: GuardState): void {
    this.#epoch = state.epoch;
    this.#generation = state.generation;
    this.#sequence = state.sequence;
    this.#offset = state.offset;
    this.#seenSince = state.seenSince;
    this.#closed = state.closed;
    this.#nextOffset = state.nextOffset;
    this.#openGapSince = state.closed ? state.offset + 1 : -1;
    this.#openGapCount = 0;
  }

  #takeOver(epoch: number, generation: number, base: number): void {
    this.#epoch = epoch;
    this.#generation = generation;
    this.#sequence = base - 1;
    this.#closed = false;
    this.#openGapSince = -1;
    this.#openGapCount = 0;
    this.#counts.takeovers++;
  }

  #early(offset: number, rule: GuardRule): Verdict {
    this.#closed = true;
    if (this.#openGapSince < 0) this.#openGapSince = offset;
    this.#openGapCount++;
    return this.#verdict('early', rule);
  }

  #verdict(verdict: Verdict, rule: GuardRule): Verdict {
    this.#counts[verdict]++;
    this.#lastRule = rule;
    return verdict;
  }
}
