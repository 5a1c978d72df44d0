import { isMysyncError, type MysyncError } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import { type Credentials, formatHost, ServerSession } from './session.ts';

/** A session with the first host that answers. A host that refuses us is no reason to try the next: the configuration is wrong. */
export async function openFirst(options: Credentials & Pick<ResolvedOptions, 'hosts'>): Promise<ServerSession> {
  const failures: MysyncError[] = [];
  for (const host of options.hosts) {
    try {
      return await ServerSession.open(options, host);
    } catch (error) {
      if (!isMysyncError(error, 'SOURCE_UNREACHABLE')) throw error;
      failures.push(error);
    }
  }
  const [first] = failures;
  if (first !== undefined && failures.length === 1) throw first;
  throw sourceErrors.SOURCE_UNREACHABLE({
    message: `no answer from any of ${options.hosts.map(formatHost).join(', ')}`,
    cause: first,
  });
}
