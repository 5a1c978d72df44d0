/**
 * Deletions that the log had forgotten before a writer read them: the partitions go on by an operator's word, and stop being suspect once every
 * table was compared and mended.
 *
 *     `begin`: say the word where it was asked for, wait until the forgotten stretches are passed, note what the markers say
 *     ─► all tables are compared and mended ─► `clear`: what was noted goes out of the markers
 *
 * 1. Nothing is passed without the word, and the word reaches to the log's end as it was then.
 * 2. What the markers say goes only while it is what was noted before the first table: whoever passed something since, or was put back to an older
 *    state and came here again, has another id.
 * 3. It goes only while the store lost nothing of what it had confirmed to this command: what was removed would be back. The marker is written once
 *    before that is asked, and moved by compare-and-set after it: a store that loses the removals behind that loses the writing as well.
 *
 * Why no row stays: a row whose deletion was lost is not in the table, and its record is older than the comparison, so it is extra. It goes under a
 * version above all that had arrived, also above its lost deletion, and below every change to come. docs/adr/0193.
 */

import { randomUUID } from 'node:crypto';
import type { Checkpoint } from '@mysync/checkpoint';
import { type Clock, isMysyncError } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { MarkerHold } from '@mysync/writer';
import { verifierErrors } from './errors.ts';
import { deletionsLost, patience } from './pipeline.ts';

export interface LostDeletionsRepairOptions {
  readonly sink: Sink;
  readonly topic: Checkpoint['topic'];
  /** The word: stretches that begin before the ends of the log, by partition, may be passed. null: it is not said. */
  readonly ends: readonly number[] | null;
  readonly clock: Clock;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Why what the markers say still stands. */
export type StandingReason =
  /** A forgotten stretch was passed, or the sink put back to an older state, while tables were compared. */
  | 'passed-again'
  /** The store may have lost what it had confirmed. */
  | 'doubt';

export class LostDeletionsRepair {
  readonly #options: LostDeletionsRepairOptions;
  readonly #noted = new Map<number, string>();
  #doubts = 0;

  constructor(options: LostDeletionsRepairOptions) {
    this.#options = options;
    options.sink.onDoubt(() => {
      this.#doubts++;
    });
  }

  /** Partitions with rows that may be gone from the source. */
  get partitions(): readonly number[] {
    return [...this.#noted.keys()];
  }

  /** Before the first table. Throws VERIFY_DELETIONS_LOST where a partition stands and the word is not said, VERIFY_NOTHING_RUNS when nothing moves. */
  async begin(): Promise<void> {
    const { topic } = this.#options;
    for (let partition = 0; partition < topic.partitions; partition += 1) await this.#passed(partition);
    this.#doubts = 0;
  }

  /** After the last table, all of them without a row that is too much. Says what keeps a partition from being as good as any other. */
  async clear(): Promise<ReadonlyMap<number, StandingReason>> {
    const standing = new Map<number, StandingReason>();
    for (const [partition, id] of this.#noted) {
      const why = await this.#clear(partition, id);
      if (why !== null) standing.set(partition, why);
    }
    return standing;
  }

  async #passed(partition: number): Promise<void> {
    const { ends, clock, patienceMs, topic, signal } = this.#options;
    const hold = this.#hold(partition);
    const isPatient = patience(clock, patienceMs);
    for (;;) {
      const held = await hold.read();
      const lost = held?.marker.lost;
      const next = held?.marker.nextOffset ?? 0;
      if (held !== null && lost?.stoppedAt !== undefined) {
        const where = { topic: topic.name, partition };
        if (ends === null) throw deletionsLost(where, lost.stoppedAt);
        const { stoppedAt: _, ...rest } = lost;
        const until = Math.max(ends[partition] ?? 0, lost.stoppedAt + 1);
        await hold.replace(held, { ...held.marker, lost: { ...rest, id: randomUUID(), until } });
        continue;
      }
      const target = Math.max(ends?.[partition] ?? 0, lost?.until ?? 0);
      if (next >= target) {
        if (lost !== undefined) this.#noted.set(partition, lost.id);
        return;
      }
      if (!isPatient(String(next))) {
        const message = `the writer of partition ${partition} stands still at offset ${next}, before ${target}`;
        const where = { topic: topic.name, partition, offset: next };
        throw verifierErrors.VERIFY_NOTHING_RUNS({ message, where });
      }
      await clock.sleep(POLL_MS, signal);
    }
  }

  async #clear(partition: number, id: string): Promise<StandingReason | null> {
    const hold = this.#hold(partition);
    for (;;) {
      const held = await hold.hold();
      if (held?.marker.lost?.id !== id) return 'passed-again';
      if (this.#doubts > 0) return 'doubt';
      const { lost: _, ...marker } = held.marker;
      try {
        if (await hold.replace(held, marker)) return null;
      } catch (error) {
        if (isMysyncError(error) && error.retriable) return 'doubt';
        throw error;
      }
    }
  }

  #hold(partition: number): MarkerHold {
    const { sink, topic, clock, signal } = this.#options;
    return new MarkerHold({ sink, topic, partition, where: {}, clock, signal });
  }
}

const POLL_MS = 50;
