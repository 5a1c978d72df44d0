/**
 * Who may write: the producer id and epoch of a name (a transactional id, without transactions).
 *
 * 1. `takeOver` raises the epoch whoever holds the name. `raise` does it only for the current holder: a predecessor that
 *    was frozen and wakes must not take the name back from its successor, and is refused by the coordinator.
 * 2. Where the coordinator has forgotten the name it gives another id, against which the partitions do not compare. Then a
 *    record is written under the old id with the highest epoch there is, and its holder is refused from then on. (Any
 *    higher epoch would do; the highest also shuts out a holder that has raised its own since.)
 */
import type { OutgoingRecord } from '@mysync/transport';
import { transportErrors } from '@mysync/transport';
import { denied, refusal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { CODE, isDenied } from './protocol/codes.ts';
import {
  INIT_PRODUCER_ID,
  initProducerIdAnswer,
  initProducerIdRequest,
  type ProducerNumbers,
} from './protocol/init-producer-id.ts';
import { produceAnswer } from './protocol/produce-answer.ts';
import { PRODUCE, ProduceEncoder } from './protocol/record-batch-encode.ts';

const HIGHEST_EPOCH = 32_767;

export class ProducerName {
  readonly #cluster: Cluster;
  readonly #name: string;
  #coordinator: number | null = null;

  constructor(cluster: Cluster, name: string) {
    this.#cluster = cluster;
    this.#name = name;
  }

  async takeOver(): Promise<ProducerNumbers> {
    return await this.#init(null);
  }

  /** Throws TRANSPORT_FENCED when a successor holds the name. Repeating it after a lost answer is safe. */
  async raise(holder: ProducerNumbers): Promise<ProducerNumbers> {
    return await this.#init(holder);
  }

  async #init(holder: ProducerNumbers | null): Promise<ProducerNumbers> {
    this.#coordinator ??= await this.#cluster.coordinator('transaction', this.#name);
    try {
      const link = await this.#cluster.link(this.#coordinator, 'producer-id');
      const request = initProducerIdRequest(this.#cluster.options.clientId, this.#name, holder);
      const answer = initProducerIdAnswer(await link.send(request, INIT_PRODUCER_ID));
      if (answer.error === 0) return answer;
      if (answer.error === CODE.INVALID_PRODUCER_EPOCH || answer.error === CODE.PRODUCER_FENCED) {
        throw fenced(this.#name, holder);
      }
      if (isDenied(answer.error)) {
        throw denied('this user may not write under the producer name', { producer: this.#name });
      }
      throw refusal(answer.error, `the producer '${this.#name}'`);
    } catch (error) {
      this.#coordinator = null;
      throw error;
    }
  }
}

export function fenced(name: string, holder: ProducerNumbers | null): Error {
  return transportErrors.TRANSPORT_FENCED({
    message: 'a newer publisher of this name is active',
    where: { producer: name, ...(holder === null ? {} : { id: `${holder.producerId}`, epoch: holder.producerEpoch }) },
  });
}

/** Codes that say: the partition already knows this id with an epoch at least as high, or this very batch. */
const ALREADY_SHUT: ReadonlySet<number> = new Set([
  CODE.INVALID_PRODUCER_EPOCH,
  CODE.PRODUCER_FENCED,
  CODE.DUPLICATE_SEQUENCE_NUMBER,
]);

/** Shuts an id out of one partition. Throws a `BrokerError` when it has to be tried again. */
export async function shutOut(
  cluster: Cluster,
  topic: string,
  place: { readonly partition: number; readonly leader: number },
  producerId: bigint,
  record: OutgoingRecord,
): Promise<void> {
  const { clientId, requestTimeoutMs } = cluster.options;
  const encoder = new ProduceEncoder({ clientId, topic, timeoutMs: requestTimeoutMs / 2, compression: 'none' });
  const buffer = Buffer.allocUnsafe(encoder.room([record]));
  const numbers = { producerId, producerEpoch: HIGHEST_EPOCH, firstSequence: 0 };
  const length = encoder.encode(buffer, place.partition, [record], numbers, Date.now());
  const link = await cluster.link(place.leader, 'fence');
  const answer = produceAnswer(await link.send(buffer.subarray(0, length), PRODUCE));
  if (answer.error === 0 || ALREADY_SHUT.has(answer.error)) return;
  if (isDenied(answer.error)) throw denied('this user may not write to the topic', { topic });
  throw refusal(answer.error, `the fence in ${topic}, partition ${place.partition}`);
}
