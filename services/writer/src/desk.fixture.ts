/** What is set aside by a partition loop in memory, and the desk that acts on it. */
import { parseMarker } from './marker.ts';
import type { ParkedKey } from './parked-keys.ts';
import { FastClock, type MemorySink } from './partition.fixture.ts';
import { PoisonDesk } from './poison-desk.ts';
import type { TestLog } from './test-log.fixture.ts';

export function parked(sink: MemorySink): readonly ParkedKey[] {
  return parseMarker(sink.marker ?? '', {}).parked ?? [];
}

export function desk(log: TestLog, sink: MemorySink): PoisonDesk {
  return new PoisonDesk({
    sink,
    sinkName: 'memory',
    log: log.reader,
    topic: { name: 'shop', id: 'topic-1', partitions: 1 },
    partition: 0,
    compacted: true,
    letterRecord: () => Promise.resolve(null),
    clock: new FastClock(),
    signal: new AbortController().signal,
  });
}
