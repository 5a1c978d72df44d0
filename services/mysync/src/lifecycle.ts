import { causeText } from '@mysync/core';
import type { Output } from './output.ts';

/** Started in order, closed in reverse. */
export class Lifecycle {
  readonly #opened: { readonly name: string; close(): Promise<void> }[] = [];

  /** Remembers how to close what was just opened. */
  opened<T>(name: string, value: T, close: (value: T) => Promise<void>): T {
    this.#opened.push({ name, close: () => close(value) });
    return value;
  }

  /** Closes everything, the last opened first; one that fails does not keep the others open. Returns what failed. */
  async close(): Promise<readonly { readonly name: string; readonly error: unknown }[]> {
    const failures: { name: string; error: unknown }[] = [];
    for (const { name, close } of this.#opened.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        failures.push({ name, error });
      }
    }
    return failures;
  }

  /** Likewise; what failed is a note to whoever called, and hides no other error. */
  async closeNoting({ note }: Pick<Output, 'note'>): Promise<void> {
    for (const { name, error } of await this.close()) note(`closing ${name} failed: ${causeText(error)}\n`);
  }
}
