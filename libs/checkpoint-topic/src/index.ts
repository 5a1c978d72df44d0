export {
  readTopicCheckpoint,
  readTopicSchemaHistory,
  TopicCheckpointStore,
  type TopicCheckpointStoreOptions,
} from './topic-store.ts';
