/** Every error catalogue of the system, by room: for the reference page and for the test that codes are unique. */
import { checkpointErrors } from '@mysync/checkpoint';
import { configErrors } from '@mysync/config';
import { coreErrors, type ErrorEntry, positionErrors } from '@mysync/core';
import { drillErrors } from '@mysync/drill';
import { flowErrors } from '@mysync/flow';
import { mappingErrors } from '@mysync/mapping';
import { readerErrors } from '@mysync/reader';
import { sinkErrors } from '@mysync/sink';
import { elasticsearchErrors } from '@mysync/sink-elasticsearch';
import { redisErrors } from '@mysync/sink-redis';
import { sourceErrors } from '@mysync/source-mysql';
import { telemetryErrors } from '@mysync/telemetry';
import { transportErrors } from '@mysync/transport';
import { kafkaErrors } from '@mysync/transport-kafka';
import { logErrors } from '@mysync/transport-log';
import { verifierErrors } from '@mysync/verifier';
import { wireErrors } from '@mysync/wire';
import { writerErrors } from '@mysync/writer';
import { commandErrors } from './errors.ts';

export interface RoomCatalogue {
  /** The name that the catalogue is declared under. */
  readonly name: string;
  readonly title: string;
  readonly entries: Readonly<Record<string, ErrorEntry>>;
}

export const catalogues: readonly RoomCatalogue[] = [
  { name: 'configErrors', title: 'Configuration', entries: configErrors.entries },
  { name: 'commandErrors', title: 'Command line, and findings of `mysync check`', entries: commandErrors.entries },
  { name: 'mappingErrors', title: 'Mappings', entries: mappingErrors.entries },
  { name: 'sourceErrors', title: 'Source: MySQL and MariaDB', entries: sourceErrors.entries },
  { name: 'positionErrors', title: 'Positions', entries: positionErrors.entries },
  { name: 'readerErrors', title: 'Reader', entries: readerErrors.entries },
  { name: 'checkpointErrors', title: 'Checkpoint', entries: checkpointErrors.entries },
  { name: 'transportErrors', title: 'Transport', entries: transportErrors.entries },
  { name: 'logErrors', title: 'Transport: the embedded log', entries: logErrors.entries },
  { name: 'kafkaErrors', title: 'Transport: Kafka', entries: kafkaErrors.entries },
  { name: 'wireErrors', title: 'Messages', entries: wireErrors.entries },
  { name: 'flowErrors', title: 'Flow', entries: flowErrors.entries },
  { name: 'writerErrors', title: 'Writer', entries: writerErrors.entries },
  { name: 'verifierErrors', title: 'Verify', entries: verifierErrors.entries },
  { name: 'drillErrors', title: 'Drill', entries: drillErrors.entries },
  { name: 'sinkErrors', title: 'Sinks', entries: sinkErrors.entries },
  { name: 'redisErrors', title: 'Sink: Redis', entries: redisErrors.entries },
  { name: 'elasticsearchErrors', title: 'Sink: Elasticsearch', entries: elasticsearchErrors.entries },
  { name: 'telemetryErrors', title: 'Telemetry', entries: telemetryErrors.entries },
  { name: 'coreErrors', title: 'Defects', entries: coreErrors.entries },
];
