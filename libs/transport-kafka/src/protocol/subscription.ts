/**
 * What group members say of themselves and are told, in the format of Kafka's own consumers (ConsumerProtocolSubscription v2
 * and ConsumerProtocolAssignment v0), so that Kafka's tools can show the group.
 */
import { WireReader, WireWriter } from './wire.ts';

export interface Subscription {
  readonly topic: string;
  /** Partitions that the member holds while it joins. */
  readonly owned: readonly number[];
  /** Generation in which it got them; -1 for none. */
  readonly generation: number;
}

export function encodeSubscription({ topic, owned, generation }: Subscription): Buffer {
  const writer = new WireWriter().int16(2).int32(1).string(topic).int32(-1);
  if (owned.length === 0) writer.int32(0);
  else {
    writer.int32(1).string(topic).int32(owned.length);
    for (const partition of owned) writer.int32(partition);
  }
  return writer.int32(generation).take();
}

/** null for a member of another kind: one that does not say what it holds, or reads another topic. */
export function decodeSubscription(bytes: Buffer, topic: string): Subscription | null {
  const reader = new WireReader(bytes);
  const version = reader.int16();
  const topics = reader.array(() => reader.string());
  const userData = reader.int32();
  if (userData > 0) reader.slice(userData);
  if (version < 2 || !topics.includes(topic)) return null;
  let owned: number[] = [];
  reader.array(() => {
    const name = reader.string();
    const partitions = reader.array(() => reader.int32());
    if (name === topic) owned = partitions;
  });
  return { topic, owned, generation: reader.int32() };
}

export function encodeAssignment(topic: string, partitions: readonly number[]): Buffer {
  const writer = new WireWriter().int16(0).int32(1).string(topic).int32(partitions.length);
  for (const partition of partitions) writer.int32(partition);
  return writer.int32(-1).take();
}

export function decodeAssignment(bytes: Buffer, topic: string): number[] {
  // A member that joined too late for the leader's list gets no bytes.
  if (bytes.length === 0) return [];
  const reader = new WireReader(bytes);
  reader.int16();
  let mine: number[] = [];
  reader.array(() => {
    const name = reader.string();
    const partitions = reader.array(() => reader.int32());
    if (name === topic) mine = partitions;
  });
  return mine;
}
