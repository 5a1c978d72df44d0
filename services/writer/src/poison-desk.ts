import type { Clock } from '@mysync/core';
import type { Sink, StreamRef } from '@mysync/sink';
import type { IncomingRecord, TopicDescription, Transport } from '@mysync/transport';
import { MessageDecoder } from '@mysync/wire';
import { changeOf, type KeyState, newestStates } from './key-history.ts';
import type { StoredLetter } from './letter-box.ts';
import { type Held, MarkerHold, type Refused } from './marker-hold.ts';
import { causeOf, keyText, type ParkedKey } from './parked-keys.ts';

export interface PoisonDeskOptions {
  readonly sink: Sink;
  readonly sinkName: string;
  readonly log: Pick<Transport, 'read' | 'offsetRanges'>;
  readonly topic: TopicDescription;
  readonly partition: number;
  /** The log keeps the newest record of each key, deletions for a while. */
  readonly compacted: boolean;
  /** The record of a dead letter, as it was put away. */
  readonly letterRecord: (letter: StoredLetter) => Promise<IncomingRecord | null>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * What became of a key: `applied`: its newest state is in the sink · `superseded`: a newer change of it is still to come, or it was
 * deleted since · `refused`: the sink still cannot take it · `gone`: the log holds its newest state no more · `discarded`.
 */
export interface DeskResult {
  /** Offset that names the parked key or the letter. */
  readonly first: number;
  readonly result: 'applied' | 'superseded' | 'refused' | 'gone' | 'discarded';
  readonly code: string;
  readonly reason: string;
}

const MOST_AT_ONCE = 200;

/**
 * Applies, or forgets, what a sink could not take, while its writers run or not.
 *
 * 1. It never applies an old state: a parked key's entry names the newest change that the writer has met; of a dead letter's key the log is
 *    read up to the writer's place. Each goes with its own version, so whatever is newer in the sink stays.
 * 2. It takes the applied marker over as a writer would. A writer that is active meanwhile is refused its next move, pauses, and
 *    resumes from the marker that stands there then: nothing of its work is lost, and none of this desk's either.
 * 3. A key leaves the marker in the step that applies its newest state. Whatever is killed in between can be done again.
 *
 * Spec: docs/spec/poison.md.
 */
export class PoisonDesk {
  readonly #options: PoisonDeskOptions;
  readonly #stream: StreamRef;
  readonly #marker: MarkerHold;

  constructor(options: PoisonDeskOptions) {
    this.#options = options;
    this.#stream = { topic: options.topic.name, partition: options.partition };
    const { sink, topic, partition, clock, signal } = options;
    this.#marker = new MarkerHold({ sink, topic, partition, where: { sink: options.sinkName }, clock, signal });
  }

  /** The keys that are set aside; none when the sink has no marker for this partition. */
  async parked(): Promise<readonly ParkedKey[]> {
    return (await this.#marker.read())?.marker.parked ?? [];
  }

  /** Applies the newest state of the chosen parked keys and takes them out of the marker. */
  async release(chosen: (entry: ParkedKey) => boolean): Promise<readonly DeskResult[]> {
    const results = new Map<number, DeskResult>();
    for (;;) {
      const held = await this.#marker.hold();
      const entries = (held?.marker.parked ?? [])
        .filter((entry) => chosen(entry) && !results.has(entry.first))
        .slice(0, MOST_AT_ONCE);
      if (held === null || entries.length === 0) return [...results.values()];
      for (const result of (await this.#releaseHeld(held, entries)) ?? []) results.set(result.first, result);
    }
  }

  /** Takes the chosen keys out of the marker as they are: the sink keeps what it has until their next change. */
  async discard(chosen: (entry: ParkedKey) => boolean): Promise<readonly DeskResult[]> {
    const out = await this.#marker.drop(chosen);
    return out.map(({ first, code, reason }) => ({ first, result: 'discarded', code, reason }));
  }

  /** Applies the newest state of the letters' keys. */
  async reapply(letters: readonly StoredLetter[]): Promise<readonly DeskResult[]> {
    for (;;) {
      const held = await this.#marker.hold();
      if (held === null || letters.length === 0) return [];
      const { states, gone } = await this.#statesOfLetters(letters, held.marker.nextOffset);
      const outcome = await this.#marker.apply(held, states, () => held.marker.parked ?? []);
      if (outcome === null) continue;
      return letters.map(({ key, letter: { offset: first, code, reason } }): DeskResult => {
        const refused = outcome.get(key);
        if (refused !== undefined) return { first, result: 'refused', ...causeOf(refused) };
        if (states.has(key)) return { first, result: 'applied', code, reason };
        return { first, result: gone.has(key) ? 'gone' : 'superseded', code, reason };
      });
    }
  }

  async #statesOfLetters(
    letters: readonly StoredLetter[],
    nextOffset: number,
  ): Promise<{ readonly states: ReadonlyMap<string, KeyState>; readonly gone: ReadonlySet<string> }> {
    const { compacted, letterRecord } = this.#options;
    const wanted = new Map<string, number>();
    // A letter may lie beyond the marker: its writer was killed before it moved it.
    let until = nextOffset;
    for (const { key, letter } of letters) {
      wanted.set(key, Math.min(letter.from, wanted.get(key) ?? letter.from));
      until = Math.max(until, letter.offset + 1);
    }
    const states = new Map<string, KeyState>();
    const gone = new Set<string>();
    const found = await this.#states(wanted, until);
    for (const stored of letters) {
      const { key, letter } = stored;
      const state = found.get(key);
      // Another log: what it says of the key may be older than the letter.
      if (letter.topicId !== this.#options.topic.id) {
        gone.add(key);
        continue;
      }
      if (state === 'cleared') continue;
      if (state !== undefined) {
        if (state.whole && state.change.version >= BigInt(letter.version)) states.set(key, state);
        else gone.add(key);
        continue;
      }
      // A deletion that the log has forgotten still stands in its letter. A row that it has forgotten was deleted since.
      const record = letter.operation === 'delete' && letter.hasMessage ? await letterRecord(stored) : null;
      const own = record === null ? null : changeOf(record, new MessageDecoder());
      if (own !== null) states.set(key, { change: own, whole: true });
      else if (!compacted || letter.operation === 'delete') gone.add(key);
    }
    for (const key of gone) states.delete(key);
    return { states, gone };
  }

  /** null when a writer was faster. */
  async #releaseHeld(held: Held, entries: readonly ParkedKey[]): Promise<readonly DeskResult[] | null> {
    const states = new Map<string, KeyState>();
    const results: DeskResult[] = [];
    const out = new Set<ParkedKey>();
    for (const entry of entries) {
      const key = keyText(entry);
      const state = await this.#newestOf(entry, held.marker.nextOffset);
      const { first, code, reason } = entry;
      if (state === 'superseded' || state === 'gone') {
        results.push({ first, result: state, code, reason });
        if (state === 'superseded') out.add(entry);
      } else {
        states.set(key, state);
      }
    }
    const all = held.marker.parked ?? [];
    const left = (refused: Refused): readonly ParkedKey[] =>
      all.flatMap((entry) => {
        if (out.has(entry)) return [];
        const error = refused.get(keyText(entry));
        if (error !== undefined) return [{ ...entry, ...causeOf(error) }];
        return states.has(keyText(entry)) ? [] : [entry];
      });
    const outcome = await this.#marker.apply(held, states, left);
    if (outcome === null) return null;
    for (const entry of entries) {
      if (!states.has(keyText(entry))) continue;
      const { first, code, reason } = entry;
      const error = outcome.get(keyText(entry));
      if (error === undefined) results.push({ first, result: 'applied', code, reason });
      else results.push({ first, result: 'refused', ...causeOf(error) });
    }
    return results;
  }

  /** What to apply for a parked key. */
  async #newestOf(entry: ParkedKey, nextOffset: number): Promise<KeyState | 'superseded' | 'gone'> {
    const key = keyText(entry);
    const state = (await this.#states(new Map([[key, entry.from]]), entry.offset + 1)).get(key);
    if (state === 'cleared') return 'superseded';
    if (state?.whole === true && state.change.version === BigInt(entry.version)) return state;
    // Compaction took it: then a newer change of the key lies further on.
    const range = (await this.#options.log.offsetRanges(this.#stream.topic))[this.#stream.partition];
    const later = (await this.#states(new Map([[key, entry.offset + 1]]), range?.end ?? nextOffset)).get(key);
    if (later === 'cleared') return 'superseded';
    if (later === undefined || later.change.version <= BigInt(entry.version)) return 'gone';
    if (later.change.offset >= nextOffset) return 'superseded';
    return later.whole ? later : 'gone';
  }

  async #states(
    wanted: ReadonlyMap<string, number>,
    until: number,
  ): Promise<ReadonlyMap<string, KeyState | 'cleared'>> {
    const { log, signal } = this.#options;
    return await newestStates(wanted, { log, ...this.#stream, until, signal });
  }
}
