export { type HostPort, parseHost, redisStore } from './address.ts';
export type { Environment } from './environment.ts';
export { configErrors } from './errors.ts';
export { configFingerprint } from './fingerprint.ts';
export { takeFlags } from './flags.ts';
export { configPath, type LoadOptions, type LoadResult, loadConfig } from './load.ts';
export { printConfig, redactedConfig } from './print.ts';
export { configurationPage, type OptionEntry, type OptionGroup, optionGroups, optionsHelp } from './reference.ts';
export { checkpointTopic, plainTable, sourcesOf, topicOf } from './rules.ts';
export type {
  Config,
  ElasticsearchConfig,
  RedisConfig,
  SinkConfig,
  SourceConfig,
  TransportConfig,
} from './schema/index.ts';
export { Secret, type SecretOrigin } from './secret.ts';
