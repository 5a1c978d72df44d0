/**
 * A publisher of the log.
 *
 * 1. The producer epoch is compared inside the transaction that appends: however long a process was frozen between its
 *    call and its append, once a successor was opened (or `renumber` called) nothing of the old epoch is stored.
 * 2. Each batch has a sequence per partition. The expected one is stored; one that is already there is answered with its
 *    offset (a commit whose answer was lost); any other one is refused, so a batch never lands behind a missing one.
 * 3. After a refusal every later call is refused until `renumber`, so that the caller decides what goes again.
 */
import { isMysyncError, type MysyncError } from '@mysync/core';
import { type OutgoingRecord, type ProducerIdentity, type Publisher, transportErrors } from '@mysync/transport';
import { encodeBody, encodedBytes, findTooLarge, RECORD_OVERHEAD_BYTES, stampBatch } from './batch-codec.ts';
import type { TopicEntry } from './layout.ts';
import { batchKey, metaKey, type PartitionState, type ProducerEntry, type ProducerState } from './layout.ts';
import { closedError, type Store } from './store.ts';
import { requirePartition, topicMissing } from './topics.ts';

export interface LogPublisherOptions {
  readonly store: Store;
  readonly topic: string;
  readonly entry: TopicEntry;
  readonly producer: string;
  readonly identity: ProducerIdentity;
  readonly maxBatchBytes: number;
  readonly maxRecordBytes: number;
  readonly onClose: (publisher: LogPublisher) => void;
}

const OPEN_BATCHES = 5;
const KEPT_BUFFERS = 16;
const KEPT_BUFFER_BYTES = 4 * 2 ** 20;
const noProducer: ProducerState = { epoch: 0, next: 0, bases: [] };

/** Buffers that a batch is encoded into; the store has copied them when the append is done. */
class BufferPool {
  readonly #free: Buffer[] = [];

  take(bytes: number): Buffer {
    for (let index = this.#free.length - 1; index >= 0; index--) {
      const buffer = this.#free[index];
      if (buffer !== undefined && buffer.length >= bytes) {
        this.#free.splice(index, 1);
        return buffer;
      }
    }
    // one that is not kept has no need to fit others
    const size = bytes > KEPT_BUFFER_BYTES ? bytes : Math.max(4096, 2 ** Math.ceil(Math.log2(bytes)));
    return Buffer.allocUnsafeSlow(size);
  }

  give(buffer: Buffer): void {
    if (buffer.length > KEPT_BUFFER_BYTES) return;
    if (this.#free.length === KEPT_BUFFERS) this.#free.shift();
    this.#free.push(buffer);
  }
}

/** Takes the producer's next epoch. With `held`, only when that is still the current one. */
export function raiseEpoch(
  store: Store,
  producer: string,
  newId: string,
  held?: ProducerIdentity,
): Promise<ProducerIdentity> {
  return store.write(() => {
    const found = store.read<ProducerEntry>(metaKey.producer(producer));
    if (held !== undefined && (found?.id !== held.id || found.epoch !== held.epoch)) throw fenced(producer, held);
    const raised: ProducerEntry = { id: found?.id ?? newId, epoch: (found?.epoch ?? 0) + 1 };
    store.put(metaKey.producer(producer), raised);
    return raised;
  });
}

function fenced(producer: string, identity: ProducerIdentity): MysyncError {
  return transportErrors.TRANSPORT_FENCED({
    message: `producer epoch ${identity.epoch} of '${producer}' is over: a successor is active`,
    where: { producer, epoch: identity.epoch },
  });
}

function renumberFirst(
  message: string,
  where: Readonly<Record<string, string | number>>,
  cause?: unknown,
): MysyncError {
  return transportErrors.TRANSPORT_RENUMBER({ message, where, cause });
}

export class LogPublisher implements Publisher {
  readonly maxOpenBatches = OPEN_BATCHES;
  readonly maxBatchBytes: number;
  readonly #options: LogPublisherOptions;
  readonly #pool = new BufferPool();
  readonly #open = new Set<Promise<unknown>>();
  #identity: ProducerIdentity;
  /** Per partition the sequence of the next batch. */
  #sequences: number[] = [];
  /** Rises with each renumber call: older calls that have not reached the store yet must not. */
  #numbering = 0;
  #refused: MysyncError | undefined;
  #closed = false;

  constructor(options: LogPublisherOptions) {
    this.#options = options;
    this.#identity = options.identity;
    this.maxBatchBytes = options.maxBatchBytes;
  }

  get identity(): ProducerIdentity {
    return this.#identity;
  }

  get surelyTakenBytes(): number {
    return this.#options.maxRecordBytes - RECORD_OVERHEAD_BYTES;
  }

  takes(record: OutgoingRecord): boolean {
    return findTooLarge([record], this.#options.maxRecordBytes) < 0;
  }

  publish(partition: number, records: readonly OutgoingRecord[]): Promise<{ readonly baseOffset: number }> {
    const { topic, entry, maxRecordBytes } = this.#options;
    if (this.#closed) return Promise.reject(closedError());
    if (this.#refused !== undefined) return Promise.reject(this.#laterRefusal(this.#refused, partition));
    try {
      requirePartition(entry, topic, partition);
    } catch (error) {
      return Promise.reject(error);
    }
    const tooLarge = findTooLarge(records, maxRecordBytes);
    if (tooLarge >= 0) {
      const error = transportErrors.TRANSPORT_RECORD_TOO_LARGE({
        message: `record ${tooLarge} of a batch is larger than ${maxRecordBytes} bytes`,
        where: { topic, partition, record: tooLarge, bytes: encodedBytes(records.slice(tooLarge, tooLarge + 1)) },
      });
      this.#refused = error;
      return Promise.reject(error);
    }
    const answer = this.#append(partition, records);
    this.#open.add(answer);
    const settled = (): void => {
      this.#open.delete(answer);
    };
    answer.then(settled, settled);
    return answer;
  }

  async #append(partition: number, records: readonly OutgoingRecord[]): Promise<{ readonly baseOffset: number }> {
    const { store } = this.#options;
    const sequence = this.#sequences[partition] ?? 0;
    this.#sequences[partition] = sequence + 1;
    const numbering = this.#numbering;
    const bytes = encodedBytes(records);
    const buffer = this.#pool.take(bytes);
    const batch = buffer.subarray(0, bytes);
    encodeBody(batch, records);
    try {
      const baseOffset = await store.write(() => {
        if (this.#refused !== undefined) throw this.#laterRefusal(this.#refused, partition);
        if (numbering !== this.#numbering)
          throw renumberFirst('renumbered before it was stored', this.#where(partition));
        return this.#store(partition, sequence, batch, records.length);
      }, bytes);
      return { baseOffset };
    } catch (cause) {
      // Whether a commit that the disk refused can be seen after all is not known: the caller sends again.
      const error = isMysyncError(cause, 'LOG_WRITE_FAILED')
        ? renumberFirst('the disk refused a commit', this.#where(partition), cause)
        : cause;
      if (numbering === this.#numbering && isMysyncError(error)) this.#refused ??= error;
      throw error;
    } finally {
      this.#pool.give(buffer);
    }
  }

  /** Inside the write transaction: looks at everything, then writes. */
  #store(partition: number, sequence: number, batch: Buffer, count: number): number {
    const { store, topic, entry, producer } = this.#options;
    const known = store.read<ProducerEntry>(metaKey.producer(producer));
    const { id, epoch } = this.#identity;
    if (known?.id !== id || known.epoch !== epoch) throw fenced(producer, this.#identity);
    const state = store.partition(entry.id, partition);
    if (state === undefined) throw topicMissing(topic);
    const before = state.producers[producer];
    const mine = before?.epoch === epoch ? before : { ...noProducer, epoch };
    if (sequence !== mine.next) {
      const repeated = mine.bases[mine.bases.length - (mine.next - sequence)];
      if (sequence < mine.next && repeated !== undefined) return repeated;
      throw renumberFirst(`batch ${sequence} came where ${mine.next} was expected`, this.#where(partition));
    }
    store.checkRoom(batch.length);
    const base = state.end;
    stampBatch(batch, base, store.options.clock.now());
    store.putBatch(batchKey(entry.id, partition, base), batch);
    const bases = [...mine.bases.slice(1 - OPEN_BATCHES), base];
    const after: PartitionState = {
      ...state,
      end: base + count,
      bytes: state.bytes + batch.length,
      producers: { ...state.producers, [producer]: { epoch, next: sequence + 1, bases } },
    };
    store.put(metaKey.partition(entry.id, partition), after);
    store.addSize(batch.length);
    store.announce(`${entry.id}/${partition}`);
    return base;
  }

  async renumber(): Promise<ProducerIdentity> {
    if (this.#closed) throw closedError();
    const { store, producer } = this.#options;
    if (isMysyncError(this.#refused, 'TRANSPORT_FENCED')) throw this.#refused;
    const numbering = ++this.#numbering;
    this.#refused ??= renumberFirst('renumbering is going on', { producer });
    try {
      const identity = await raiseEpoch(store, producer, this.#identity.id, this.#identity);
      if (numbering === this.#numbering) {
        this.#identity = identity;
        this.#sequences = [];
        this.#refused = undefined;
      }
      return identity;
    } catch (error) {
      if (isMysyncError(error, 'TRANSPORT_FENCED')) this.#refused = error;
      throw error;
    }
  }

  async close(drainMs = 10_000): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const drained = Promise.allSettled([...this.#open]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, drainMs);
    });
    await Promise.race([drained, late]);
    clearTimeout(timer);
    // What the drain time was too short for is not stored any more.
    this.#numbering++;
    this.#options.onClose(this);
  }

  #where(partition: number): Record<string, string | number> {
    return { topic: this.#options.topic, partition };
  }

  #laterRefusal(first: MysyncError, partition: number): MysyncError {
    if (first.code === 'TRANSPORT_FENCED') return first;
    return renumberFirst('an earlier batch was refused', this.#where(partition), first);
  }
}
