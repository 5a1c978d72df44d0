/**
 * Acts on one thing that bears no second act meanwhile: a connection, a file, a lock.
 *
 * 1. Acts run one after another, in the order of their calls, whether those before succeed or fail.
 * 2. A call settles as its act does.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when every act taken so far is over; never rejects. */
  async over(): Promise<void> {
    await this.#last;
  }
}
