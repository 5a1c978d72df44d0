/** Whether the brokers remember a producer's name and id for longer than a reader keeps silent towards them (docs/adr/0204). */
import type { Finding } from '@mysync/core';
import type { BrokerSettings } from './broker-settings.ts';
import { kafkaErrors } from './errors.ts';
import { SILENCE_PART } from './name-renewal.ts';

/** What brokers forget, and how soon, with how long a reader may leave it alone. */
interface Memory {
  readonly setting: string;
  readonly silenceMs: number;
  readonly follows: string;
}

const CODE = 'KAFKA_PRODUCER_FORGOTTEN';

/** What is said of each broker's memory; mildly, where none shows it. */
export function nameFindings(brokers: readonly BrokerSettings[], producerRenewalMs: number): readonly Finding[] {
  const memories: readonly Memory[] = [
    {
      setting: 'transactional.id.expiration.ms',
      silenceMs: producerRenewalMs,
      follows: 'the reader ends each time (TRANSPORT_FENCED), and must be started again',
    },
    {
      setting: 'producer.id.expiration.ms',
      silenceMs: producerRenewalMs / SILENCE_PART,
      follows: 'a predecessor that was frozen meanwhile could be stored behind its successor',
    },
  ];
  const findings: Finding[] = [];
  let read = 0;
  for (const { nodeId, settings } of brokers) {
    for (const { setting, silenceMs, follows } of memories) {
      const memoryMs = Number(settings.get(setting) ?? Number.NaN);
      if (Number.isNaN(memoryMs)) continue;
      read += 1;
      if (memoryMs > silenceMs) continue;
      const message = `${setting} of broker ${nodeId} is ${memoryMs}, and a reader may keep silent for ${silenceMs} ms: ${follows}`;
      findings.push({ level: 'error', code: CODE, message, remedy: kafkaErrors.entries[CODE].remedy });
    }
  }
  if (findings.length > 0) return findings;
  const message =
    read === 0
      ? 'how long the brokers remember a producer could not be read (it takes the right DescribeConfigs on the cluster): it should be more than six hours, as by default'
      : 'the brokers remember a producer for longer than a reader keeps silent';
  return [{ level: 'ok', code: CODE, message, remedy: '' }];
}
