/** What ioredis and Redis report, as errors of the catalogue. Decisions by code: Redis's first word, Node's errno. */
import { isMysyncError, type MysyncError } from '@mysync/core';
import { isCertificateRefused, sinkErrors } from '@mysync/sink';
import { redisErrors } from './errors.ts';

const DENIED = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);
const OVERLOADED = new Set(['OOM', 'BUSY', 'MISCONF', 'NOREPLICAS']);
/** The server is there, but is not (yet, any more) the one to write to. */
const AWAY = new Set(['LOADING', 'MASTERDOWN', 'READONLY', 'CLUSTERDOWN', 'UNBLOCKED', 'NOTREADY']);

/** Redis's error code: the first word of the reply. Redis 6 wraps a script's errors, the code stands behind the line number. */
export function replyCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const wrapped = /^ERR Error running script .*?@user_script: ?\d+: (?:-)?([A-Z]+) /.exec(error.message);
  return wrapped?.[1] ?? /^[A-Z]+/.exec(error.message)?.[0] ?? '';
}

/** True when an error came as a reply, not from the connection. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** The replies, or the first that is an error thrown. */
export function noErrors(replies: readonly unknown[], where: string): readonly unknown[] {
  for (const reply of replies) if (reply instanceof Error) throw redisFailure(reply, where);
  return replies;
}

/**
 * What keeps a connection from being opened passes as the server's settings do: also what has no code word (no room for another client, a proxy's own refusal).
 */
export function openingFailure(error: unknown, where: string): MysyncError {
  const failure = redisFailure(error, where);
  if (failure.code !== 'REDIS_REPLY_UNEXPECTED') return failure;
  return sinkErrors.SINK_UNREACHABLE({ message: failure.message, where: { server: where } });
}

/** The server refused the database: by the command that is refused, since the reply has no code word. */
export function noDatabase(
  error: unknown,
  where: string,
  { sinkName, db }: { sinkName: string; db: number },
): MysyncError {
  const failure = redisFailure(error, where);
  if (failure.code !== 'REDIS_REPLY_UNEXPECTED') return failure;
  const message = `${failure.message}: database ${db} cannot be used`;
  return redisErrors.REDIS_DB_UNKNOWN({ message, where: { key: `sinks.${sinkName}.db`, server: where } });
}

/** `where`: the server, as host:port. The text of the cause only: ioredis keeps a failed command's arguments on the error. */
export function redisFailure(error: unknown, where: string): MysyncError {
  if (isMysyncError(error)) return error;
  const text = error instanceof Error ? error.message || error.name : String(error);
  const code = isReply(error) ? replyCode(error) : '';
  const details = { message: `Redis at ${where}: ${text}`, where: { server: where } };
  if (isCertificateRefused(error)) return sinkErrors.SINK_TLS_FAILED(details);
  if (DENIED.has(code)) return sinkErrors.SINK_DENIED(details);
  if (OVERLOADED.has(code)) return sinkErrors.SINK_OVERLOADED(details);
  if (code === '' || AWAY.has(code)) return sinkErrors.SINK_UNREACHABLE(details);
  return redisErrors.REDIS_REPLY_UNEXPECTED(details);
}

/** Something else stands at the marker's key; `reply`: what Redis says of it. */
export function noMarker(key: string, reply: string): MysyncError {
  return sinkErrors.SINK_MARKER_INVALID({ message: `what stands at ${key} is not a marker: ${reply}`, where: { key } });
}
