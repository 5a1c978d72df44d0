import { isMysyncError } from '@mysync/core';
import type { ServerSession } from './session.ts';

/** A session that is opened at its first use, and once more when the server has closed it meanwhile. */
export class LazySession {
  readonly #open: () => Promise<ServerSession>;
  #session: ServerSession | undefined;

  constructor(open: () => Promise<ServerSession>) {
    this.#open = open;
  }

  async use<T>(question: (session: ServerSession) => Promise<T>): Promise<T> {
    const used = this.#session !== undefined;
    this.#session ??= await this.#open();
    try {
      return await question(this.#session);
    } catch (error) {
      if (!used || !isMysyncError(error, 'SOURCE_CONNECTION_LOST')) throw error;
      this.close();
      this.#session = await this.#open();
      return await question(this.#session);
    }
  }

  close(): void {
    this.#session?.close();
    this.#session = undefined;
  }
}
