import type { ApplyUnit } from './unit-builder.ts';

export interface ApplyLineOptions {
  /** False when another writer moved the marker: then nothing more is applied. */
  readonly apply: (unit: ApplyUnit) => Promise<boolean>;
  /** Nothing more will be applied: the reading of batches ends at once and not at the next batch. */
  readonly onBroken: () => void;
}

/**
 * The units on their way to the sink.
 *
 * 1. One apply at a time, in the order of the log.
 * 2. A unit that brings something waits until all before it is applied: at most one is built ahead, and memory stays bounded.
 * 3. A unit that brings nothing (heartbeats) keeps nobody waiting: it stands behind the apply that is under way, and the next such unit takes its place,
 *    since its progress is that of both. So a sink that is away stops the reading at a change, whose age is the lag, and never at a heartbeat (docs/adr/0206).
 */
export class ApplyLine {
  readonly #options: ApplyLineOptions;
  #running: Promise<boolean> = Promise.resolve(true);
  #isBusy = false;
  #behind: ApplyUnit | null = null;

  constructor(options: ApplyLineOptions) {
    this.#options = options;
  }

  /** Resolves once the next unit may be built; false when nothing more is applied. Throws what an apply threw. */
  async take(unit: ApplyUnit): Promise<boolean> {
    if (this.#isBusy && bringsNothing(unit)) {
      this.#behind = this.#behind === null ? unit : joined(this.#behind, unit);
      return true;
    }
    if (!(await this.#running)) return false;
    this.#isBusy = true;
    this.#running = this.#run(unit);
    this.#running.then(
      (goesOn) => goesOn || this.#options.onBroken(),
      () => this.#options.onBroken(),
    );
    return true;
  }

  /** Resolves when nothing is under way; as the last apply did. */
  async end(): Promise<boolean> {
    return await this.#running;
  }

  async #run(first: ApplyUnit): Promise<boolean> {
    try {
      for (let unit: ApplyUnit | null = first; unit !== null; unit = this.#next()) {
        if (!(await this.#options.apply(unit))) return false;
      }
      return true;
    } finally {
      this.#isBusy = false;
    }
  }

  #next(): ApplyUnit | null {
    const unit = this.#behind;
    this.#behind = null;
    return unit;
  }
}

function bringsNothing({ changes, newSchemas, progress, passesLost }: ApplyUnit): boolean {
  return changes.length === 0 && newSchemas.length === 0 && progress !== null && !passesLost;
}

function joined(earlier: ApplyUnit, later: ApplyUnit): ApplyUnit {
  return {
    ...later,
    messages: earlier.messages + later.messages,
    oldestMicros: earlier.oldestMicros || later.oldestMicros,
    newestMicros: later.newestMicros || earlier.newestMicros,
  };
}
