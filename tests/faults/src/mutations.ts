/** Guarantees, each with the line that keeps it broken. The suite must notice within ten seeds. */
import type { TransportName } from './setting.ts';

export interface Edit {
  /** A compiled file, from the root. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  readonly transport: TransportName;
  /** The kinds of fault that bring it out: random schedules rarely hit it. */
  readonly focus: string;
  readonly edits: readonly Edit[];
}

const LOOP = 'services/writer/dist/partition-loop.js';
const SCRIPT = 'libs/sink-redis/dist/script.js';
const LOG_PUBLISHER = 'libs/transport-log/dist/publisher.js';

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a commit before the apply',
    transport: 'log',
    focus: 'way to redis delays',
    edits: [
      {
        file: LOOP,
        find: 'const start = clock.monotonic();',
        replace:
          'if (unit.progress !== null) this.#committer.applied(unit.progress.nextOffset); const start = clock.monotonic();',
      },
    ],
  },
  {
    name: 'a checkpoint of the last, not of the contiguous ack',
    transport: 'log',
    focus: 'reader killed over a full log',
    edits: [
      {
        file: 'libs/flow/dist/checkpoint-tracker.js',
        find: 'last.end = end;',
        replace: 'last.end = end; this.#moveTo(end);',
      },
    ],
  },
  {
    name: 'a guard that accepts gaps',
    transport: 'kafka',
    focus: 'a stranger writes into the log',
    edits: [
      {
        file: 'libs/flow/dist/sequence-guard.js',
        find: 'if (this.#strict || gap > missing)',
        replace: 'if (this.#strict)',
      },
    ],
  },
  {
    name: 'a rewind that skips one',
    transport: 'log',
    focus: 'full disk',
    edits: [
      {
        file: 'libs/flow/dist/ack-window.js',
        find: 'this.#generationBase = this.#base;',
        replace:
          'if (this.#items.length > 0) { this.#bytes -= this.#sizes.shift(); this.#items.shift(); this.#base++; } this.#generationBase = this.#base;',
      },
    ],
  },
  {
    name: 'a version left out',
    transport: 'log',
    focus: 'redis filled again',
    edits: [
      {
        file: SCRIPT,
        find: 'local newer = not old or sub(old, 1, 16) < sub(record, 1, 16)',
        replace: 'local newer = true',
      },
    ],
  },
  {
    // two lines: a predecessor's epoch is refused, and so are its numbers
    name: 'a fence left out',
    transport: 'log',
    focus: 'reader replaced while frozen',
    edits: [
      { file: LOG_PUBLISHER, find: 'if (known?.id !== id || known.epoch !== epoch)', replace: 'if (known?.id !== id)' },
      {
        file: LOG_PUBLISHER,
        find: 'if (sequence !== mine.next) {',
        replace: 'if (before?.epoch === epoch && sequence !== mine.next) {',
      },
    ],
  },
  {
    name: 'a marker that is not compared',
    transport: 'log',
    focus: 'freeze writer past its lease',
    edits: [
      {
        file: SCRIPT,
        find: "if (stored[1] and '+' .. stored[1] or '-') ~= A[2] then return {'moved', stored[1] or '', stored[1] and 1 or 0} end",
        replace: '',
      },
    ],
  },
  {
    name: 'going on where the writer was, not at the marker',
    transport: 'log',
    focus: 'redis restored,redis loses',
    edits: [
      {
        file: LOOP,
        find: 'this.#nextOffset = marker.nextOffset;',
        replace: 'this.#nextOffset = Math.max(this.#nextOffset, marker.nextOffset);',
      },
      {
        file: LOOP,
        find: 'this.#batches(marker.nextOffset, interrupt.signal)',
        replace: 'this.#batches(this.#nextOffset, interrupt.signal)',
      },
    ],
  },
  {
    name: 'a transaction that was published in part counts as published',
    transport: 'log',
    focus: 'reader killed over a full log',
    edits: [
      {
        file: 'services/reader/dist/change-router.js',
        find: 'if (compareBinlogPositions(frontier.change, id) > 0)',
        replace: 'if (compareBinlogPositions(frontier.change, id) >= 0)',
      },
    ],
  },
  {
    name: 'forgotten deletions are passed over',
    transport: 'log',
    focus: 'past the tombstones',
    edits: [
      { file: LOOP, find: 'if (clock.now() - since <= deleteRetentionMs)', replace: 'if (clock.now() >= since)' },
    ],
  },
  {
    name: 'an emptied sink is filled in silence',
    transport: 'log',
    focus: 'redis emptied',
    edits: [
      {
        file: 'services/writer/dist/sink-applier.js',
        find: 'if (!hasCommitted() && this.#markerText === null)',
        replace: 'if (stored === null)',
      },
    ],
  },
  {
    name: 'a log that was made anew is taken for the old one',
    transport: 'log',
    focus: 'log removed',
    edits: [
      {
        file: 'services/reader/dist/startup.js',
        find: 'const sameTopic = loaded.topic.id === topic.id && loaded.topic.partitions === topic.partitions;',
        replace: 'const sameTopic = loaded.topic.partitions === topic.partitions;',
      },
    ],
  },
];
