/** Whether the brokers take the session timeout of our groups: each coordinator goes by its own settings. */
import type { Finding } from '@mysync/core';
import type { BrokerSettings } from './broker-settings.ts';
import { kafkaErrors } from './errors.ts';

const LEAST = 'group.min.session.timeout.ms';
const MOST = 'group.max.session.timeout.ms';

/** Nothing is said of brokers that do not answer, or do not show their settings to this user. */
export function sessionFindings(brokers: readonly BrokerSettings[], wanted: number): readonly Finding[] {
  const findings: Finding[] = [];
  let asked = 0;
  for (const { nodeId, settings } of brokers) {
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
