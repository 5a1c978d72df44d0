export { redisErrors } from './errors.ts';
export type { RedisAddress, RedisIndexRule, RedisSinkOptions, RedisTableRule } from './options.ts';
export { RedisSink } from './sink.ts';
