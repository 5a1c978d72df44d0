import { randomUUID } from 'node:crypto';
import { type Clock, isMysyncError, type TableSchema } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import type { Sink, StreamRef } from '@mysync/sink';
import type { TopicDescription } from '@mysync/transport';
import { rowWithheld, writerErrors } from './errors.ts';
import type { KeyState } from './key-history.ts';
import { type AppliedMarker, formatMarker, parseMarker } from './marker.ts';
import type { ParkedKey } from './parked-keys.ts';
import type { AppliedChange } from './row-change.ts';

export interface MarkerHoldOptions {
  readonly sink: Sink;
  readonly topic: Pick<TopicDescription, 'name' | 'id' | 'partitions'>;
  readonly partition: number;
  /** For errors. */
  readonly where: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface Held {
  readonly text: string;
  readonly marker: AppliedMarker;
}

/** By key (latin1) why it was refused. */
export type Refused = ReadonlyMap<string, Error>;

const HOLD_MS = 60_000;

/**
 * The applied marker of one partition, taken over as a writer would for a command's one step: a writer that is active meanwhile is refused
 * its next move, pauses, and resumes from the marker that stands there then.
 */
export class MarkerHold {
  readonly #options: MarkerHoldOptions;
  readonly #stream: StreamRef;
  readonly #where: Readonly<Record<string, string | number>>;
  readonly #owner = `command-${randomUUID()}`;
  readonly #prepared = new Map<TableSchema, Error | null>();

  constructor(options: MarkerHoldOptions) {
    this.#options = options;
    this.#stream = { topic: options.topic.name, partition: options.partition };
    this.#where = { ...options.where, ...this.#stream };
  }

  /** The marker as it stands; null when the sink has none for this partition. */
  async read(): Promise<Held | null> {
    const { sink, topic } = this.#options;
    const text = await sink.readMarker(this.#stream);
    if (text === null) return null;
    const where = this.#where;
    const marker = parseMarker(text, where);
    if (marker.topicId !== topic.id || marker.partitions !== topic.partitions) {
      const message = `the sink was filled from topic id ${marker.topicId}; now it is ${topic.id}`;
      throw writerErrors.WRITER_TOPIC_CHANGED({ message, where });
    }
    return { text, marker };
  }

  /** The marker with our name in it: a writer that is active pauses before it takes it back. */
  async hold(): Promise<Held | null> {
    const { sink, clock, signal } = this.#options;
    const backoff = new Backoff({ minMs: 5, maxMs: 200 });
    const end = clock.monotonic() + HOLD_MS;
    for (;;) {
      const stored = await this.read();
      if (stored === null) return null;
      const marker = { ...stored.marker, owner: this.#owner };
      const text = formatMarker(marker);
      const outcome = await sink.apply(
        { stream: this.#stream, changes: [], marker: { expected: stored.text, next: text } },
        signal,
      );
      if (outcome.status === 'applied') return { text, marker };
      if (clock.monotonic() > end) {
        const message = 'the writer moved the applied marker each time that it was to be taken over';
        throw writerErrors.WRITER_BUSY({ message, where: this.#where });
      }
      await clock.sleep(backoff.next(), signal);
    }
  }

  /**
   * Applies the states and puts the parked keys that are left into the marker, in one step; returns what was refused. null: somebody moved the
   * marker.
   */
  async apply(
    held: Held,
    states: ReadonlyMap<string, KeyState>,
    left: (refused: Refused) => readonly ParkedKey[],
  ): Promise<Refused | null> {
    const { sink, signal } = this.#options;
    const refused = new Map<string, Error>();
    const pending = new Map<string, AppliedChange>();
    for (const [key, { change }] of states) {
      if (change.kind === 'withheld') {
        refused.set(key, rowWithheld());
        continue;
      }
      const unfit = await this.#unfit(change.schema);
      if (unfit === null) pending.set(key, change);
      else refused.set(key, unfit);
    }
    for (;;) {
      const { parked: _, ...marker } = held.marker;
      const parked = left(refused);
      const next = formatMarker(parked.length === 0 ? marker : { ...marker, parked });
      const keys = [...pending.keys()];
      const outcome = await sink.apply(
        { stream: this.#stream, changes: [...pending.values()], marker: { expected: held.text, next } },
        signal,
      );
      if (outcome.status === 'applied') return refused;
      if (outcome.status === 'marker-moved') return null;
      for (const { index, error } of outcome.refusals) {
        const key = keys[index];
        if (key === undefined) throw error;
        pending.delete(key);
        refused.set(key, error);
      }
    }
  }

  /** Puts the marker in the place of the one that is held. False: somebody moved that. */
  async replace(held: Held, marker: AppliedMarker): Promise<boolean> {
    const { sink, signal } = this.#options;
    const next = formatMarker({ ...marker, owner: this.#owner });
    const batch = { stream: this.#stream, changes: [], marker: { expected: held.text, next } };
    return (await sink.apply(batch, signal)).status === 'applied';
  }

  /** Takes the chosen keys out of the marker as they are: the sink keeps what it has of them. Resolves with those that were there. */
  async drop(chosen: (entry: ParkedKey) => boolean): Promise<readonly ParkedKey[]> {
    for (;;) {
      const held = await this.hold();
      const entries = held?.marker.parked ?? [];
      const out = entries.filter(chosen);
      if (held === null || out.length === 0) return [];
      const left = entries.filter((entry) => !out.includes(entry));
      if ((await this.apply(held, new Map(), () => left)) !== null) return out;
    }
  }

  /** Why the sink can take no row of this schema, or null. */
  async #unfit(schema: TableSchema): Promise<Error | null> {
    const known = this.#prepared.get(schema);
    if (known !== undefined) return known;
    let unfit: Error | null = null;
    try {
      await this.#options.sink.prepare(schema);
    } catch (error) {
      if (!isMysyncError(error) || error.scope !== 'table') throw error;
      unfit = error;
    }
    this.#prepared.set(schema, unfit);
    return unfit;
  }
}
