/**
 * What failed, by status and error type, never by text.
 *
 * Of single items of a bulk (tried on 9.5): a stale version is 409, a missing document's delete 404 without an error, a
 * value that does not fit 400, a full queue 429, a block of a full disk 429 and any other block 403, both
 * `cluster_block_exception`; shards that are away are 503.
 */
import { errors } from '@elastic/elasticsearch';
import { causeText, type MysyncError } from '@mysync/core';
import { sinkErrors } from '@mysync/sink';
import { elasticsearchErrors } from './errors.ts';

export interface ErrorBody {
  readonly type: string;
  readonly reason: string;
}

export type ItemVerdict = 'done' | 'stale' | 'transient' | 'blocked' | 'denied' | 'no-index' | 'refused';

/** What one item of a bulk answer means. */
export function itemVerdict(status: number, type: string): ItemVerdict {
  if (status < 300) return 'done';
  if (type === '') return status === 404 ? 'done' : 'transient';
  if (type === 'version_conflict_engine_exception') return 'stale';
  // A closed index is a 400 like a value that does not fit, but no document of it would be taken.
  if (type === 'cluster_block_exception' || type === 'index_closed_exception') return 'blocked';
  if (type === 'index_not_found_exception') return 'no-index';
  if (type === 'security_exception' || status === 401 || status === 403) return 'denied';
  if (status === 408 || status === 429 || status >= 500) return 'transient';
  return 'refused';
}

/** The error of an answer with status 400 or above. */
export function responseError(status: number, body: unknown, what: string): MysyncError {
  const { type, reason } = errorBody(body);
  const cause = new Error(reason === '' ? `status ${status}` : `${type}: ${reason}`);
  const message = `Elasticsearch answered ${status}${type === '' ? '' : ` (${type})`} to ${what}`;
  if (type === 'cluster_block_exception') {
    return status >= 500
      ? sinkErrors.SINK_OVERLOADED({ message, cause })
      : elasticsearchErrors.ES_READ_ONLY({ message, cause });
  }
  if (type === 'index_closed_exception') return elasticsearchErrors.ES_READ_ONLY({ message, cause });
  if (status === 401 || status === 403) return sinkErrors.SINK_DENIED({ message, cause });
  if (status === 406 || status === 415) return elasticsearchErrors.ES_VERSION_UNSUPPORTED({ message, cause });
  if (status === 429 || status === 503) return sinkErrors.SINK_OVERLOADED({ message, cause });
  if (status === 408 || status >= 500) return sinkErrors.SINK_UNREACHABLE({ message, cause });
  return elasticsearchErrors.ES_REQUEST_REFUSED({ message, cause });
}

/** What the client threw, as a catalogue error. `lost`: no answer came, so the connection is another one next time. */
export function clientError(error: unknown, what: string): { readonly error: MysyncError; readonly lost: boolean } {
  if (error instanceof errors.ProductNotSupportedError) {
    const message = `what answered ${what} is not Elasticsearch`;
    return { error: elasticsearchErrors.ES_VERSION_UNSUPPORTED({ message }), lost: false };
  }
  const cause = new Error(causeText(error));
  const message = `no answer from Elasticsearch to ${what}`;
  return { error: sinkErrors.SINK_UNREACHABLE({ message, cause }), lost: true };
}

/** The error in the body of an answer, empty where there is none. */
export function errorBody(body: unknown): ErrorBody {
  const error: unknown = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  if (typeof error === 'string') return { type: '', reason: error };
  if (typeof error !== 'object' || error === null) return { type: '', reason: '' };
  const type = 'type' in error && typeof error.type === 'string' ? error.type : '';
  const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : '';
  return { type, reason };
}
