/** The answer to a Produce v8 request that holds one batch. */
import { WireReader } from './wire.ts';

export interface ProduceAnswer {
  readonly error: number;
  /** Offset of the batch's first record; -1 where the broker does not know it any more. */
  readonly baseOffset: number;
  /** Index within the batch of the first record that was refused, where the broker says so. */
  readonly refusedRecord: number | null;
  readonly message: string;
}

export function produceAnswer(payload: Buffer): ProduceAnswer {
  const reader = new WireReader(payload);
  let answer: ProduceAnswer | null = null;
  reader.array(() => {
    reader.string();
    reader.array(() => {
      reader.int32(); // partition
      const error = reader.int16();
      const baseOffset = reader.offset();
      reader.int64(); // append time
      reader.int64(); // log start offset
      const refused = reader.array(() => ({ index: reader.int32(), message: reader.string() ?? '' }));
      const message = reader.string() ?? refused[0]?.message ?? '';
      answer = { error, baseOffset, refusedRecord: refused[0]?.index ?? null, message };
    });
  });
  if (answer === null) throw new RangeError('the answer to Produce names no partition');
  return answer;
}
