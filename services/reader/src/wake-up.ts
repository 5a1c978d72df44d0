/** A wake-up call: every `wait` resolves at the next `notify`. Notifying without a waiter is remembered once. */
export class WakeUp {
  #waiting: (() => void)[] = [];
  #pending = false;

  notify(): void {
    if (this.#waiting.length === 0) {
      this.#pending = true;
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  async wait(): Promise<void> {
    if (this.#pending) {
      this.#pending = false;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
