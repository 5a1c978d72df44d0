/**
 * Request frames: size, api key, api version, correlation id, client id, body. The correlation id is written when the
 * frame is sent, since the same frame may be sent again over another connection.
 */
import { WireWriter } from './wire.ts';

export interface Api {
  readonly key: number;
  readonly name: string;
  readonly version: number;
  /** Flexible versions have tagged fields in the header too. */
  readonly flexible: boolean;
}

const CORRELATION_AT = 8;

export function beginFrame(api: Api, clientId: string): WireWriter {
  const writer = new WireWriter().int32(0).int16(api.key).int16(api.version).int32(0).string(clientId);
  return api.flexible ? writer.noTags() : writer;
}

export function endFrame(writer: WireWriter): Buffer {
  const frame = writer.take();
  frame.writeInt32BE(frame.length - 4, 0);
  return frame;
}

export function stampCorrelation(frame: Buffer, correlationId: number): void {
  frame.writeInt32BE(correlationId, CORRELATION_AT);
}
