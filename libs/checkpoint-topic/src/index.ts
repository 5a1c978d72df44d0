export { readTopicCheckpoint, TopicCheckpointStore, type TopicCheckpointStoreOptions } from './topic-store.ts';
