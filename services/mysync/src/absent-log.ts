import type { Finding } from '@mysync/core';
import { type Transport, transportErrors } from '@mysync/transport';

/** An embedded log that nobody has made yet, for whoever only looks: it has no topic. */
export class AbsentLog implements Transport {
  readonly kind = 'log';

  describeTopic(): Promise<null> {
    return Promise.resolve(null);
  }

  check(): Promise<readonly Finding[]> {
    return Promise.resolve([]);
  }

  ensureTopic(spec: { readonly name: string }): Promise<never> {
    return missing(spec.name);
  }

  offsetRanges(topic: string): Promise<never> {
    return missing(topic);
  }

  committedOffsets(topic: string): Promise<never> {
    return missing(topic);
  }

  openPublisher({ topic }: { readonly topic: string }): Promise<never> {
    return missing(topic);
  }

  // biome-ignore lint/correctness/useYield: there is nothing to read
  async *read({ topic }: { readonly topic: string }): AsyncGenerator<never> {
    await missing(topic);
  }

  openConsumer({ topic }: { readonly topic: string }): Promise<never> {
    return missing(topic);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function missing(topic: string): Promise<never> {
  return Promise.reject(
    transportErrors.TRANSPORT_TOPIC_MISSING({ message: `there is no topic '${topic}'`, where: { topic } }),
  );
}
