import type { Clock } from '@mysync/core';
import type { AssignedPartition, IncomingRecord } from '@mysync/transport';
import { keyKind, MessageDecoder, payloadOf } from '@mysync/wire';

export interface LookAheadOptions {
  readonly assigned: Pick<AssignedPartition, 'batches'>;
  /** The end of the log as it was seen last; what lies before it is known. */
  readonly from: number;
  readonly onEnd: (endOffset: number) => void;
  /** Commit time of the oldest change behind `from`, in microseconds since 1970. */
  readonly onChange: (commitTimeMicros: number) => void;
  readonly clock: Clock;
}

/**
 * What waits in the log while the sink does not say where to resume: reads up to the first change, and no further (docs/adr/0206).
 *
 * A partition that was assigned at the log's end has read nothing; without this its lag would be zero for as long as its sink is away.
 */
export class LookAhead {
  readonly #options: LookAheadOptions;
  readonly #ended = new AbortController();
  #reading: Promise<void> | null = null;

  constructor(options: LookAheadOptions) {
    this.#options = options;
  }

  /** The sink does not answer. */
  begin(): void {
    if (this.#ended.signal.aborted) return;
    // what fails here is met again by whoever reads the log next
    this.#reading ??= this.#read().catch(() => undefined);
  }

  async end(): Promise<void> {
    this.#ended.abort();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { assigned, from, onEnd, onChange } = this.#options;
    for await (const batch of assigned.batches(from, this.#ended.signal)) {
      if (this.#ended.signal.aborted) return;
      onEnd(Math.max(batch.endOffset, batch.nextOffset));
      for (const record of batch.records) {
        const micros = this.#commitTime(record);
        if (micros !== null) return onChange(micros);
      }
    }
  }

  /** null for a record that changes no row. */
  #commitTime(record: IncomingRecord): number | null {
    try {
      const kind = keyKind(record.key);
      const payload = payloadOf(record);
      if (kind === 'heartbeat' || kind === 'fence' || payload === null) return null;
      return new MessageDecoder().decode(payload).source.commitTimeMicros;
    } catch {
      // it cannot be read, and halts the partition once it is its turn: until then it waits
      return this.#options.clock.now() * 1000;
    }
  }
}
