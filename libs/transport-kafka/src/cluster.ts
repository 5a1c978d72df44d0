/**
 * What one client (a publisher, a consumer, the transport itself) knows of the cluster, and its connections.
 *
 * 1. A link is named by node and lane; a lane keeps requests that may wait at the broker (joins, fetches) from those
 *    that must not, since a broker answers the requests of one connection one after another.
 * 2. Nothing here retries: a call that fails has dropped its link, and the caller decides.
 * 3. Metadata is asked for only when the caller finds that what it knows is wrong; it never makes a topic.
 * 4. Where any node will do, one that did not answer lately, to whatever request, is asked last, and the others are not waited for long: brokers
 *    answer such questions from memory. Only when none did so are they given the whole of `requestTimeoutMs`.
 */
import { causeText, isMysyncError, type MysyncError, systemClock } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { BrokerError, NO_ANSWER, refusal } from './broker-error.ts';
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
const QUICK = 'quick';
const AVOID_MS = 30_000;
const QUICK_ANSWER_MS = 2_000;

export class Cluster {
  readonly options: ResolvedKafkaOptions;
  readonly #links = new Map<string, Promise<BrokerLink>>();
  readonly #nodes = new Map<number, NodeAddress>();
  /** When a node did not answer: it is asked last for a while, since finding out can take a connection's whole time limit. */
  readonly #failedAt = new Map<string, number>();
  readonly #onSilent = (address: string): void => {
    this.#failedAt.set(address, systemClock.monotonic());
  };
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
      link.call(
        (broker) => broker.findGroupCoordinator({ groupId: name, coordinatorType: kind === 'group' ? 0 : 1 }),
        `coordinator ${kind} ${name}`,
      ),
    );
    this.#nodes.set(coordinator.nodeId, coordinator);
    return coordinator.nodeId;
  }

  /** Runs a request on the first node that answers: known ones, then those of the configuration. */
  async anyNode<T>(request: (link: BrokerLink) => Promise<T>): Promise<T> {
    const { brokers, requestTimeoutMs } = this.options;
    const seeds = brokers.map((broker): NodeAddress => ({ nodeId: -1, ...parseAddress(broker) }));
    const start = this.#turn++;
    const failures: string[] = [];
    // One that has just started may not have read its users yet.
    let denial: MysyncError | null = null;
    const rounds = [
      {
        nodes: this.#nodes.size > 0 ? [...this.#nodes.values()] : seeds,
        lane: QUICK,
        limitMs: Math.min(QUICK_ANSWER_MS, requestTimeoutMs),
      },
      { nodes: seeds, lane: ASK, limitMs: requestTimeoutMs },
    ];
    for (const { nodes, lane, limitMs } of rounds) {
      for (const node of this.#inTurn(nodes, start)) {
        const address = `${node.host}:${node.port}`;
        try {
          return await request(await this.#linkTo(`${address}/${lane}`, node.nodeId, node, limitMs));
        } catch (error) {
          if (isMysyncError(error, 'TRANSPORT_ACCESS_LOST')) denial = error;
          else if (!(error instanceof BrokerError) || error.code !== NO_ANSWER) throw error;
          failures.push(causeText(error));
          this.#onSilent(address);
        }
      }
    }
    if (denial !== null) throw denial;
    throw transportErrors.TRANSPORT_UNREACHABLE({
      message: `no broker answers (${[...new Set(failures)].slice(0, 3).join('; ')})`,
      where: { brokers: this.options.brokers.join(',') },
    });
  }

  /** Rotated by the turn; those that failed lately come last. */
  #inTurn(list: readonly NodeAddress[], start: number): NodeAddress[] {
    const since = systemClock.monotonic() - AVOID_MS;
    const failedAt = ({ host, port }: NodeAddress): number => this.#failedAt.get(`${host}:${port}`) ?? since;
    const late = (node: NodeAddress): number => (failedAt(node) > since ? 1 : 0);
    const turned = list.map((_, index) => list[(start + index) % list.length] as NodeAddress);
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
    const opening = BrokerLink.open({
      nodeId,
      address: node,
      options: this.options,
      onSilent: this.#onSilent,
      requestTimeoutMs,
    });
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
