import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { isCertificateRefused } from '@mysync/sink';
import type { ElasticsearchSinkOptions } from './options.ts';

const HANDSHAKE_MS = 5_000;
const HTTPS_PORT = 443;

/** Why no node's certificate is trusted; null where one is, or where none of them answers. The client tells such failures by text only. */
export async function refusedCertificate(
  options: Pick<ElasticsearchSinkOptions, 'nodes' | 'tls'>,
): Promise<Error | null> {
  const nodes = options.nodes.map((node) => new URL(node)).filter(({ protocol }) => protocol === 'https:');
  if (nodes.length === 0 || nodes.length < options.nodes.length) return null;
  const failures = await Promise.all(nodes.map((node) => handshake(node, options.tls ?? {})));
  return failures.every(isCertificateRefused) ? (failures[0] ?? null) : null;
}

/** Resolves with what ended the handshake; null when it succeeded, or took too long. */
async function handshake(node: URL, tls: NonNullable<ElasticsearchSinkOptions['tls']>): Promise<Error | null> {
  const host = node.hostname.replace(/^\[|\]$/g, '');
  const port = node.port === '' ? HTTPS_PORT : Number(node.port);
  return await new Promise((resolve) => {
    const socket = connect({ ...tls, host, port, ...(isIP(host) === 0 ? { servername: host } : {}) });
    const end = (failure: Error | null): void => {
      socket.destroy();
      resolve(failure);
    };
    socket.setTimeout(HANDSHAKE_MS, () => end(null));
    socket.once('secureConnect', () => end(null));
    socket.once('error', end);
  });
}
