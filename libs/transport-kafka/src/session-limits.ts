/** Whether the brokers take the session timeout of our groups: each coordinator goes by its own settings. */
import { type Finding, isMysyncError } from '@mysync/core';
import { BrokerError } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { kafkaErrors } from './errors.ts';
import type { NodeAddress } from './protocol/metadata.ts';

const BROKER_RESOURCE = 4;
const LEAST = 'group.min.session.timeout.ms';
const MOST = 'group.max.session.timeout.ms';

/** Nothing is said of brokers that do not answer, or do not show their settings to this user. */
export async function checkSession(cluster: Cluster, nodes: readonly NodeAddress[]): Promise<Finding[]> {
  const wanted = cluster.options.sessionTimeoutMs;
  const findings: Finding[] = [];
  let asked = 0;
  for (const { nodeId } of nodes) {
    const settings = await settingsOf(cluster, nodeId);
    const [least, most] = [Number(settings.get(LEAST) ?? Number.NaN), Number(settings.get(MOST) ?? Number.NaN)];
    if (least <= wanted && wanted <= most) asked += 1;
    const limit = wanted < least ? `below ${LEAST} (${least})` : wanted > most ? `above ${MOST} (${most})` : null;
    if (limit !== null)
      findings.push(
        refused(`sessionTimeoutMs is ${wanted}, ${limit} of broker ${nodeId}: writers cannot join their group there`),
      );
  }
  if (findings.length > 0 || asked === 0) return findings;
  const message = `sessionTimeoutMs (${wanted}) is within the limits of the brokers`;
  return [{ level: 'ok', code: 'KAFKA_SESSION_TIMEOUT', message, remedy: '' }];
}

function refused(message: string): Finding {
  const code = 'KAFKA_SESSION_TIMEOUT';
  return { level: 'error', code, message, remedy: kafkaErrors.entries[code].remedy };
}

async function settingsOf(cluster: Cluster, nodeId: number): Promise<ReadonlyMap<string, string>> {
  try {
    const link = await cluster.link(nodeId, 'ask');
    const answer = await link.call((broker) =>
      broker.describeConfigs({ resources: [{ type: BROKER_RESOURCE, name: `${nodeId}` }] }),
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
