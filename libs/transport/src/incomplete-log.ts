import type { TopicSpec, Transport } from './port.ts';

const KEY = Buffer.from('incomplete');

/**
 * Whether a topic lacks messages of rows that sinks already hold: it was made anew after the log was lost. Who fills a sink from it alone would miss
 * them. Noted in a topic beside it, so that writers see it wherever they run; the newest record counts.
 */
export class IncompleteLog {
  readonly #transport: Transport;
  readonly #spec: TopicSpec;

  /** `topic`: the spec of the topic that it is about. */
  constructor(transport: Transport, topic: TopicSpec) {
    this.#transport = transport;
    this.#spec = { ...topic, name: `${topic.name}.incomplete`, partitions: 1, compacted: false, retentionMs: -1 };
  }

  async read(signal?: AbortSignal): Promise<boolean> {
    const { name: topic } = this.#spec;
    if ((await this.#transport.describeTopic(topic)) === null) return false;
    const [range] = await this.#transport.offsetRanges(topic);
    if (range === undefined || range.end === range.earliest) return false;
    const { end: until } = range;
    const from = Math.max(range.earliest, until - 1);
    let incomplete = false;
    for await (const { records } of this.#transport.read({
      topic,
      partition: 0,
      from,
      until,
      ...(signal === undefined ? {} : { signal }),
    })) {
      for (const { value } of records) incomplete = value !== null;
    }
    signal?.throwIfAborted();
    return incomplete;
  }

  /** Resolves when it is stored. `since`: the place in the source's log before which messages are missing. */
  async note(since: string): Promise<void> {
    await this.#write(Buffer.from(JSON.stringify({ since })));
  }

  /** Every row is in the log again. */
  async filled(): Promise<void> {
    if (await this.read()) await this.#write(null);
  }

  async #write(value: Uint8Array | null): Promise<void> {
    const { name: topic } = this.#spec;
    await this.#transport.ensureTopic(this.#spec);
    const publisher = await this.#transport.openPublisher({ topic, producer: `mysync-note-${topic}`, previous: null });
    try {
      await publisher.publish(0, [{ key: KEY, value, headers: [] }]);
    } finally {
      await publisher.close();
    }
  }
}
