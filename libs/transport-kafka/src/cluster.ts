/**
 * What one client (a publisher, a consumer, the transport itself) knows of the cluster, and its connections.
 *
 * 1. A link is named by node and lane; a lane keeps requests that may wait at the broker (joins, fetches) from those
 *    that must not, since a broker answers the requests of one connection one after another.
 * 2. Nothing here retries: a call that fails has dropped its link, and the caller decides.
 * 3. Metadata is asked for only when the caller finds that what it knows is wrong; it never makes a topic.
 */
import { causeText, systemClock } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { BrokerError, isFinal, NO_ANSWER, refusal } from './broker-error.ts';
import { BrokerLink } from './broker-link.ts';
import { parseAddress, type ResolvedKafkaOptions } from './options.ts';
import { CODE } from './protocol/codes.ts';
import {
  type ClusterMetadata,
  METADATA,
  metadataAnswer,
  metadataRequest,
  type NodeAddress,
  type TopicMetadata,
} from './protocol/metadata.ts';

export type CoordinatorKind = 'group' | 'transaction';

const ASK = 'ask';
const AVOID_MS = 30_000;

export class Cluster {
  readonly options: ResolvedKafkaOptions;
  readonly #links = new Map<string, Promise<BrokerLink>>();
  readonly #nodes = new Map<number, NodeAddress>();
  /** When a node did not answer: it is asked last for a while, since finding out can take a connection's whole time limit. */
  readonly #failedAt = new Map<string, number>();
  #turn = 0;
  #closed = false;

  constructor(options: ResolvedKafkaOptions) {
    this.options = options;
  }

  /** Asks any node for the cluster and the topics named. Throws TRANSPORT_UNREACHABLE when none answers. */
  async metadata(topics: readonly string[]): Promise<ClusterMetadata> {
    const metadata = await this.anyNode(async (link) => {
      const payload = await link.send(metadataRequest(this.options.clientId, topics), METADATA);
      return metadataAnswer(payload);
    });
    if (metadata.nodes.length > 0) this.#nodes.clear();
    for (const node of metadata.nodes) this.#nodes.set(node.nodeId, node);
    return metadata;
  }

  /** The topic as the cluster has it now, or null. Throws a `BrokerError` when the cluster cannot say yet. */
  async topic(name: string): Promise<TopicMetadata | null> {
    const topic = (await this.metadata([name])).topics[0];
    if (topic === undefined || topic.error === CODE.UNKNOWN_TOPIC_OR_PARTITION) return null;
    if (topic.error !== 0) throw refusal(topic.error, `metadata of the topic '${name}'`);
    return topic;
  }

  /** The open connection to a node in a lane; made when there is none. */
  async link(nodeId: number, lane: string, requestTimeoutMs?: number): Promise<BrokerLink> {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) throw new BrokerError(NO_ANSWER, `node ${nodeId} is not known`);
    return await this.#linkTo(`${nodeId}/${lane}`, nodeId, node, requestTimeoutMs);
  }

  /** The node that keeps a group, or the producers of a name. */
  async coordinator(kind: CoordinatorKind, name: string): Promise<number> {
    const { coordinator } = await this.anyNode((link) =>
      link.call((broker) => broker.findGroupCoordinator({ groupId: name, coordinatorType: kind === 'group' ? 0 : 1 })),
    );
    this.#nodes.set(coordinator.nodeId, coordinator);
    return coordinator.nodeId;
  }

  /** Runs a request on the first node that answers: known ones, then those of the configuration. */
  async anyNode<T>(request: (link: BrokerLink) => Promise<T>): Promise<T> {
    const known = [...this.#nodes.values()].map((node) => ({ name: `${node.nodeId}/${ASK}`, node }));
    const seeds = this.options.brokers.map((broker) => {
      const node = { nodeId: -1, ...parseAddress(broker) };
      return { name: `${broker}/${ASK}`, node };
    });
    const start = this.#turn++;
    const failures: string[] = [];
    for (const list of [known, seeds]) {
      for (const choice of this.#inTurn(list, start)) {
        try {
          return await request(await this.#linkTo(choice.name, choice.node.nodeId, choice.node));
        } catch (error) {
          if (!(error instanceof BrokerError) || error.code !== NO_ANSWER || isFinal(error)) throw error;
          failures.push(causeText(error));
          this.#failedAt.set(choice.name, systemClock.monotonic());
        }
      }
    }
    throw transportErrors.TRANSPORT_UNREACHABLE({
      message: `no broker answers (${[...new Set(failures)].slice(0, 3).join('; ')})`,
      where: { brokers: this.options.brokers.join(',') },
    });
  }

  /** Rotated by the turn; those that failed lately come last. */
  #inTurn<T extends { readonly name: string }>(list: readonly T[], start: number): T[] {
    const since = systemClock.monotonic() - AVOID_MS;
    const late = (choice: T): number => ((this.#failedAt.get(choice.name) ?? Number.NEGATIVE_INFINITY) > since ? 1 : 0);
    const turned = list.map((_, index) => list[(start + index) % list.length] as T);
    return turned.sort((a, b) => late(a) - late(b));
  }

  /** Drops every connection; the next call makes new ones. What is open is rejected. */
  reset(): void {
    const links = [...this.#links.values()];
    this.#links.clear();
    for (const link of links) {
      link.then(
        (open) => open.close(),
        () => {}, // never was open
      );
    }
  }

  close(): void {
    this.#closed = true;
    this.reset();
  }

  async #linkTo(name: string, nodeId: number, node: NodeAddress, requestTimeoutMs?: number): Promise<BrokerLink> {
    if (this.#closed) throw transportErrors.TRANSPORT_CLOSED({ message: 'the client was closed' });
    const known = this.#links.get(name);
    if (known !== undefined) {
      const link = await known.catch(() => null);
      if (link?.alive && link.address === `${node.host}:${node.port}`) return link;
      link?.close();
      if (this.#links.get(name) === known) this.#links.delete(name);
      return await this.#linkTo(name, nodeId, node, requestTimeoutMs);
    }
    const opening = BrokerLink.open(nodeId, node, this.options, requestTimeoutMs);
    this.#links.set(name, opening);
    try {
      const link = await opening;
      // Closed or reset while it was being opened.
      if (this.#links.get(name) !== opening) link.close();
      return link;
    } catch (error) {
      if (this.#links.get(name) === opening) this.#links.delete(name);
      throw error;
    }
  }
}
