/**
 * Waking those who wait, in this process and in others, without polling.
 *
 * Within the process by key. Across processes by a doorbell: a file in the log's directory that every committing process
 * writes one byte of, and that every other one watches (inotify). A ring says only "look again". File systems without
 * such notices are served by a slow look, which runs only while somebody waits.
 */
import { closeSync, type FSWatcher, fstatSync, openSync, watch, writeSync } from 'node:fs';

const SAFETY_LOOK_MS = 1000;
const BYTE = Uint8Array.of(0x2e);

export class Wakeups {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #fd: number;
  readonly #onRing: () => void;
  #watcher: FSWatcher | undefined;
  #look: NodeJS.Timeout | undefined;

  /** `onRing` runs before anybody is woken, for whatever makes news visible. */
  constructor(file: string, onRing: () => void) {
    this.#onRing = onRing;
    closeSync(openSync(file, 'a'));
    this.#fd = openSync(file, 'r+');
    if (fstatSync(this.#fd).size === 0) this.ring();
    try {
      this.#watcher = watch(file, { persistent: false }, () => this.#wakeAll());
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch {
      // Out of watches: the slow look remains.
    }
  }

  /** Resolves at the next news of `key` (or of anything, from another process), or when the signal aborts. */
  wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const waiters = this.#waiting.get(key) ?? new Set();
      this.#waiting.set(key, waiters);
      const wake = (): void => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.#waiting.get(key) === waiters) this.#waiting.delete(key);
        if (this.#waiting.size === 0) {
          clearInterval(this.#look);
          this.#look = undefined;
        }
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      waiters.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
      this.#look ??= setInterval(() => this.#wakeAll(), SAFETY_LOOK_MS);
    });
  }

  /** Wakes those of this process who wait for `key`. */
  wake(key: string): void {
    const waiters = this.#waiting.get(key);
    if (waiters !== undefined) for (const wake of [...waiters]) wake();
  }

  /** Tells the other processes. */
  ring(): void {
    try {
      writeSync(this.#fd, BYTE, 0, 1, 0);
    } catch {
      // A disk that fails: those who wait look by themselves, each second.
    }
  }

  #wakeAll(): void {
    if (this.#waiting.size === 0) return;
    this.#onRing();
    for (const key of [...this.#waiting.keys()]) this.wake(key);
  }

  close(): void {
    this.#watcher?.close();
    closeSync(this.#fd);
    for (const key of [...this.#waiting.keys()]) this.wake(key);
  }
}
