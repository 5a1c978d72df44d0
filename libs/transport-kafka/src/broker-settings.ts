import { isMysyncError } from '@mysync/core';
import { BrokerError } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import type { NodeAddress } from './protocol/metadata.ts';

const BROKER_RESOURCE = 4;

export interface BrokerSettings {
  readonly nodeId: number;
  readonly settings: ReadonlyMap<string, string>;
}

/** Without brokers that do not answer, or do not show their settings to this user. */
export async function brokerSettings(cluster: Cluster, nodes: readonly NodeAddress[]): Promise<BrokerSettings[]> {
  const found: BrokerSettings[] = [];
  for (const { nodeId } of nodes) {
    const settings = await settingsOf(cluster, nodeId);
    if (settings.size > 0) found.push({ nodeId, settings });
  }
  return found;
}

async function settingsOf(cluster: Cluster, nodeId: number): Promise<ReadonlyMap<string, string>> {
  try {
    const link = await cluster.link(nodeId, 'ask');
    const answer = await link.call(
      (broker) => broker.describeConfigs({ resources: [{ type: BROKER_RESOURCE, name: `${nodeId}` }] }),
      'settings of brokers',
    );
    const entries = answer.resources[0]?.configEntries ?? [];
    return new Map(
      entries.flatMap(({ configName, configValue }) => (configValue === null ? [] : [[configName, configValue]])),
    );
  } catch (error) {
    if (error instanceof BrokerError || isMysyncError(error)) return new Map();
    throw error;
  }
}
