import { until } from '@mysync/harness';

const HELD_MS = 240_000;

/**
 * A load of so many steps in equal parts. It does not pass the end of a part before `next` lets it: what is done to the system amid a part meets
 * work under way, and is over before the next one.
 */
export class PacedLoad {
  readonly #steps: number;
  readonly #parts: number;
  #open = 1;
  /** Steps that are committed. */
  done = 0;

  constructor(steps: number, parts: number) {
    this.#steps = steps;
    this.#parts = parts;
  }

  get isOver(): boolean {
    return this.done >= this.#steps;
  }

  /** For whoever writes, before each step: waits at the end of a part. */
  async turn(): Promise<void> {
    if (this.done < this.#end(this.#open)) return;
    await until('the next part of the load is let', () => this.done < this.#end(this.#open), {
      everyMs: 5,
      timeoutMs: HELD_MS,
    });
  }

  /** Waits until so many parts are written. */
  async reached(parts: number): Promise<void> {
    const steps = this.#end(parts);
    await until(`${steps} steps of the load`, () => this.done >= steps, { everyMs: 5, timeoutMs: HELD_MS });
  }

  next(): void {
    this.#open += 1;
  }

  /** Whoever writes ends with the step that is under way. For tests that fail: they would wait for it. */
  end(): void {
    this.done = this.#steps;
    this.#open = this.#parts;
  }

  #end(parts: number): number {
    return Math.min(this.#steps, (parts * this.#steps) / this.#parts);
  }
}
