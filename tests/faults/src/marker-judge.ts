import type { Marker } from './sink-eye.ts';

/** Holds a sink's commits against its applied markers, and each marker against what it was before. Pure. */
export class MarkerJudge {
  /** Partitions whose marker was put back on purpose, by us or by a writer that found other holders, until it has caught up with the commits. */
  readonly #behind = new Set<number>();
  /** The highest marker of each partition since then. Copies of a marker are not looked at in one moment: commits are held against this one. */
  readonly #highest = new Map<number, number>();
  /** Who held the data of each partition when its marker was looked at last. */
  readonly #holders = new Map<number, string>();
  readonly wrong: string[] = [];
  /** Commits that were held against a marker. */
  held = 0;

  /** The commits are read before the markers. */
  look(committed: readonly number[], markers: ReadonlyMap<number, Marker>): void {
    for (const [partition, marker] of markers) this.#lookAt(partition, marker);
    for (const [partition, offset] of committed.entries()) {
      if (offset > 0 && markers.has(partition)) this.held += 1;
      const marker = markers.get(partition)?.nextOffset ?? 0;
      if (offset <= marker) this.#behind.delete(partition);
      else if (!this.#behind.has(partition) && offset > (this.#highest.get(partition) ?? 0)) {
        this.wrong.push(`${offset} committed in partition ${partition}, applied up to ${marker}`);
      }
    }
  }

  /** The sink, and its markers with it, was put back to an older state on purpose. */
  putBack(partitions: number): void {
    this.#highest.clear();
    for (let partition = 0; partition < partitions; partition += 1) this.#behind.add(partition);
  }

  /** The markers were removed on purpose: those to come begin anew, for a group that has committed nothing. */
  removed(): void {
    this.#highest.clear();
  }

  #lookAt(partition: number, { nextOffset, holders, copied }: Marker): void {
    const before = this.#holders.get(partition) ?? holders;
    this.#holders.set(partition, holders);
    if (before !== holders) {
      this.#behind.add(partition);
      this.#highest.set(partition, nextOffset);
      return;
    }
    const highest = this.#highest.get(partition) ?? 0;
    if (nextOffset >= highest) this.#highest.set(partition, nextOffset);
    else if (!copied) {
      this.wrong.push(`the marker of partition ${partition} went back from ${highest} to ${nextOffset}`);
      // said once
      this.#highest.set(partition, nextOffset);
    }
  }
}
