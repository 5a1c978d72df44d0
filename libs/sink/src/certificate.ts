/** Refusals of a server's certificate that no waiting mends. (One that is over, or not valid yet, is renewed on the server.) */
const REFUSED = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** By Node's code: the client does not trust the certificate that the server shows, as both are set up. */
export function isCertificateRefused(error: unknown): boolean {
  return REFUSED.has(String((error as { code?: unknown } | null)?.code ?? ''));
}
