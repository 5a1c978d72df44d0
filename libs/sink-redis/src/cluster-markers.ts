/**
 * The applied marker in a cluster: one copy per master, in a slot that it owns, so that a master that lost its last
 * writes shows an older marker than the others. A copy is a hash: `m` the text, `c` a counter that rises with each move, `s` the
 * places of all copies, `l` how often the slot of a copy was lost.
 *
 * 1. The newest copy says where the copies are; that of slot 0 is always among them and is made last.
 * 2. The marker is the copy with the lowest counter of those. One that is gone although no other copy is with its slot's master: that
 *    master lost everything: no marker. Where another one is, the slot alone was lost: it had been moved there and its rows were not
 *    passed on before the master died. That is counted, the others stand.
 * 3. Reading makes the copies equal again where they are not, by compare-and-set: lowering a marker is always right.
 * 4. Moving needs the expected text in every copy; a copy that has the next text already counts (the call was repeated).
 */
import { type StreamRef, sinkErrors } from '@mysync/sink';
import { type CopyPlace, parsePlaces, placesOf, placesText, slotsOf } from './copy-places.ts';
import { noMarker, redisFailure, replyCode } from './failure.ts';
import type { RedisNames } from './names.ts';
import type { ClusterRouter, SlotRequest } from './router.ts';
import { markerScript } from './script.ts';

interface Copy {
  readonly slot: number;
  readonly text: string;
  readonly counter: number;
  readonly places: readonly CopyPlace[];
  readonly losses: number;
}

interface Copies {
  /** null: there is none. */
  readonly marker: Copy | null;
  /** A slot of a copy was lost. */
  readonly hasLost: boolean;
  /** All that were found, those that should be at home but are not listed (yet) among them. */
  readonly found: readonly Copy[];
  /** Where they should be. */
  readonly home: readonly CopyPlace[];
}

interface Known {
  readonly counter: number;
  readonly places: readonly CopyPlace[];
  readonly losses: number;
}

const ATTEMPTS = 10;

export class ClusterMarkers {
  readonly #router: ClusterRouter;
  readonly #names: RedisNames;
  /** Where the copies of a stream are, and their counter, as last read or written. */
  readonly #known = new Map<string, Known>();

  constructor(router: ClusterRouter, names: RedisNames) {
    this.#router = router;
    this.#names = names;
  }

  async read(stream: StreamRef): Promise<string | null> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { marker: lowest, hasLost, found, home } = await this.#copies(stream);
      const marker = lowest !== null && hasLost ? { ...lowest, losses: lowest.losses + 1 } : lowest;
      if (!isWhole(found, marker, home) && !(await this.#mend(stream, found, marker, home))) continue;
      const { counter = 0, losses = 0 } = marker ?? {};
      this.#known.set(streamName(stream), { counter, places: home, losses });
      return marker?.text ?? null;
    }
    throw sinkErrors.SINK_UNREACHABLE({ message: `the marker of ${streamName(stream)} is being changed by others` });
  }

  /** How often the slot of a copy was lost. */
  async losses(stream: StreamRef): Promise<number> {
    return (await this.#place(stream)).losses;
  }

  /** Of a batch: `done` when every copy has the next text already. */
  async compare(
    stream: StreamRef,
    expected: string | null,
    next: string,
    signal: AbortSignal,
  ): Promise<'same' | 'done' | 'moved'> {
    const { places } = await this.#place(stream);
    const copies = await this.#get(stream, slotsOf(places), signal);
    const found = copies.map((copy) => copy?.text ?? null);
    if (found.every((text) => text === expected)) return 'same';
    if (found.every((text) => text === next)) return 'done';
    return found.every((text) => text === expected || text === next) ? 'same' : 'moved';
  }

  /** True when all copies moved. */
  async move(stream: StreamRef, expected: string | null, next: string, signal?: AbortSignal): Promise<boolean> {
    const known = await this.#place(stream);
    const counter = known.counter + 1;
    const write = (slots: readonly number[]): Promise<boolean> =>
      this.#write(stream, slots, expected, { ...known, text: next, counter }, signal);
    // At first the copy of slot 0 is made last: it vouches for the others.
    const slots = slotsOf(known.places);
    const first = expected === null ? slots.filter((slot) => slot !== 0) : slots;
    if (first.length > 0 && !(await write(first))) return false;
    if (expected === null && !(await write([0]))) return false;
    this.#known.set(streamName(stream), { ...known, counter });
    return true;
  }

  async #place(stream: StreamRef): Promise<Known> {
    const name = streamName(stream);
    if (!this.#known.has(name)) await this.read(stream);
    return this.#known.get(name) ?? { counter: 0, places: placesOf([], await this.#router.slotMap()), losses: 0 };
  }

  async #copies(stream: StreamRef): Promise<Copies> {
    const map = await this.#router.slotMap();
    const looked = new Map<number, Copy | null>();
    let wanted = [...new Set([0, ...map.masters.map(({ lowestSlot }) => lowestSlot)])];
    while (wanted.length > 0) {
      const copies = await this.#get(stream, wanted);
      wanted.forEach((slot, at) => {
        looked.set(slot, copies[at] ?? null);
      });
      const named = new Set(copies.flatMap((copy) => slotsOf(copy?.places ?? [])));
      wanted = [...named].filter((slot) => !looked.has(slot));
    }
    const found = [...looked.values()].filter((copy) => copy !== null);
    // Of equal ones that of slot 0, which was looked at first.
    const places = newest(found)?.places ?? [];
    const listed = found.filter(({ slot }) => slotsOf(places).includes(slot));
    const gone = slotsOf(places).filter((slot) => !listed.some((copy) => copy.slot === slot));
    const isLeft = (slot: number): boolean => listed.some((copy) => map.owner(copy.slot) === map.owner(slot));
    const marker = gone.every(isLeft) ? oldest(listed) : null;
    const left = places.filter(({ slot }) => !gone.includes(slot));
    return { marker, hasLost: gone.length > 0, found, home: placesOf(marker === null ? [] : left, map) };
  }

  async #get(stream: StreamRef, slots: readonly number[], signal?: AbortSignal): Promise<readonly (Copy | null)[]> {
    const requests = slots.map((slot) =>
      request(slot, ['HMGET', this.#names.marker(stream, slot), 'm', 'c', 's', 'l']),
    );
    const replies = await this.#router.run(requests, signal);
    return replies.map((reply, at) => {
      const slot = slots[at] ?? 0;
      if (reply instanceof Error) throw this.#failure(stream, slot, reply);
      const [text, counter, list, losses] = reply as (string | null)[];
      if (text === null || text === undefined) return null;
      return {
        slot,
        text,
        counter: Number(counter),
        places: parsePlaces(String(list)),
        losses: Number(losses),
      };
    });
  }

  /** Makes the copies at home equal to `marker`, that of slot 0 last, and removes the others. False: somebody was faster. */
  async #mend(
    stream: StreamRef,
    copies: readonly Copy[],
    marker: Copy | null,
    home: readonly CopyPlace[],
  ): Promise<boolean> {
    const found = new Map(copies.map((copy) => [copy.slot, copy]));
    const target = marker === null ? null : { ...marker, places: home };
    const slots = slotsOf(home);
    const order = [
      ...slots.filter((slot) => slot !== 0),
      0,
      ...[...found.keys()].filter((slot) => !slots.includes(slot)),
    ];
    for (const slot of order) {
      const copy = found.get(slot);
      if (copy === undefined && target === null) continue;
      const next = slots.includes(slot) ? target : null;
      if (!(await this.#write(stream, [slot], copy?.text ?? null, next))) return false;
    }
    return true;
  }

  /** Compare-and-set of copies; null removes. */
  async #write(
    stream: StreamRef,
    slots: readonly number[],
    expected: string | null,
    next: Omit<Copy, 'slot'> | null,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const before = expected === null ? '-' : `+${expected}`;
    const after =
      next === null
        ? ['-', '', '', '']
        : [`+${next.text}`, String(next.counter), placesText(next.places), String(next.losses)];
    const requests = slots.map((slot) =>
      request(slot, ['EVALSHA', markerScript.sha, '1', this.#names.marker(stream, slot), before, ...after]),
    );
    const replies = await this.#router.run(requests, signal);
    replies.forEach((reply, at) => {
      if (reply instanceof Error) throw this.#failure(stream, slots[at] ?? 0, reply);
    });
    return replies.every((reply) => reply === 1);
  }

  #failure(stream: StreamRef, slot: number, error: Error): Error {
    const key = this.#names.marker(stream, slot);
    if (replyCode(error) === 'WRONGTYPE') {
      return noMarker(key, error.message);
    }
    return redisFailure(error, `slot ${slot}`);
  }
}

function request(slot: number, command: readonly string[]): SlotRequest {
  return { slot, command };
}

function streamName(stream: StreamRef): string {
  return `${stream.topic}:${stream.partition}`;
}

function oldest(copies: readonly Copy[]): Copy | null {
  return copies.reduce<Copy | null>((a, b) => (a === null || b.counter < a.counter ? b : a), null);
}

function newest(copies: readonly Copy[]): Copy | null {
  return copies.reduce<Copy | null>((a, b) => (a === null || b.counter > a.counter ? b : a), null);
}

/** Nothing to mend: no copy at all, or equal ones exactly at home. */
function isWhole(found: readonly Copy[], marker: Copy | null, home: readonly CopyPlace[]): boolean {
  if (marker === null) return found.length === 0;
  const list = placesText(home);
  const same = found.filter(
    ({ text, counter, places, losses }) =>
      text === marker.text && counter === marker.counter && losses === marker.losses && placesText(places) === list,
  );
  return same.length === found.length && found.length === home.length;
}
