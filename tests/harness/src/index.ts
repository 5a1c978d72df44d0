export { stopAtExit } from './at-exit.ts';
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
export { assertClean, assertTold, type Expected, errorsIn, type ToldError, untilTold } from './operator.ts';
export { Pipeline, type PipelineOptions, type SinkName } from './pipeline.ts';
export { RedisCluster } from './redis-cluster.ts';
export { randomName, type ServerName, type ServerOptions, sharedServer, startServer, TestServer } from './server.ts';
export { TcpProxy } from './tcp-proxy.ts';
export { TlsProxy } from './tls-proxy.ts';
export { until } from './wait.ts';
