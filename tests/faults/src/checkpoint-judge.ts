import { comparePlaces, readChange, type SourcePlace } from './source-place.ts';

/** A checkpoint as it was seen, as far as it is judged by. */
interface Seen {
  readonly place: SourcePlace;
  readonly epoch: number;
  /** Of each partition: the offset up to which the checkpoint covers it. */
  readonly marks: readonly number[];
  /** Of each partition: where the log ended, looked at after the checkpoint. */
  readonly ends: readonly (number | undefined)[];
}

/** Kept; when there are more, every other one is let go, and only every other one is taken from then on: they lie over the whole run. */
const MOST_SEEN = 200;
/** Says again what was the last change: it may name one that lies far ahead of what is read again. */
const HEARTBEAT = 8;

/**
 * Holds checkpoints that were seen against the whole log: whatever the source holds before a checkpoint's position must have been stored when that was saved. Pure.
 *
 * 1. A mark lies before the log's end.
 * 2. No message of a place before a checkpoint's position lies where the log had not yet come when the checkpoint was seen.
 * 3. None that the checkpoint's own reader (its epoch, or a later one) published lies behind the checkpoint's mark of its partition. What a predecessor published there is its tail:
 *    the successor has found it stored and does not publish it again, so its marks stay before it until the position has passed the last of it.
 *
 * Messages that are there once more (the window went back, so their sequence was there before) say nothing, and a log that was made anew begins anew: its checkpoints name another topic id.
 */
export class CheckpointJudge {
  readonly complaints: string[] = [];
  /** Checkpoints that were looked at. */
  looks = 0;
  /** Messages that lie before a checkpoint that was seen. */
  held = 0;
  #seen: Seen[] = [];
  #distinct = 0;
  /** One in so many of the distinct ones is kept. */
  #every = 1;
  #last = '';
  #topicId = '';
  readonly #told = new Set<string>();
  /** Highest sequence of each partition, of what was offered. */
  readonly #highest = new Map<number, number>();

  /** `text`: as it is stored (docs/spec/checkpoint.md). `ends`: looked at after it. */
  see(text: string, ends: readonly (number | undefined)[]): void {
    const { position, epoch, topic, partitions } = JSON.parse(text.split('\n')[1] ?? '') as Stored;
    this.looks += 1;
    for (const [partition, { offset }] of partitions.entries()) {
      const end = ends[partition];
      if (end !== undefined && offset >= end) {
        this.complaints.push(`checkpoint of partition ${partition} at offset ${offset}, but the log ends at ${end}`);
      }
    }
    if (topic.id !== this.#topicId) this.#seen = [];
    this.#topicId = topic.id;
    const marks = partitions.map(({ offset }) => offset);
    const essence = JSON.stringify([position.file, position.offset, epoch, marks]);
    if (essence === this.#last || position.file === '') return;
    this.#last = essence;
    this.#distinct += 1;
    if (this.#distinct % this.#every !== 0) return;
    this.#seen.push({ place: position, epoch, marks, ends: [...ends] });
    if (this.#seen.length < MOST_SEEN) return;
    this.#seen = this.#seen.filter((_, index) => index % 2 === 1);
    this.#every *= 2;
  }

  /** The next message of one partition of the whole log. */
  offer(partition: number, offset: number, message: Uint8Array): void {
    const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
    const epoch = view.getUint32(3, true);
    const sequence = Number(view.getBigUint64(22, true));
    if (sequence <= (this.#highest.get(partition) ?? 0)) return;
    this.#highest.set(partition, sequence);
    const change = readChange(message);
    if (change === null || change.operation === HEARTBEAT) return;
    let isBefore = false;
    let tooFar: string | undefined;
    for (const { place, epoch: by, marks, ends } of this.#seen) {
      if (comparePlaces(change, place) >= 0) continue;
      isBefore = true;
      const mark = marks[partition] ?? Number.POSITIVE_INFINITY;
      const end = ends[partition] ?? Number.POSITIVE_INFINITY;
      if (offset < end && (epoch < by || offset <= mark)) continue;
      tooFar = `a checkpoint of epoch ${by} stands at ${place.file}:${place.offset}, partition ${partition} at offset ${mark} of ${end}`;
      break;
    }
    if (isBefore) this.held += 1;
    // of each checkpoint and partition once
    if (tooFar === undefined || this.#told.has(tooFar)) return;
    this.#told.add(tooFar);
    const what = `the change of ${change.file}:${change.offset} (epoch ${epoch}, sequence ${sequence})`;
    this.complaints.push(`checkpoint ahead of the acks: ${tooFar}, but ${what} was stored at ${offset}`);
  }
}

interface Stored {
  readonly position: SourcePlace;
  readonly epoch: number;
  readonly topic: { readonly id: string };
  readonly partitions: readonly { readonly offset: number }[];
}
