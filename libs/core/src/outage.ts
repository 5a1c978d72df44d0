/** Somebody is not reached. */
export interface Outage {
  /** Monotonic time since when, in milliseconds. */
  readonly sinceMs: number;
  /** What the last attempt said. */
  readonly cause: string;
}
