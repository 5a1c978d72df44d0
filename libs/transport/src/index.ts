export { transportErrors } from './errors.ts';
export { IncompleteLog } from './incomplete-log.ts';
export type {
  AssignedPartition,
  Consumer,
  ConsumerOptions,
  Header,
  IncomingRecord,
  OffsetRange,
  OutgoingRecord,
  ProducerIdentity,
  Publisher,
  PublisherOptions,
  ReadOptions,
  RecordBatch,
  TopicDescription,
  TopicSpec,
  Transport,
} from './port.ts';
