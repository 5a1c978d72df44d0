/** Fetch v11, without a fetch session: every request names its partitions. */
import { API } from './codes.ts';
import { type Api, beginFrame, endFrame } from './frame.ts';
import { WireReader } from './wire.ts';

export const FETCH: Api = { key: API.fetch, name: 'Fetch', version: 11, flexible: false };

export interface FetchPosition {
  readonly partition: number;
  readonly offset: number;
  readonly maxBytes: number;
}

export interface FetchedPartition {
  readonly partition: number;
  readonly error: number;
  readonly highWatermark: number;
  /** Whole record batches, perhaps with the beginning of one more. A view of the answer. */
  readonly bytes: Buffer;
}

export function fetchRequest(
  clientId: string,
  topic: string,
  positions: readonly FetchPosition[],
  limits: { readonly maxWaitMs: number; readonly maxBytes: number },
): Buffer {
  const writer = beginFrame(FETCH, clientId)
    .int32(-1) // no replica
    .int32(limits.maxWaitMs)
    .int32(1) // least bytes
    .int32(limits.maxBytes)
    .int8(0) // read uncommitted: nothing of ours is transactional
    .int32(0) // no session
    .int32(-1)
    .int32(1)
    .string(topic)
    .int32(positions.length);
  for (const { partition, offset, maxBytes } of positions) {
    writer.int32(partition).int32(-1).int64(offset).int64(-1).int32(maxBytes);
  }
  return endFrame(writer.int32(0).string(''));
}

const NOTHING = Buffer.alloc(0);

export function fetchAnswer(payload: Buffer): { readonly error: number; readonly partitions: FetchedPartition[] } {
  const reader = new WireReader(payload);
  reader.int32(); // throttle time
  const error = reader.int16();
  reader.int32(); // session
  const partitions: FetchedPartition[] = [];
  reader.array(() => {
    reader.string();
    reader.array(() => {
      const partition = reader.int32();
      const code = reader.int16();
      const highWatermark = reader.offset();
      reader.int64(); // last stable offset
      reader.int64(); // log start offset
      reader.array(() => {
        reader.int64();
        reader.int64();
      });
      reader.int32(); // preferred replica
      const length = reader.int32();
      const bytes = length <= 0 ? NOTHING : reader.slice(length);
      partitions.push({ partition, error: code, highWatermark, bytes });
    });
  });
  return { error, partitions };
}
