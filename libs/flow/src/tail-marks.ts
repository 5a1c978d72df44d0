/** Where a message that counts stands, without its change: that is read again from there where it is wanted. */
export interface TailMark {
  readonly epoch: number;
  readonly generation: number;
  readonly sequence: number;
  readonly offset: number;
}

/** A stretch of consecutive sequences of one generation. */
interface Run {
  readonly from: number;
  readonly epoch: number;
  readonly generation: number;
}

const FIRST_ROOM = 1024;

/**
 * The last messages that count: consecutive sequences, each with its offset.
 *
 * 1. The last one and `remember` before it are there, no more: 8 bytes each, outside of JavaScript's heap.
 * 2. Generations stand once for each run of them, since there are few.
 */
export class TailMarks {
  readonly #remember: number;
  /** The offset of sequence s at s modulo its length. */
  #offsets: Float64Array;
  readonly #runs: Run[];
  #oldest: number;
  #last: number;

  constructor(start: TailMark, remember: number) {
    const { epoch, generation, sequence, offset } = start;
    this.#remember = remember;
    this.#offsets = new Float64Array(Math.min(FIRST_ROOM, remember + 1));
    this.#offsets[sequence % this.#offsets.length] = offset;
    this.#runs = [{ from: sequence, epoch, generation }];
    this.#oldest = sequence;
    this.#last = sequence;
  }

  get last(): TailMark {
    const { epoch, generation } = this.#runs.at(-1) as Run;
    const offset = this.#offsets[this.#last % this.#offsets.length] as number;
    return { epoch, generation, sequence: this.#last, offset };
  }

  /** The message behind the last one. */
  add(epoch: number, generation: number, offset: number): void {
    const held = this.#last - this.#oldest + 1;
    if (held > this.#remember) this.#forgetOldest();
    else if (held === this.#offsets.length) this.#grow();
    this.#last++;
    this.#offsets[this.#last % this.#offsets.length] = offset;
    const run = this.#runs.at(-1) as Run;
    if (run.epoch !== epoch || run.generation !== generation) this.#runs.push({ from: this.#last, epoch, generation });
  }

  /** Forgets what lies beyond `sequence`; false when that one is not remembered. */
  goBackTo(sequence: number): boolean {
    if (sequence < this.#oldest) return false;
    this.#last = sequence;
    while ((this.#runs.at(-1) as Run).from > sequence) this.#runs.pop();
    return true;
  }

  #forgetOldest(): void {
    this.#oldest++;
    const second = this.#runs[1];
    if (second !== undefined && second.from <= this.#oldest) this.#runs.shift();
  }

  #grow(): void {
    const before = this.#offsets;
    this.#offsets = new Float64Array(Math.min(2 * before.length, this.#remember + 1));
    for (let sequence = this.#oldest; sequence <= this.#last; sequence++) {
      this.#offsets[sequence % this.#offsets.length] = before[sequence % before.length] as number;
    }
  }
}
