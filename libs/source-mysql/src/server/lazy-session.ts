import { isMysyncError } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import type { ServerSession } from './session.ts';

/** A session that is opened at its first use, and once more when the server has closed it meanwhile: one for all who ask. */
export class LazySession {
  readonly #open: () => Promise<ServerSession>;
  #session: ServerSession | undefined;
  #opening: Promise<ServerSession> | undefined;
  #closed = false;

  constructor(open: () => Promise<ServerSession>) {
    this.#open = open;
  }

  async use<T>(question: (session: ServerSession) => Promise<T>): Promise<T> {
    const isUsed = this.#session !== undefined;
    const session = await this.#opened();
    try {
      return await question(session);
    } catch (error) {
      if (!isUsed || !isMysyncError(error, 'SOURCE_CONNECTION_LOST')) throw error;
      if (this.#session === session) this.#drop();
      return await question(await this.#opened());
    }
  }

  /** For good: one that is being opened is closed as soon as it is open. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #drop(): void {
    this.#session?.close();
    this.#session = undefined;
  }

  async #opened(): Promise<ServerSession> {
    if (this.#session !== undefined) return this.#session;
    this.#opening ??= this.#openOne();
    return await this.#opening;
  }

  async #openOne(): Promise<ServerSession> {
    try {
      if (this.#closed) throw closed();
      const session = await this.#open();
      if (this.#closed) {
        session.close();
        throw closed();
      }
      this.#session = session;
      return session;
    } finally {
      this.#opening = undefined;
    }
  }
}

function closed(): Error {
  return sourceErrors.SOURCE_CONNECTION_LOST({ message: 'a session was asked that is closed' });
}
