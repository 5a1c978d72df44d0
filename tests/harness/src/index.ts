export {
  type Difference,
  differences,
  readIndex,
  readRedisHashes,
  readTable,
  type SqlAddress,
  type TextRow,
  textConnection,
} from './compare.ts';
export { type Exit, MysyncProcess, runMysync } from './mysync.ts';
export { Pipeline, type PipelineOptions, type SinkName } from './pipeline.ts';
export { randomName, type ServerName, type ServerOptions, sharedServer, startServer, TestServer } from './server.ts';
export { until } from './wait.ts';
