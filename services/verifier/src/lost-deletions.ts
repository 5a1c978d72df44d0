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
 * 4. It goes only when every captured table of the sink was compared, and none holds a row that may be gone: which partitions the rows of a table that
 *    was not compared are in is not known.
 * 5. Where it is gone already another verify took it out, under these rules, whatever the id was by then: everything that was passed is mended.
 *    Not so where the marker stands before the place that was noted: the store was put back, and its writer has yet to come to the stretch.
 *
 * Why no row stays: a row whose deletion was lost is not in the table, and its record is older than the comparison, so it is extra. It goes under a
 * version above all that had arrived, also above its lost deletion, and below every change to come. docs/adr/0193.
 */

import { randomUUID } from 'node:crypto';
import type { Checkpoint } from '@mysync/checkpoint';
import { type Clock, isMysyncError } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { MarkerHold } from '@mysync/writer';
import type { Again } from './again.ts';
import { verifierErrors } from './errors.ts';
import { deletionsLost, patience } from './pipeline.ts';
import type { TableReport } from './report.ts';

export interface LostDeletionsRepairOptions {
  readonly sink: Sink;
  readonly topic: Checkpoint['topic'];
  /** The word: stretches that begin before the ends of the log, by partition, may be passed. null: it is not said. */
  readonly ends: readonly number[] | null;
  readonly clock: Clock;
  readonly patienceMs: number;
  readonly again: Again;
  readonly signal: AbortSignal;
}

/** Why what the markers say still stands. */
export type StandingReason =
  /** A captured table of the sink was not compared. */
  | 'uncompared'
  /** Rows stand in the sink that may be gone from the source. */
  | 'rows-left'
  /** A forgotten stretch was passed, or the sink put back to an older state, while tables were compared. */
  | 'passed-again'
  /** The writer moved the marker each time that it was to be taken over. */
  | 'busy'
  /** The store may have lost what it had confirmed. */
  | 'doubt';

interface Noted {
  readonly id: string;
  /** Where the partition was. */
  readonly next: number;
}

interface Waiting {
  readonly partition: number;
  readonly hold: MarkerHold;
  readonly isPatient: (state: string) => boolean;
}

interface Place {
  readonly next: number;
  readonly target: number;
}

export class LostDeletionsRepair {
  readonly #options: LostDeletionsRepairOptions;
  readonly #noted = new Map<number, Noted>();
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
    const { clock, patienceMs, topic, signal } = this.#options;
    let waiting: readonly Waiting[] = Array.from({ length: topic.partitions }, (_, partition) => ({
      partition,
      hold: this.#hold(partition),
      isPatient: patience(clock, patienceMs),
    }));
    for (;;) {
      const left: Waiting[] = [];
      let stuck: Error | null = null;
      // One that stands for another reason keeps nobody from the word.
      for (const each of waiting) {
        const before = await this.#options.again.call(() => this.#before(each));
        if (before === null) continue;
        left.push(each);
        if (!each.isPatient(String(before.next))) stuck ??= standsStill(topic.name, each.partition, before);
      }
      if (stuck !== null) throw stuck;
      if (left.length === 0) break;
      waiting = left;
      await clock.sleep(POLL_MS, signal);
    }
    this.#doubts = 0;
  }

  /**
   * After the last table; `uncompared`: how many captured tables of the sink are not among them. Says what keeps a partition from being as good as any
   * other.
   */
  async conclude(tables: readonly TableReport[], uncompared: number): Promise<ReadonlyMap<number, StandingReason>> {
    if (tables.length === 0 || uncompared > 0) return this.#allStanding('uncompared');
    if (tables.some(({ unremoved }) => unremoved > 0)) return this.#allStanding('rows-left');
    const standing = new Map<number, StandingReason>();
    for (const [partition, noted] of this.#noted) {
      const why = await this.#clear(partition, noted);
      if (why !== null) standing.set(partition, why);
    }
    return standing;
  }

  #allStanding(why: StandingReason): ReadonlyMap<number, StandingReason> {
    return new Map(this.partitions.map((partition) => [partition, why]));
  }

  /** Says the word where it is asked for. null: what it is about is passed, and noted. */
  async #before({ partition, hold }: Waiting): Promise<Place | null> {
    const { ends, topic } = this.#options;
    for (;;) {
      const held = await hold.read();
      const lost = held?.marker.lost;
      const next = held?.marker.nextOffset ?? 0;
      if (held !== null && lost?.stoppedAt !== undefined) {
        if (ends === null) throw deletionsLost({ topic: topic.name, partition }, lost.stoppedAt);
        const { stoppedAt: _, ...rest } = lost;
        const until = Math.max(ends[partition] ?? 0, lost.stoppedAt + 1);
        await hold.replace(held, { ...held.marker, lost: { ...rest, id: randomUUID(), until } });
        continue;
      }
      const target = Math.max(ends?.[partition] ?? 0, lost?.until ?? 0);
      if (next < target) return { next, target };
      if (lost !== undefined) this.#noted.set(partition, { id: lost.id, next });
      return null;
    }
  }

  async #clear(partition: number, noted: Noted): Promise<StandingReason | null> {
    const hold = this.#hold(partition);
    try {
      for (;;) {
        const held = await hold.hold();
        if (held !== null && held.marker.lost === undefined && held.marker.nextOffset >= noted.next) return null;
        if (held?.marker.lost?.id !== noted.id) return 'passed-again';
        if (this.#doubts > 0) return 'doubt';
        const { lost: _, ...marker } = held.marker;
        if (await hold.replace(held, marker)) return null;
      }
    } catch (error) {
      if (isMysyncError(error, 'WRITER_BUSY')) return 'busy';
      if (isMysyncError(error) && error.retriable) return 'doubt';
      throw error;
    }
  }

  #hold(partition: number): MarkerHold {
    const { sink, topic, clock, signal } = this.#options;
    return new MarkerHold({ sink, topic, partition, where: {}, clock, signal });
  }
}

function standsStill(topic: string, partition: number, { next, target }: Place): Error {
  const message = `the writer of partition ${partition} stands still at offset ${next}, before ${target}`;
  return verifierErrors.VERIFY_NOTHING_RUNS({ message, where: { topic, partition, offset: next } });
}

const POLL_MS = 50;
