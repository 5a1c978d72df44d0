import { type Checkpoint, coversHead, type PartitionCheckpoint } from '@mysync/checkpoint';
import { isMysyncError, type MysyncError, NO_CHANGE, NO_POSITION, type SourcePosition } from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type { ServerIdentity } from '@mysync/source-mysql';
import type { OffsetRange, OutgoingRecord, Publisher, TopicDescription } from '@mysync/transport';
import { encodeControl, encodeTransaction, toRecord } from '@mysync/wire';
import { CheckpointKeeper } from './checkpoint-keeper.ts';
import { readerErrors } from './errors.ts';
import type { ReaderOptions } from './options.ts';
import { type PartitionTail, readTail, untouched } from './tail.ts';

/** Everything the reader knows once it may publish. */
export interface StartState {
  readonly server: ServerIdentity;
  readonly topic: TopicDescription;
  readonly keeper: CheckpointKeeper;
  readonly publisher: Publisher;
  /** Of this reader: above all that were ever used. */
  readonly epoch: number;
  readonly covered: readonly PartitionCheckpoint[];
  readonly tails: readonly PartitionTail[];
  /** Offsets of our fences. */
  readonly fences: readonly number[];
  /** Where to read the log from; null: take a snapshot first. */
  readonly position: SourcePosition | null;
  readonly transactionCounter: number;
}

const COUNTER_EPOCH_SECONDS = Date.UTC(2020, 0, 1) / 1000;

/**
 * Where a transaction counter starts when none is known: past whatever an earlier life may have used
 * (4096 transactions a second, every second since 2020).
 */
export function counterFromClock(nowMs: number): number {
  return Math.floor((nowMs / 1000 - COUNTER_EPOCH_SECONDS) * 4096);
}

/**
 * Takes the place of whoever published before: checks that checkpoint, server and topic belong together, fences the
 * predecessor, then finds what it got in (design: fencing, tail recovery).
 *
 * 1. The producer epoch is raised and saved, then a fence is stored in each partition: nothing of a predecessor can land behind it.
 * 2. The tail is read up to that fence; the new epoch is above every epoch in it, and saved before its first use.
 */
export async function start(options: ReaderOptions, signal: AbortSignal): Promise<StartState> {
  const { source, transport, checkpoints, clock, logger } = options;
  const loaded = await checkpoints.load();
  if (loaded !== null && loaded.source !== options.sourceName) {
    const message = `the checkpoint is of source '${loaded.source}', not '${options.sourceName}'`;
    throw readerErrors.READER_CHECKPOINT_OF_OTHER_SOURCE({ message, where: { source: options.sourceName } });
  }
  // a server or a broker that does not answer is waited for for long: a stop is not
  const resumes = loaded !== null && loaded.snapshot.state !== 'running';
  const server = await unlessAborted(source.identify({ resumes }), signal);
  const topic = await unlessAborted(transport.ensureTopic(options.topic), signal);
  const ranges = await unlessAborted(transport.offsetRanges(topic.name), signal);
  const { sourceName } = options;
  const [foreign] = belongingErrors({ sourceName, loaded, serverUuid: server.uuid, topic, ranges });
  if (foreign !== undefined) throw foreign;
  await settleHistory(options, loaded);
  const keeper = new CheckpointKeeper({ store: checkpoints, loaded, clock, logger });
  const covered = loaded?.partitions ?? ranges.map(untouched);
  const publisher = await transport.openPublisher({
    topic: topic.name,
    producer: `mysync-${options.sourceName}`,
    previous: loaded?.producer ?? null,
    fenceRecord: () => fenceRecord(options),
    signal,
  });
  // What a stop finds unanswered is not waited for.
  const onStop = (): void => void publisher.close(0).catch(() => undefined);
  signal.addEventListener('abort', onStop, { once: true });
  try {
    await keeper.save(
      loaded === null ? first(options, server, topic, covered, publisher) : { producer: publisher.identity },
    );
    const fences = await storeFences(options, publisher, keeper, topic.partitions);
    const tails = await Promise.all(
      covered.map((from, partition) =>
        readTail({ transport, topic, partition, from, fence: fences[partition] ?? 0, signal }),
      ),
    );
    // A tail that was cut short by a stop must not be taken for the whole.
    signal.throwIfAborted();
    const epoch = Math.max(loaded?.epoch ?? 0, ...tails.map((tail) => tail.highestEpoch)) + 1;
    const position = resumes ? loaded.position : await unlessAborted(firstPosition(options), signal);
    const transactionCounter = counterFor(options, loaded, tails);
    await keeper.save({
      epoch,
      transactionCounter,
      configFingerprint: options.configFingerprint,
      schemaHistory: options.schemaHistory?.head ?? null,
      // without a snapshot to take, the position is settled: the next start resumes and does not begin anew
      ...(!resumes && position !== null ? { position, snapshot: { state: 'none', completeTables: [] } } : {}),
    });
    return { server, topic, keeper, publisher, epoch, covered, tails, fences, position, transactionCounter };
  } catch (error) {
    await publisher.close(0);
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onStop);
  }
}

/** A schema history that is not the one that the checkpoint took down, or lacks a part of it, begins anew: nothing in it is trusted. */
async function settleHistory({ schemaHistory, logger }: ReaderOptions, loaded: Checkpoint | null): Promise<void> {
  if (schemaHistory === undefined) return;
  const stored = await schemaHistory.load();
  if (loaded !== null && loaded.snapshot.state !== 'running' && coversHead(stored, loaded.schemaHistory)) return;
  if (loaded?.schemaHistory != null && loaded.snapshot.state !== 'running') {
    logger.warn({}, 'the schema history does not go with the checkpoint: definitions of tables are asked for anew');
  }
  await schemaHistory.begin();
}

function first(
  options: ReaderOptions,
  server: ServerIdentity,
  topic: TopicDescription,
  partitions: readonly PartitionCheckpoint[],
  publisher: Publisher,
): Checkpoint {
  return {
    source: options.sourceName,
    position: NO_POSITION,
    serverUuid: server.uuid,
    transactionCounter: 0,
    epoch: 0,
    producer: publisher.identity,
    topic: { name: topic.name, id: topic.id, partitions: topic.partitions },
    configFingerprint: options.configFingerprint,
    partitions,
    snapshot: { state: 'running', completeTables: [] },
    schemaHistory: null,
    savedAt: '',
  };
}

/** null: a snapshot is to be taken. */
async function firstPosition({ start: startAt, source }: ReaderOptions): Promise<SourcePosition | null> {
  if (startAt === 'snapshot') return null;
  if (startAt === 'latest') return await source.currentPosition();
  if (startAt === 'earliest') return await source.earliestPosition();
  return { ...startAt, gtidSet: '' };
}

/** Unchanged while the configuration is the same; past all used values otherwise, and where nothing is known. */
function counterFor(options: ReaderOptions, loaded: Checkpoint | null, tails: readonly PartitionTail[]): number {
  const known = loaded !== null && loaded.snapshot.state !== 'running';
  if (known && loaded.configFingerprint === options.configFingerprint) return loaded.transactionCounter;
  const used = Math.max(loaded?.transactionCounter ?? 0, ...tails.map((tail) => tail.highestCounter));
  return Math.max(used + 1, counterFromClock(options.clock.now()));
}

/** What a checkpoint, its server and its topic must have in common. */
interface Belonging {
  readonly sourceName: string;
  readonly loaded: Checkpoint | null;
  readonly serverUuid: string;
  readonly topic: TopicDescription;
  readonly ranges: readonly OffsetRange[];
}

/** Why a start would be refused: a start throws the first. Empty when all belong together. */
export function belongingErrors({ sourceName, loaded, serverUuid, topic, ranges }: Belonging): readonly MysyncError[] {
  const where = { source: sourceName, topic: topic.name };
  const errors: MysyncError[] = [];
  if (loaded === null) {
    if (ranges.every((range) => range.end === range.earliest)) return errors;
    const message = 'the log holds messages, but there is no checkpoint that says which';
    return [readerErrors.READER_LOG_WITHOUT_CHECKPOINT({ message, where })];
  }
  const sameTopic = loaded.topic.id === topic.id && loaded.topic.partitions === topic.partitions;
  if (!sameTopic) {
    const message = `the checkpoint is of topic '${loaded.topic.name}' with id ${loaded.topic.id} and ${loaded.topic.partitions} partitions; now '${topic.name}' has id ${topic.id} and ${topic.partitions}`;
    errors.push(readerErrors.READER_TOPIC_CHANGED({ message, where }));
  }
  if (loaded.serverUuid !== serverUuid) {
    const message = `the checkpoint is of server ${loaded.serverUuid}, this is ${serverUuid}`;
    errors.push(readerErrors.READER_SERVER_CHANGED({ message, where }));
  }
  if (!sameTopic) return errors;
  for (const [partition, range] of ranges.entries()) {
    const offset = loaded.partitions[partition]?.offset ?? -1;
    if (offset + 1 >= range.earliest && offset < range.end) continue;
    const message = `the checkpoint knows offset ${offset} of partition ${partition}, the log holds ${range.earliest} to ${range.end}`;
    errors.push(readerErrors.READER_LOG_TRUNCATED({ message, where: { ...where, partition } }));
  }
  return errors;
}

function fenceRecord({ sourceName, clock }: ReaderOptions): OutgoingRecord {
  const commitTimeMicros = clock.now() * 1000;
  const transaction = encodeTransaction({ source: sourceName, serverUuid: '', id: NO_CHANGE, commitTimeMicros });
  const { key, payload } = encodeControl({ operation: 'fence', transaction, ordinal: 0 });
  return toRecord(key, payload, false);
}

/** Stores one fence in each partition; gives their offsets. */
async function storeFences(
  options: ReaderOptions,
  publisher: Publisher,
  keeper: CheckpointKeeper,
  partitions: number,
): Promise<number[]> {
  for (;;) {
    try {
      const stored = Array.from({ length: partitions }, (_, partition) =>
        publisher.publish(partition, [fenceRecord(options)]),
      );
      const results = await Promise.allSettled(stored);
      const failed = results.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return results.map((result) => (result.status === 'fulfilled' ? result.value.baseOffset : -1));
    } catch (error) {
      if (!isMysyncError(error, 'TRANSPORT_RENUMBER')) throw error;
      await keeper.save({ producer: await publisher.renumber() });
    }
  }
}
