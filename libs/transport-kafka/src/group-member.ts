/**
 * Membership in a consumer group: join, sync, heartbeats, leave. It knows nothing of records.
 *
 * 1. Heartbeats come from a timer, whatever the handlers do: an apply of minutes keeps its partitions.
 * 2. Rebalancing is cooperative: while the group rebalances, the partitions that stay go on.
 * 3. Membership is lost when the coordinator says so, or when it has not answered for a whole session: then another
 *    member may hold our partitions, and everything is revoked before anything else.
 * 4. Every failure that may pass is met by finding the coordinator and joining again, for ever. The loop ends only when it
 *    is stopped, or with an error that no repetition mends.
 */
import { Contact, causeText, type Outage, systemClock } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { belonging } from './admission.ts';
import { assignPartitions, type Candidate } from './assignor.ts';
import { type BrokerError, hasCode, isFinal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { kafkaErrors } from './errors.ts';
import { RETRY_MAX_MS, RETRY_MIN_MS } from './patience.ts';
import { CODE } from './protocol/codes.ts';
import { decodeAssignment, decodeSubscription, encodeAssignment, encodeSubscription } from './protocol/subscription.ts';
import { Reporter } from './reporter.ts';

const PROTOCOL_TYPE = 'consumer';
const PROTOCOL = 'mysync-cooperative';
const MAX_HEARTBEAT_MS = 1_000;

export interface Membership {
  readonly memberId: string;
  readonly generation: number;
}

export interface GroupMemberOptions {
  readonly cluster: Cluster;
  readonly group: string;
  readonly topic: string;
  readonly partitions: number;
  /** What is held and not yet given up at this moment. */
  readonly owned: () => readonly number[];
  /** The partitions of this generation. Those held and not named must be given up, followed by `rejoin`. */
  readonly onAssigned: (partitions: readonly number[]) => void;
  /** Nothing is held any more. */
  readonly onLost: () => void;
}

export class GroupMember {
  readonly #options: GroupMemberOptions;
  readonly #cluster: Cluster;
  readonly #backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
  readonly #reporter: Reporter;
  readonly #sessionTimeoutMs: number;
  readonly #heartbeatMs: number;
  #memberId = '';
  #membership: Membership | null = null;
  /** Generation in which the partitions now held were assigned; -1 for none. */
  #heldSince = -1;
  #coordinator: number | null = null;
  /** When the last request was sent that the coordinator answered well. */
  #heardAt = 0;
  #rejoin = false;
  /** With the group: a member that is heard of. */
  readonly #contact = new Contact();
  #wake = new AbortController();

  constructor(options: GroupMemberOptions) {
    this.#options = options;
    this.#cluster = options.cluster;
    this.#reporter = new Reporter(options.cluster.options.observer, { group: options.group });
    this.#sessionTimeoutMs = options.cluster.options.sessionTimeoutMs;
    this.#heartbeatMs = Math.min(MAX_HEARTBEAT_MS, this.#sessionTimeoutMs / 3);
  }

  /** null while not a member. */
  get membership(): Membership | null {
    return this.#membership;
  }

  /** While it runs: since when the group was not joined, or its coordinator not heard. */
  get outage(): Outage | null {
    return this.#contact.outage;
  }

  async coordinator(): Promise<number> {
    this.#coordinator ??= await this.#cluster.coordinator('group', this.#options.group);
    return this.#coordinator;
  }

  forgetCoordinator(): void {
    this.#coordinator = null;
  }

  /** Asks for another round: something was given up. */
  rejoin(): void {
    this.#rejoin = true;
    this.#wake.abort();
  }

  /** The coordinator refused these numbers, seen by a commit. */
  refused(membership: Membership, code: number): void {
    if (this.#membership !== membership) return;
    this.#lose(code);
    this.rejoin();
  }

  /** Keeps the membership until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#wake.abort();
    signal.addEventListener('abort', wake);
    this.#contact.lost('joining the group', systemClock.monotonic());
    try {
      while (!signal.aborted) {
        try {
          await this.#join();
          this.#contact.made();
          this.#backoff.reset();
          this.#reporter.well();
          await this.#stay(signal);
        } catch (error) {
          if (signal.aborted) return;
          await this.#failed(error, signal);
        }
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  /** Tells the coordinator, so that the others need not wait for the session to end. Never throws. */
  async leave(): Promise<void> {
    const membership = this.#membership;
    this.#membership = null;
    if (membership === null) return;
    try {
      const link = await this.#cluster.link(await this.coordinator(), 'leave', this.#heartbeatMs * 3);
      await link.call(
        (broker) => broker.leaveGroup({ groupId: this.#options.group, memberId: membership.memberId }),
        belonging(this.#options.group),
      );
    } catch (error) {
      this.#reporter.trouble(`leaving the group: ${causeText(error)}`);
    }
  }

  async #join(): Promise<void> {
    const { group, topic } = this.#options;
    this.#rejoin = false;
    this.#wake = new AbortController();
    const link = await this.#link();
    const metadata = encodeSubscription({ topic, owned: this.#options.owned(), generation: this.#heldSince });
    let sentAt = systemClock.monotonic();
    const joined = await link.call(
      (broker) =>
        broker.joinGroup({
          groupId: group,
          sessionTimeout: this.#sessionTimeoutMs,
          rebalanceTimeout: this.#sessionTimeoutMs,
          memberId: this.#memberId,
          protocolType: PROTOCOL_TYPE,
          groupProtocols: [{ name: PROTOCOL, metadata }],
        }),
      belonging(group),
    );
    this.#heardAt = sentAt;
    const { memberId, generationId } = joined;
    this.#memberId = memberId;
    this.#membership = { memberId, generation: generationId };
    const groupAssignment = joined.leaderId === memberId ? this.#assign(joined.members) : [];
    sentAt = systemClock.monotonic();
    const synced = await link.call(
      (broker) => broker.syncGroup({ groupId: group, generationId, memberId, groupAssignment }),
      belonging(group),
    );
    this.#heardAt = sentAt;
    this.#heldSince = generationId;
    const partitions = decodeAssignment(synced.memberAssignment, topic);
    const { observer } = this.#cluster.options;
    observer.rebalanced?.({ group, generation: generationId, partitions: partitions.length });
    this.#options.onAssigned(partitions);
  }

  #assign(members: readonly { memberId: string; memberMetadata: Buffer }[]) {
    const { topic, partitions } = this.#options;
    const candidates: Candidate[] = [];
    for (const { memberId, memberMetadata } of members) {
      const subscription = decodeSubscription(memberMetadata, topic);
      if (subscription !== null) candidates.push({ memberId, ...subscription });
    }
    const given = assignPartitions(candidates, partitions);
    return [...given].map(([memberId, mine]) => ({ memberId, memberAssignment: encodeAssignment(topic, mine) }));
  }

  /** Heartbeats, until another round is due. */
  async #stay(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#rejoin) {
      const membership = this.#membership;
      if (membership === null) return;
      await systemClock.sleep(this.#heartbeatMs, this.#wake.signal).catch(() => {});
      if (signal.aborted || this.#rejoin) return;
      const link = await this.#link();
      const sentAt = systemClock.monotonic();
      try {
        await link.call(
          (broker) =>
            broker.heartbeat({
              groupId: this.#options.group,
              groupGenerationId: membership.generation,
              memberId: membership.memberId,
            }),
          belonging(this.#options.group),
        );
      } catch (error) {
        if (!hasCode(error, CODE.REBALANCE_IN_PROGRESS)) throw error;
        this.#heardAt = sentAt;
        return;
      }
      this.#heardAt = sentAt;
    }
  }

  async #failed(error: unknown, signal: AbortSignal): Promise<void> {
    // A rebalance that began anew: join it at once.
    if (hasCode(error, CODE.REBALANCE_IN_PROGRESS)) return;
    if (hasCode(error, CODE.UNKNOWN_MEMBER_ID, CODE.ILLEGAL_GENERATION, CODE.FENCED_INSTANCE_ID)) {
      this.#lose((error as BrokerError).code as number);
      return;
    }
    if (hasCode(error, CODE.INCONSISTENT_GROUP_PROTOCOL)) {
      throw kafkaErrors.KAFKA_GROUP_IN_USE({
        message: `the group '${this.#options.group}' has members of another kind`,
        where: { group: this.#options.group },
      });
    }
    if (hasCode(error, CODE.INVALID_SESSION_TIMEOUT)) {
      throw kafkaErrors.KAFKA_SESSION_TIMEOUT({
        message: `the broker refuses a session timeout of ${this.#sessionTimeoutMs} ms`,
        where: { group: this.#options.group, sessionTimeoutMs: this.#sessionTimeoutMs },
      });
    }
    if (hasCode(error, CODE.INVALID_GROUP_ID)) {
      throw kafkaErrors.KAFKA_OPTION_INVALID({
        message: `the broker refuses the group's name: ${causeText(error)}`,
        where: { group: this.#options.group },
      });
    }
    this.#coordinator = null;
    if (this.#membership !== null && systemClock.monotonic() - this.#heardAt > this.#sessionTimeoutMs) {
      // Perhaps nobody else was told: the same member id is offered again, and accepted if the coordinator still knows it.
      this.#membership = null;
      this.#heldSince = -1;
      this.#options.onLost();
    }
    // Denied rights count only at first: a broker that just started may not have read its users yet.
    if (isFinal(error) && this.#heardAt === 0) throw error;
    this.#contact.lost(causeText(error), systemClock.monotonic());
    this.#reporter.trouble(causeText(error));
    await systemClock.sleep(this.#backoff.next(), signal).catch(() => {});
  }

  #lose(code: number): void {
    if (code !== CODE.ILLEGAL_GENERATION) this.#memberId = '';
    this.#membership = null;
    this.#heldSince = -1;
    this.#options.onLost();
  }

  #link() {
    const timeoutMs = Math.min(this.#cluster.options.requestTimeoutMs, this.#sessionTimeoutMs / 2);
    return this.coordinator().then((node) => this.#cluster.link(node, 'group', timeoutMs));
  }
}
