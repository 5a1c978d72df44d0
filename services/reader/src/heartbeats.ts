import { encodeControl, encodeTransaction } from '@mysync/wire';
import type { ReaderOptions } from './options.ts';
import { pause } from './pause.ts';
import type { Standing } from './standing.ts';
import type { WindowFeed } from './window-feed.ts';

export interface HeartbeatsOptions {
  readonly reader: Pick<ReaderOptions, 'sourceName' | 'heartbeatMs' | 'clock'>;
  readonly serverUuid: string;
  readonly feed: WindowFeed;
  readonly standing: Standing;
}

/** A heartbeat goes into every partition now and then: an idle partition's consumers and checkpoint still move (ADR 0102). */
export class Heartbeats {
  readonly #options: HeartbeatsOptions;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
  }

  async run(stop: AbortSignal): Promise<void> {
    const { reader, feed, standing } = this.#options;
    while (await pause(reader.clock.sleep(reader.heartbeatMs, stop), stop)) {
      for (const partition of feed.lastChanges.keys()) {
        if (!feed.hasRoom(partition)) continue;
        const waiting = this.#beat(partition);
        if (waiting !== null) await waiting;
      }
      standing.settleIdle();
      feed.flush();
    }
  }

  #beat(partition: number): Promise<void> | null {
    const { reader, serverUuid, feed, standing } = this.#options;
    const last = feed.lastChanges[partition];
    if (last === undefined) return null;
    const { ordinal } = last;
    const { id, counter } = last.transaction;
    const block = encodeTransaction({
      source: reader.sourceName,
      serverUuid,
      id,
      commitTimeMicros: standing.timeMicros,
    });
    const message = encodeControl({ operation: 'heartbeat', transaction: block, ordinal });
    // Its version and its change are those of one and the same message, or a successor would misjudge how far the log is.
    const transaction = { id, counter, commitTimeMicros: reader.clock.now() * 1000 };
    return feed.put(partition, { message, transaction, ordinal, versionOrdinal: 0 });
  }
}
