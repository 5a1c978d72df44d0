/** Committed offsets: reading them, and committing under a membership. */
import { systemClock } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { transportErrors } from '@mysync/transport';
import { belonging } from './admission.ts';
import { BrokerError, hasCode, isFinal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import type { GroupMember } from './group-member.ts';
import { RETRY_MAX_MS, RETRY_MIN_MS } from './patience.ts';
import { CODE } from './protocol/codes.ts';

const NOT_SET = '-1';

/** The next offset to read per partition asked for, or null. Throws a `BrokerError` when it cannot be told at the moment. */
export async function fetchCommitted(
  cluster: Cluster,
  at: { readonly coordinator: number; readonly group: string; readonly topic: string },
  partitions: readonly number[],
): Promise<Map<number, number | null>> {
  const link = await cluster.link(at.coordinator, 'commit');
  const topics = [{ topic: at.topic, partitions: partitions.map((partition) => ({ partition })) }];
  const answer = await link.call((broker) => broker.offsetFetch({ groupId: at.group, topics }), belonging(at.group));
  const found = answer.responses.flatMap((response) => response.partitions);
  return new Map(found.map(({ partition, offset }) => [partition, offset === NOT_SET ? null : Number(offset)]));
}

interface Pending {
  offset: number;
  readonly isOwned: () => boolean;
  readonly settle: { resolve: () => void; reject: (error: Error) => void }[];
}

/**
 * Commits of one member.
 *
 * 1. One request at a time; what comes meanwhile goes together in the next.
 * 2. A commit has an effect only under a membership that the coordinator accepts; what is no longer owned is refused here
 *    without asking.
 * 3. A rebalance in progress and lost coordinators are waited out while the partition is owned.
 */
export class OffsetCommitter {
  readonly #cluster: Cluster;
  readonly #group: string;
  readonly #topic: string;
  readonly #member: GroupMember;
  #pending = new Map<number, Pending>();
  #running = false;

  constructor(options: { cluster: Cluster; group: string; topic: string; member: GroupMember }) {
    this.#cluster = options.cluster;
    this.#group = options.group;
    this.#topic = options.topic;
    this.#member = options.member;
  }

  commit(partition: number, offset: number, isOwned: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = this.#pending.get(partition);
      if (pending === undefined) this.#pending.set(partition, { offset, isOwned, settle: [{ resolve, reject }] });
      else {
        pending.offset = offset;
        pending.settle.push({ resolve, reject });
      }
      if (!this.#running) {
        this.#running = true;
        // Never rejects: every failure settles the commits it concerns.
        void this.#run();
      }
    });
  }

  async #run(): Promise<void> {
    while (this.#pending.size > 0) {
      const batch = this.#pending;
      this.#pending = new Map();
      try {
        await this.#send(batch);
        for (const { settle } of batch.values()) for (const { resolve } of settle) resolve();
      } catch (error) {
        for (const { settle } of batch.values()) for (const { reject } of settle) reject(error as Error);
      }
    }
    this.#running = false;
  }

  async #send(batch: Map<number, Pending>): Promise<void> {
    const backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
    for (;;) {
      for (const [partition, { isOwned, settle }] of batch) {
        if (isOwned()) continue;
        batch.delete(partition);
        for (const { reject } of settle) reject(this.#notOwner(partition));
      }
      if (batch.size === 0) return;
      const { membership } = this.#member;
      try {
        if (membership === null) throw new BrokerError(CODE.REBALANCE_IN_PROGRESS, 'not a member at the moment');
        const link = await this.#cluster.link(await this.#member.coordinator(), 'commit');
        const partitions = [...batch].map(([partition, { offset }]) => ({ partition, offset: `${offset}` }));
        await link.call(
          (broker) =>
            broker.offsetCommit({
              groupId: this.#group,
              groupGenerationId: membership.generation,
              memberId: membership.memberId,
              retentionTime: '-1',
              topics: [{ topic: this.#topic, partitions }],
            }),
          belonging(this.#group),
        );
        return;
      } catch (error) {
        if (isFinal(error)) throw error;
        if (hasCode(error, CODE.UNKNOWN_MEMBER_ID, CODE.ILLEGAL_GENERATION) && membership !== null) {
          // Of a generation that has passed meanwhile it says nothing; of the present one it is the loss.
          this.#member.refused(membership, (error as BrokerError).code as number);
        } else if (!hasCode(error, CODE.REBALANCE_IN_PROGRESS)) {
          this.#member.forgetCoordinator();
        }
        await systemClock.sleep(backoff.next());
      }
    }
  }

  #notOwner(partition: number): Error {
    return transportErrors.TRANSPORT_NOT_OWNER({
      message: 'the partition is not ours any more: the commit had no effect',
      where: { group: this.#group, topic: this.#topic, partition },
    });
  }
}
