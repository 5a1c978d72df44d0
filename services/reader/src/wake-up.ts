/** A wake-up call: `wait` resolves at the next `notify`. Notifying without a waiter is remembered once. */
export class WakeUp {
  #resolve: (() => void) | null = null;
  #pending = false;

  notify(): void {
    if (this.#resolve === null) {
      this.#pending = true;
      return;
    }
    const resolve = this.#resolve;
    this.#resolve = null;
    resolve();
  }

  /** One waiter at a time. */
  async wait(): Promise<void> {
    if (this.#pending) {
      this.#pending = false;
      return;
    }
    await new Promise<void>((resolve) => {
      this.#resolve = resolve;
    });
  }
}
