/**
 * Who may write: the producer id and epoch of a name (a transactional id, without transactions).
 *
 * 1. `takeOver` raises the epoch whoever holds the name. `raise` does it only for the current holder: a predecessor that
 *    was frozen and wakes must not take the name back from its successor, and is refused by the coordinator.
 * 2. Where the coordinator has forgotten the name it gives another id, against which the partitions do not compare. Then a
 *    record is written under the old id with the highest epoch there is, and its holder is refused from then on. (Any
 *    higher epoch would do; the highest also shuts out a holder that has raised its own since.)
 * 3. A holder that is given another id, though its epochs are not used up, was forgotten: it was away for longer than the
 *    coordinator remembers, and whether it had successors meanwhile nobody knows. It is over, as if it had been refused.
 */
import { transportErrors } from '@mysync/transport';
import { refusal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { CODE, isDenied } from './protocol/codes.ts';
import {
  INIT_PRODUCER_ID,
  initProducerIdAnswer,
  initProducerIdRequest,
  type ProducerNumbers,
} from './protocol/init-producer-id.ts';
import { HIGHEST_EPOCH } from './shut-out.ts';

/** From this epoch on the coordinator answers with another id. */
const LAST_EPOCH = HIGHEST_EPOCH - 1;

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

  /** Throws TRANSPORT_FENCED when a successor holds the name, or may have held it. Repeating it after a lost answer is safe. */
  async raise(holder: ProducerNumbers): Promise<ProducerNumbers> {
    return await this.#init(holder);
  }

  async #init(holder: ProducerNumbers | null): Promise<ProducerNumbers> {
    const { admission } = this.#cluster.options;
    const right = `produce as ${this.#name}`;
    this.#coordinator ??= await this.#cluster.coordinator('transaction', this.#name);
    try {
      const link = await this.#cluster.link(this.#coordinator, 'producer-id');
      const request = initProducerIdRequest(this.#cluster.options.clientId, this.#name, holder);
      const answer = initProducerIdAnswer(await link.send(request, INIT_PRODUCER_ID));
      if (answer.error === 0) {
        admission.given(right);
        const { producerId, producerEpoch } = answer;
        if (holder === null || holder.producerId === producerId || holder.producerEpoch >= LAST_EPOCH) {
          return { producerId, producerEpoch };
        }
        throw fenced(this.#name, holder, 'the coordinator had forgotten this publisher: it was away for too long');
      }
      if (answer.error === CODE.INVALID_PRODUCER_EPOCH || answer.error === CODE.PRODUCER_FENCED) {
        throw fenced(this.#name, holder, 'a newer publisher of this name is active');
      }
      if (isDenied(answer.error)) {
        const message = 'this user may not write under the producer name';
        throw admission.denied(right, message, { producer: this.#name });
      }
      throw refusal(answer.error, `the producer '${this.#name}'`);
    } catch (error) {
      this.#coordinator = null;
      throw error;
    }
  }
}

function fenced(name: string, holder: ProducerNumbers | null, message: string): Error {
  return transportErrors.TRANSPORT_FENCED({
    message,
    where: { producer: name, ...(holder === null ? {} : { id: `${holder.producerId}`, epoch: holder.producerEpoch }) },
  });
}
