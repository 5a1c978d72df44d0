/** What the server says in place of the log. */
import { sourceErrors } from '../errors.ts';
import type { HostAddress } from '../options.ts';
import { SERVER_ERRORS } from '../server/mysql-error.ts';
import { formatHost } from '../server/session.ts';

export interface ServerRefusal {
  readonly errno: number;
  readonly text: string;
}

export interface DumpErrorOptions {
  readonly host: HostAddress;
  readonly serverId: number;
  readonly credentials: { readonly user: string };
}

export function dumpError(refusal: ServerRefusal, { host, serverId, credentials }: DumpErrorOptions): Error {
  const { errno, text } = refusal;
  const where = { host: formatHost(host) };
  const cause = Object.assign(new Error(text), { errno });
  switch (errno) {
    case SERVER_ERRORS.SLAVE_SAME_ID:
      return sourceErrors.SOURCE_SERVER_ID_IN_USE({
        message: `another replica with the server id ${serverId} has connected to ${formatHost(host)}`,
        where: { ...where, serverId },
        cause,
      });
    case SERVER_ERRORS.MASTER_FATAL_ERROR_READING_BINLOG:
      return sourceErrors.SOURCE_LOG_REFUSED({ message: 'the server refuses to send the log', where, cause });
    // after the login, "access denied" is a missing grant
    case SERVER_ERRORS.SPECIFIC_ACCESS_DENIED:
    case SERVER_ERRORS.ACCESS_DENIED:
      return sourceErrors.SOURCE_GRANT_MISSING({
        message: `user '${credentials.user}' may not read the log`,
        where,
        remedy: `GRANT REPLICATION SLAVE ON *.* TO '${credentials.user}'@'%';`,
        cause,
      });
    default:
      return sourceErrors.SOURCE_CONNECTION_LOST({
        message: `the stream from ${formatHost(host)} ended`,
        where,
        cause,
      });
  }
}
