/** Guarantees, each with the line that keeps it broken. The suite must notice within ten seeds, or the test that is named. */
import type { TransportName } from './setting.ts';

export interface Edit {
  /** A compiled file, from the root. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

interface Broken {
  readonly name: string;
  readonly edits: readonly Edit[];
}

/** Seeds show it. */
export interface SeedMutation extends Broken {
  readonly transport: TransportName;
  /** The kinds of fault that bring it out: random schedules rarely hit it. */
  readonly focus: string;
}

/** It takes an operator's act, or more than a seed can set up: a test shows it. */
export interface TestMutation extends Broken {
  /** A compiled test file, from the root. */
  readonly test: string;
}

export type Mutation = SeedMutation | TestMutation;

const LOOP = 'services/writer/dist/partition-loop.js';
const SCRIPT = 'libs/sink-redis/dist/script.js';
const LOG_PUBLISHER = 'libs/transport-log/dist/publisher.js';
const RESYNC = 'services/reader/dist/table-resync.js';
const RESYNC_TEST = 'services/reader/dist/table-resync.test.js';
const PARKED = 'services/writer/dist/parked-keys.js';
const POISON_TEST = 'services/writer/dist/partition-poison.test.js';
const DESK = 'services/writer/dist/poison-desk.js';
const PLAN = 'services/mysync/dist/recover-plan.js';
const PLAN_TEST = 'services/mysync/dist/recover-plan.test.js';
const ELASTICSEARCH_PLAN = 'libs/sink-elasticsearch/dist/plan.js';
const CHECKPOINT = 'libs/checkpoint/dist/text-store.js';

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
        replace: 'last.end = end; this.#moveTo(end, isChange);',
      },
    ],
  },
  {
    // nothing is lost by it while no reader dies: only the checkpoints that were seen tell
    name: 'a checkpoint whose position is ahead of its marks',
    transport: 'log',
    focus: 'kill writer',
    edits: [
      {
        file: 'libs/flow/dist/checkpoint-tracker.js',
        find: 'return { end: this.#end, partitions };',
        replace:
          'return { end: (this.#groups.length > 0 ? this.#groups.at(this.#groups.length - 1).end : null) ?? this.#end, partitions };',
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
        find: 'newer = sub(old, 1, 16) < sub(record, 1, 16)',
        replace: 'newer = true',
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
    name: 'a cluster that changed hands is not filled again',
    transport: 'log',
    focus: 'slots move to a master that is lost',
    edits: [
      {
        file: 'services/writer/dist/sink-applier.js',
        find: 'stored?.holders !== undefined && stored.holders !== holders',
        replace: 'false',
      },
    ],
  },
  {
    name: 'a restored Elasticsearch is filled from its marker on',
    transport: 'log',
    focus: 'elasticsearch restored from a backup',
    edits: [
      {
        file: 'services/writer/dist/sink-applier.js',
        find: 'if (found !== null && records > 0)',
        replace: 'if (found === null)',
      },
    ],
  },
  {
    name: 'a transaction that was published in part counts as published',
    transport: 'log',
    focus: 'reader killed inside a transaction',
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
    name: 'verify leaves rows whose deletions were lost',
    transport: 'log',
    focus: 'past the tombstones',
    edits: [
      {
        file: 'services/verifier/dist/table-verifier.js',
        find: 'if (record.version <= limit && !this.#seen.has(record.target))',
        replace: 'if (false)',
      },
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
  {
    name: 'a table that is read again: the checkpoint passes the cause before the rows are acked',
    test: RESYNC_TEST,
    edits: [{ file: RESYNC, find: 'return this.#wanted.size > 0;', replace: 'return false;' }],
  },
  {
    name: 'a table that is read again: a view that is older than the stream is taken',
    test: RESYNC_TEST,
    edits: [
      {
        file: RESYNC,
        find: 'if (isOurs && compareBinlogPositions(snapshot.position, at) >= 0 && isBehind(snapshot.position, ahead))',
        replace: 'if (snapshot.position.file !== "")',
      },
    ],
  },
  {
    name: 'a table that is read again: its rows count as newer than what follows them',
    test: RESYNC_TEST,
    edits: [
      {
        file: 'services/reader/dist/change-router.js',
        find: 'counter: this.#counter + 1 };',
        replace: 'counter: this.#counter + 1000 };',
      },
    ],
  },
  {
    name: 'a change of a parked key does not wait behind it',
    test: POISON_TEST,
    edits: [
      {
        file: PARKED,
        find: 'if (change.version < BigInt(entry.version) || change.offset <= entry.offset)',
        replace: 'if (change.offset > entry.offset) return false; if (true)',
      },
    ],
  },
  {
    name: 'a release applies what was refused first, not the newest',
    test: POISON_TEST,
    edits: [
      {
        file: DESK,
        find: 'new Map([[key, entry.from]]), entry.offset + 1)',
        replace: 'new Map([[key, entry.first]]), entry.first + 1)',
      },
      {
        file: DESK,
        find: 'if (state?.whole === true && state.change.version === BigInt(entry.version))',
        replace: 'if (state?.whole === true)',
      },
    ],
  },
  {
    name: 'a dead letter is applied as it was put away',
    test: 'services/writer/dist/letters.test.js',
    edits: [{ file: DESK, find: 'let until = nextOffset;', replace: 'let until = 0;' }],
  },
  {
    name: 'a recovery begins at the marker that is furthest ahead',
    test: PLAN_TEST,
    edits: [
      {
        file: PLAN,
        find: 'compareBinlogPositions(floor, lowest) < 0',
        replace: 'compareBinlogPositions(floor, lowest) > 0',
      },
    ],
  },
  {
    name: 'a recovery forgets the versions that sinks hold already',
    test: PLAN_TEST,
    edits: [{ file: PLAN, find: 'floors.push(known);', replace: 'void known;' }],
  },
  {
    name: 'a recovery forgets the rows that are set aside',
    test: PLAN_TEST,
    edits: [{ file: PLAN, find: 'of marker.parked ?? [])', replace: 'of [])' }],
  },
  {
    name: 'of the changes of one key in a batch the oldest is applied, not the newest',
    transport: 'log',
    focus: 'kill writer',
    edits: [{ file: 'services/writer/dist/collapse.js', find: 'let next = change;', replace: 'return true;' }],
  },
  {
    name: 'what was rolled back to a savepoint is published',
    test: 'libs/source-mysql/dist/servers.mysql.test.js',
    edits: [
      {
        file: 'libs/source-mysql/dist/stream/transaction-assembler.js',
        find: 'if (!this.#spool.rollbackTo(meaning.name)) {',
        replace: 'if (false) {',
      },
    ],
  },
  {
    name: 'an emptied table takes newer rows along',
    test: 'libs/sink-redis/dist/conformance.redis.test.js',
    edits: [
      {
        file: SCRIPT,
        find: "sub(old, 17, 17) == '+' and sub(old, 1, 16) < version",
        replace: "sub(old, 17, 17) == '+'",
      },
    ],
  },
  {
    name: 'the marker moves before its documents are there (Elasticsearch)',
    test: 'libs/sink-elasticsearch/dist/faults.elasticsearch.test.js',
    edits: [
      {
        file: 'libs/sink-elasticsearch/dist/sink.js',
        find: 'signal.throwIfAborted();',
        replace: 'await this.#markers.move(stream, marker, signal);',
      },
    ],
  },
  {
    name: 'a restored index is taken for what it was (Elasticsearch)',
    test: 'libs/sink-elasticsearch/dist/restore.elasticsearch.test.js',
    edits: [
      {
        file: 'libs/sink-elasticsearch/dist/index-registry.js',
        find: 'if (identity === uuid || markers !== entry.markers)',
        replace: 'if (true)',
      },
    ],
  },
  {
    name: 'lost deletions count as mended though a table was not compared',
    test: 'services/verifier/dist/lost-deletions.test.js',
    edits: [
      {
        file: 'services/verifier/dist/lost-deletions.js',
        find: 'tables.length === 0 || uncompared > 0',
        replace: 'false',
      },
    ],
  },
  {
    name: 'verify takes a change under way for a difference',
    test: 'services/verifier/dist/suspects.test.js',
    edits: [
      { file: 'services/verifier/dist/suspects.js', find: 'const SAME_TIMES = 3;', replace: 'const SAME_TIMES = 1;' },
    ],
  },
  {
    name: 'a repair writes over what is newer',
    test: 'libs/sink-redis/dist/conformance.redis.test.js',
    edits: [
      {
        file: 'libs/sink-redis/dist/inspector.js',
        find: "({ kind: 'put', ...row, version, offset: -1 })",
        replace: "({ kind: 'put', ...row, version: version + (1n << 62n), offset: -1 })",
      },
    ],
  },
  {
    name: 'a publisher that was replaced takes its name back (Kafka)',
    transport: 'kafka',
    focus: 'reader replaced while frozen',
    edits: [
      {
        file: 'libs/transport-kafka/dist/producer-name.js',
        find: 'return await this.#init(holder);',
        replace: 'return await this.#init(null);',
      },
    ],
  },
  {
    name: 'a commit of a partition that was given up (Kafka)',
    test: 'libs/transport-kafka/dist/conformance.kafka.test.js',
    edits: [{ file: 'libs/transport-kafka/dist/group-offsets.js', find: 'if (isOwned())', replace: 'if (true)' }],
  },
  {
    name: 'a commit of a partition that was given up (log)',
    test: 'libs/transport-log/dist/conformance.test.js',
    edits: [
      {
        file: 'libs/transport-log/dist/membership.js',
        find: 'return false;\n    putOwnership(place, partition, { ...ownership, committed',
        replace: 'void token;\n    putOwnership(place, partition, { ...ownership, committed',
      },
    ],
  },
  {
    name: 'a checkpoint of an older epoch replaces a newer one',
    test: 'libs/checkpoint-mysql/dist/mysql-store.mysql.test.js',
    edits: [
      { file: CHECKPOINT, find: 'if (epoch !== replaces)', replace: 'if (false)' },
      { file: CHECKPOINT, find: 'if (epoch !== null && checkpoint.epoch < epoch)', replace: 'if (false)' },
    ],
  },
  {
    name: 'a version left out (Elasticsearch)',
    test: 'libs/sink-elasticsearch/dist/conformance.elasticsearch.test.js',
    edits: [
      {
        file: ELASTICSEARCH_PLAN,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of the line that is broken
        find: ',"version":${change.version},"version_type":"${versionType}"}}',
        replace: '}}',
      },
      {
        file: ELASTICSEARCH_PLAN,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: likewise
        find: ',"version":${change.version},"version_type":"external"}}',
        replace: '}}',
      },
    ],
  },
];
