import type { Pipeline } from '@mysync/harness';
import kafkajs from 'kafkajs';

/** Sets `max.message.bytes` of the pipeline's topic and leaves its other settings. */
export async function limitTopic({ transportConfig, database }: Pipeline, value: string): Promise<void> {
  const { brokers } = transportConfig['kafka'] as { brokers: string[] };
  const admin = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  const topic = { type: kafkajs.ConfigResourceTypes.TOPIC, name: database };
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [topic] });
  // this request sets all of a topic's settings
  const own = (resources[0]?.configEntries ?? []).filter(({ isDefault }) => !isDefault);
  const configEntries = own.map((entry) => ({
    name: entry.configName,
    value: entry.configName === 'max.message.bytes' ? value : entry.configValue,
  }));
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...topic, configEntries }] });
  await admin.disconnect();
}
