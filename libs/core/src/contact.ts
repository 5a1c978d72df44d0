import type { Outage } from './outage.ts';

/**
 * Whether somebody is reached, and if not, since when and why.
 *
 * For whoever tries again by itself for ever: it looks healthy from outside unless it says this (docs/adr/0205).
 */
export class Contact {
  #outage: Outage | null = null;

  /** An attempt failed, at that monotonic time. The outage began with the first one since contact was made. */
  lost(cause: string, nowMs: number): void {
    this.#outage = { sinceMs: this.#outage?.sinceMs ?? nowMs, cause };
  }

  /** True when that ends an outage. */
  made(): boolean {
    const ends = this.#outage !== null;
    this.#outage = null;
    return ends;
  }

  get outage(): Outage | null {
    return this.#outage;
  }
}

/** The one that began first. */
export function longest(outages: readonly (Outage | null)[]): Outage | null {
  let first: Outage | null = null;
  for (const outage of outages)
    if (outage !== null && (first === null || outage.sinceMs < first.sinceMs)) first = outage;
  return first;
}
