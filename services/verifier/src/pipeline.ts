/**
 * How far the changes are on their way: when everything that was committed before a moment surely stands in the sink.
 *
 *     position of the source ≤ the checkpoint's ─► all its messages are in the log, up to the offsets that the checkpoint names
 *     ─► each partition's applied marker is beyond that offset ─► all of it is in the sink
 */
import type { Checkpoint } from '@mysync/checkpoint';
import {
  type Clock,
  compareBinlogPositions,
  formatBinlogPosition,
  NO_POSITION,
  type SourcePosition,
} from '@mysync/core';
import type { Sink, StreamRef } from '@mysync/sink';
import { type AppliedMarker, type ParkedKey, parseMarker } from '@mysync/writer';
import type { Again } from './again.ts';
import { verifierErrors } from './errors.ts';

export interface PipelineOptions {
  /** The reader's newest checkpoint; null when there is none. */
  loadCheckpoint(): Promise<Checkpoint | null>;
  readonly sink: Sink;
  readonly again: Again;
  /** Before each look: throws what says that waiting is in vain. */
  requireAlive?(): void;
  readonly clock: Clock;
  /** How long nothing may move before it is said that nothing runs. */
  readonly patienceMs: number;
}

/** A moment of which everything before it has arrived. */
export interface Settled {
  readonly topic: Checkpoint['topic'];
  /** Of the newest transaction that has surely arrived. */
  readonly transactionCounter: number;
  /** Keys that are set aside: of them alone it is not true that everything has arrived. */
  readonly parked: readonly PlacedKey[];
}

export interface PlacedKey {
  readonly partition: number;
  readonly entry: ParkedKey;
  /** The log had forgotten deletions before they were read there: what was set aside may be gone from the source. */
  readonly afterLoss: boolean;
}

const POLL_MS = 50;

export class Pipeline {
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Waits until everything that was committed up to the position is in the sink. Throws VERIFY_NOTHING_RUNS when nothing moves. */
  async settled(position: SourcePosition, signal: AbortSignal): Promise<Settled> {
    const checkpoint = await this.#published(position, signal);
    const parked: PlacedKey[] = [];
    for (const [partition, { offset }] of checkpoint.partitions.entries()) {
      const marker = await this.#applied({ topic: checkpoint.topic.name, partition }, offset, signal);
      const afterLoss = marker?.lost !== undefined;
      for (const entry of marker?.parked ?? []) parked.push({ partition, entry, afterLoss });
    }
    const { topic, transactionCounter } = checkpoint;
    return { topic, transactionCounter, parked };
  }

  async #published(position: SourcePosition, signal: AbortSignal): Promise<Checkpoint> {
    const isPatient = patience(this.#options.clock, this.#options.patienceMs);
    for (;;) {
      const checkpoint = await this.#look(() => this.#options.loadCheckpoint());
      const reached = checkpoint?.position ?? NO_POSITION;
      if (checkpoint !== null && reached.file !== '' && compareBinlogPositions(reached, position) >= 0)
        return checkpoint;
      const at = reached.file === '' ? 'the first snapshot' : formatBinlogPosition(reached);
      if (!isPatient(checkpoint === null ? '' : at)) throw standsStill(checkpoint === null ? null : at, position);
      await this.#options.clock.sleep(POLL_MS, signal);
    }
  }

  async #applied(stream: StreamRef, offset: number, signal: AbortSignal): Promise<AppliedMarker | null> {
    const isPatient = patience(this.#options.clock, this.#options.patienceMs);
    for (;;) {
      const text = await this.#look(() => this.#options.sink.readMarker(stream));
      const marker = text === null ? null : parseMarker(text, { ...stream });
      const next = marker?.nextOffset ?? 0;
      if (next > offset) return marker;
      if (marker?.lost?.stoppedAt !== undefined) throw deletionsLost({ ...stream }, marker.lost.stoppedAt);
      if (!isPatient(String(next))) {
        throw verifierErrors.VERIFY_NOTHING_RUNS({
          message: `the writer of partition ${stream.partition} stands still at offset ${next}, before ${offset + 1}`,
          where: { ...stream, offset: next },
        });
      }
      await this.#options.clock.sleep(POLL_MS, signal);
    }
  }

  async #look<T>(ask: () => Promise<T>): Promise<T> {
    const { again, requireAlive } = this.#options;
    return await again.call(() => {
      requireAlive?.();
      return ask();
    });
  }
}

/** Told a state again and again; false when it has not changed for too long. */
export function patience(clock: Clock, patienceMs: number): (state: string) => boolean {
  let last: string | undefined;
  let since = 0;
  return (state) => {
    if (state !== last) {
      last = state;
      since = clock.monotonic();
    }
    return clock.monotonic() - since < patienceMs;
  };
}

export function deletionsLost(where: Readonly<Record<string, string | number>>, offset: number): Error {
  const message = 'the writer stands before what may have been deletions, which the log has forgotten';
  return verifierErrors.VERIFY_DELETIONS_LOST({ message, where: { ...where, offset } });
}

/** `at`: where the reader is; null when it has no checkpoint. */
function standsStill(at: string | null, position: SourcePosition): Error {
  if (at === null) return verifierErrors.VERIFY_NO_CHECKPOINT({ message: 'the reader has no checkpoint yet' });
  return verifierErrors.VERIFY_NOTHING_RUNS({
    message: `the reader stands still at ${at}, before ${formatBinlogPosition(position)}`,
    where: { position: at },
  });
}
