import { connect, isIP, type Socket } from 'node:net';
import type { ConnectionOptions, SslOptions } from 'mysql2/promise';
import type { HostAddress, SourceTls } from '../options.ts';

/**
 * A connection that was silent for so long is asked whether the other machine is still there, and ends 10 s later if it is not (libuv: ten
 * probes, one second apart). The rows of a table may take any time to come; without this a way that went dead is noticed after two hours.
 */
export const KEEP_ALIVE_MS = 10_000;

/** For connections of mysql2, also those of other rooms: encrypted, towards the host that was meant and nobody else (ADR 0136). */
export function secureOptions(tls: SourceTls, host: HostAddress): Pick<ConnectionOptions, 'ssl' | 'stream'> {
  const ssl = tlsOptions(tls);
  return ssl.verifyIdentity === true && isIP(host.host) !== 0 ? { ssl, stream: () => dialAddress(host) } : { ssl };
}

/**
 * The client library does not say which address it wants TLS to check a certificate for, and Node then checks it for `localhost`, unless the socket
 * has a host's name (node:tls, onConnectSecure).
 */
function dialAddress({ host, port }: HostAddress): Socket {
  const socket = connect({ host, port, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS });
  return Object.assign(socket, { _host: host });
}

function tlsOptions(tls: SourceTls): SslOptions {
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    rejectUnauthorized: tls.verify ?? true,
    verifyIdentity: (tls.verify ?? true) && (tls.verifyName ?? true),
  };
}
