/** The server sends a heartbeat where it has nothing else: so many of them missing, and the connection counts as dead. */
const SILENT_HEARTBEATS = 3;
/** Longer than any server is busy with looking for the place to begin at. */
const MOST_MS = 60_000;

/**
 * How long a connection of the log may be silent.
 *
 * Three heartbeats, so that a dead way is noticed within seconds. But a server that is to begin somewhere in a large file may send nothing while it
 * looks for the place (MariaDB behind a GTID set reads the file from its beginning): given up each time, it would never come there. So a
 * connection that was given up soon after it was opened doubles the limit of the next one, and one that has lasted sets it back.
 */
export class SilenceLimit {
  readonly #leastMs: number;
  #ms: number;
  #openedAt: number | null = null;

  constructor(heartbeatMs: number) {
    this.#leastMs = heartbeatMs * SILENT_HEARTBEATS;
    this.#ms = this.#leastMs;
  }

  /** For the connection that is opened next, or is open. */
  get ms(): number {
    return this.#ms;
  }

  /** The log was asked for. Times are monotonic, in ms. */
  opened(nowMs: number): void {
    this.#openedAt = nowMs;
  }

  /** The connection is gone, or could not be opened, for whatever reason. */
  ended(nowMs: number): void {
    if (this.#openedAt === null) return;
    const lasted = nowMs - this.#openedAt > 2 * this.#ms;
    this.#ms = lasted ? this.#leastMs : Math.max(this.#leastMs, Math.min(2 * this.#ms, MOST_MS));
    this.#openedAt = null;
  }
}
