/** Addresses as the configuration writes them. */
import type { RedisConfig } from './schema/index.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host`, `host:port` or `[address]:port`, checked before. */
export function parseHost(address: string, defaultPort: number): HostPort {
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(address);
  return { host: match?.[1] ?? match?.[2] ?? address, port: Number(match?.[3] ?? defaultPort) };
}

const REDIS_PORT = 6379;

/** The servers of a Redis sink, however they were given. */
export function redisStore(sink: RedisConfig): {
  readonly hosts: readonly HostPort[];
  readonly db: number;
  readonly encrypted: boolean;
} {
  if (sink.url === undefined) {
    const hosts = (sink.hosts ?? []).map((host) => parseHost(host, REDIS_PORT));
    return { hosts, db: sink.db, encrypted: sink.tls !== undefined };
  }
  const url = new URL(sink.url);
  const host = parseHost(url.host, REDIS_PORT);
  const db = url.pathname.length > 1 ? Number(url.pathname.slice(1)) : sink.db;
  return { hosts: [host], db, encrypted: url.protocol === 'rediss:' || sink.tls !== undefined };
}
