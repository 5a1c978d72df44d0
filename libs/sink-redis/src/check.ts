import { causeText, type Finding, isMysyncError } from '@mysync/core';
import type { RedisConnection } from './connection.ts';

/** The finding for a server that cannot be asked. */
export function unreachable(error: unknown): Finding {
  const known = isMysyncError(error);
  return {
    level: 'error',
    code: known ? error.code : 'SINK_UNREACHABLE',
    message: causeText(error),
    remedy: known ? error.remedy : 'Check that Redis runs and can be reached from here.',
  };
}

/** Version, role and eviction of one server. */
export async function checkServer(connection: RedisConnection): Promise<readonly Finding[]> {
  const info = String(await connection.call(['INFO', 'server']));
  const replication = String(await connection.call(['INFO', 'replication']));
  const memory = String(await connection.call(['INFO', 'memory']));
  return [version(info, connection.name), role(replication, connection.name), eviction(memory, connection.name)];
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}

function version(info: string, name: string): Finding {
  const text = field(info, 'redis_version');
  const [major = 0, minor = 0] = text.split('.').map(Number);
  const old = major < 6 || (major === 6 && minor < 2);
  return {
    level: old ? 'error' : 'ok',
    code: 'REDIS_VERSION_OLD',
    message: `Redis at ${name} is version ${text || 'unknown'}`,
    remedy: old ? 'Use Redis 6.2 or later.' : '',
  };
}

function role(info: string, name: string): Finding {
  const replica = field(info, 'role') === 'slave';
  return {
    level: replica ? 'error' : 'ok',
    code: 'REDIS_READ_ONLY',
    message: `Redis at ${name} is a ${replica ? 'replica' : 'master'}`,
    remedy: replica ? `Name its master, ${field(info, 'master_host')}:${field(info, 'master_port')}.` : '',
  };
}

/** Evicted rows and versions are lost without a word; without a memory limit nothing is evicted. */
function eviction(info: string, name: string): Finding {
  const policy = field(info, 'maxmemory_policy');
  const limit = Number(field(info, 'maxmemory') || 0);
  const evicts = policy !== 'noeviction';
  return {
    level: !evicts ? 'ok' : limit > 0 ? 'error' : 'warning',
    code: 'REDIS_EVICTION',
    message: `Redis at ${name} has maxmemory-policy ${policy || 'unknown'}, maxmemory ${limit}`,
    remedy: evicts ? 'CONFIG SET maxmemory-policy noeviction' : '',
  };
}
