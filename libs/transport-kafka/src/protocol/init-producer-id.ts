/**
 * InitProducerId v4: with the caller's own producer id and epoch (KIP-360, since v3), so that the coordinator raises the
 * epoch only for the current holder. kafkajs ends at v1, which would take the id back from a successor.
 */
import { API } from './codes.ts';
import { type Api, beginFrame, endFrame } from './frame.ts';
import { WireReader } from './wire.ts';

export const INIT_PRODUCER_ID: Api = { key: API.initProducerId, name: 'InitProducerId', version: 4, flexible: true };

export interface ProducerNumbers {
  readonly producerId: bigint;
  readonly producerEpoch: number;
}

/** Of transactions, which are not used; the coordinator demands a value within its limit. */
const TRANSACTION_TIMEOUT_MS = 60_000;

/** `holder` null: takes the id over from whoever has it. */
export function initProducerIdRequest(clientId: string, name: string, holder: ProducerNumbers | null): Buffer {
  return endFrame(
    beginFrame(INIT_PRODUCER_ID, clientId)
      .compactString(name)
      .int32(TRANSACTION_TIMEOUT_MS)
      .int64(holder?.producerId ?? -1n)
      .int16(holder?.producerEpoch ?? -1)
      .noTags(),
  );
}

export function initProducerIdAnswer(payload: Buffer): { readonly error: number } & ProducerNumbers {
  const reader = new WireReader(payload);
  reader.skipTags();
  reader.int32(); // throttle time
  const error = reader.int16();
  const producerId = reader.int64();
  const producerEpoch = reader.int16();
  return { error, producerId, producerEpoch };
}
