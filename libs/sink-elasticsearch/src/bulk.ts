/**
 * Bulk requests of versioned writes.
 *
 * 1. Every write carries its version as an external one, type `external`: an equal or older one is refused (409), which is as
 *    good as done. (`external_gte` would write an equal one again: the same content, for all the work of indexing, when a
 *    batch is sent again. A repair wants just that.)
 * 2. The items of a batch name different documents, so their order does not matter; they are sent in order nevertheless,
 *    one request after the other.
 * 3. What failed for now is kept, in order, and nothing else is sent again.
 */
import { coreErrors, type MysyncError } from '@mysync/core';
import { type Refusal, sinkErrors } from '@mysync/sink';
import { elasticsearchErrors } from './errors.ts';
import { errorBody, type ItemVerdict, itemVerdict } from './failures.ts';
import type { EsHttp } from './http.ts';

/** One write: the place of its change in the batch, and its lines of the request. */
export interface BulkItem {
  readonly index: number;
  readonly text: string;
}

/** What is left to do of a batch. */
export interface BulkProgress {
  pending: readonly BulkItem[];
  stale: number;
  refusals: Refusal[];
}

export interface BulkOptions {
  readonly http: EsHttp;
  readonly maxChars: number;
  /** Wait until the writes can be searched. */
  readonly refresh: boolean;
  /** For error texts: what item `index` is about. */
  readonly describe: (index: number) => Readonly<Record<string, string | number>>;
  readonly signal: AbortSignal;
}

const ANSWER_FILTER = 'errors,items.*.status,items.*.error.type,items.*.error.reason';

/**
 * Sends what is pending. When it resolves nothing is pending: every item is done, stale or refused. Rejects with a retriable
 * error when something failed for now; `progress.pending` then holds just that.
 */
export async function sendBulk(progress: BulkProgress, options: BulkOptions): Promise<void> {
  const failed: BulkItem[] = [];
  let failure: MysyncError | undefined;
  const queue = chunks(progress.pending, options.maxChars);
  for (let chunk = queue.shift(); chunk !== undefined; chunk = queue.shift()) {
    const rest = (): BulkItem[] => [...failed, ...(chunk ?? []), ...queue.flat()];
    try {
      const answer = await options.http.request({
        method: 'POST',
        path: '/_bulk',
        query: { filter_path: ANSWER_FILTER, ...(options.refresh ? { refresh: 'true' } : {}) },
        body: chunk.length === 1 ? (chunk[0]?.text ?? '') : joined(chunk),
        lines: true,
        accept: [413],
        signal: options.signal,
      });
      if (answer.status === 413) {
        const split = tooLarge(chunk, progress, options);
        queue.unshift(...split);
      } else {
        failure = readAnswer(answer.body, chunk, { progress, failed, options }) ?? failure;
      }
    } catch (error) {
      progress.pending = rest();
      throw error;
    }
  }
  progress.pending = failed;
  if (failure !== undefined) throw failure;
}

/** In order, each of at most `maxChars`, but for a single item that is larger. */
function chunks(items: readonly BulkItem[], maxChars: number): BulkItem[][] {
  const all: BulkItem[][] = [];
  let chunk: BulkItem[] = [];
  let size = 0;
  for (const item of items) {
    if (size + item.text.length > maxChars && chunk.length > 0) {
      all.push(chunk);
      chunk = [];
      size = 0;
    }
    chunk.push(item);
    size += item.text.length;
  }
  if (chunk.length > 0) all.push(chunk);
  return all;
}

function joined(items: readonly BulkItem[]): string {
  let text = '';
  for (const item of items) text += item.text;
  return text;
}

/** A request over `http.max_content_length`: two halves, or a refusal when it is a single item. */
function tooLarge(chunk: BulkItem[], progress: BulkProgress, options: BulkOptions): BulkItem[][] {
  const middle = Math.ceil(chunk.length / 2);
  const [first] = chunk;
  if (chunk.length > 1) return [chunk.slice(0, middle), chunk.slice(middle)];
  if (first === undefined) return [];
  const error = sinkErrors.SINK_VALUE_REFUSED({
    message: `a document of ${first.text.length} characters is larger than Elasticsearch takes`,
    where: options.describe(first.index),
    remedy:
      'Exclude the large column, or raise http.max_content_length of Elasticsearch (static setting, default 100mb).',
  });
  progress.refusals.push({ index: first.index, error });
  return [];
}

interface AnswerTarget {
  readonly progress: BulkProgress;
  readonly failed: BulkItem[];
  readonly options: BulkOptions;
}

/** Sorts the items of one answer; returns the error of those that failed for now. */
function readAnswer(body: unknown, chunk: readonly BulkItem[], target: AnswerTarget): MysyncError | undefined {
  const { progress, failed, options } = target;
  const answer = body as { readonly errors?: unknown; readonly items?: unknown };
  if (answer?.errors === false) return undefined;
  if (answer?.errors !== true || !Array.isArray(answer.items) || answer.items.length !== chunk.length) {
    throw coreErrors.INTERNAL({ message: `the answer to a bulk of ${chunk.length} items does not fit it` });
  }
  let failure: MysyncError | undefined;
  for (let at = 0; at < chunk.length; at++) {
    const item = chunk[at] as BulkItem;
    const entry = Object.values(answer.items[at] as object)[0] as { readonly status: number };
    const { type, reason } = errorBody(entry);
    const verdict = itemVerdict(entry.status, type);
    switch (verdict) {
      case 'done':
        break;
      case 'stale':
        if (!isEqualVersion(reason)) progress.stale++;
        break;
      case 'refused':
        progress.refusals.push({ index: item.index, error: refusal(type, reason, options.describe(item.index)) });
        break;
      case 'no-index':
        throw itemError(verdict, { type, reason }, options.describe(item.index));
      case 'blocked':
      case 'denied':
      case 'transient':
        failed.push(item);
        failure ??= itemError(verdict, { type, reason }, options.describe(item.index));
        break;
    }
  }
  return failure;
}

/**
 * Whether a version conflict was with an equal version: the change itself, stored before. Only the text says so; only a count
 * depends on it.
 */
function isEqualVersion(reason: string): boolean {
  const versions = /current version \[(\d+)\][^[]*\[(\d+)\]$/.exec(reason);
  return versions !== null && versions[1] === versions[2];
}

function refusal(type: string, reason: string, where: Readonly<Record<string, string | number>>): MysyncError {
  return sinkErrors.SINK_VALUE_REFUSED({
    message: `Elasticsearch refused the document (${type})`,
    where,
    cause: new Error(reason),
  });
}

function itemError(
  verdict: Exclude<ItemVerdict, 'done' | 'stale' | 'refused'>,
  error: { readonly type: string; readonly reason: string },
  where: Readonly<Record<string, string | number>>,
): MysyncError {
  const details = { where, cause: new Error(error.reason) };
  switch (verdict) {
    case 'denied':
      return sinkErrors.SINK_DENIED({ message: `Elasticsearch denies a write (${error.type})`, ...details });
    case 'no-index':
      return elasticsearchErrors.ES_INDEX_LOST({ message: 'an index is gone that held applied changes', ...details });
    case 'blocked':
      return elasticsearchErrors.ES_READ_ONLY({ message: 'Elasticsearch blocks writes to an index', ...details });
    case 'transient':
      return sinkErrors.SINK_OVERLOADED({
        message: `Elasticsearch takes no write for now (${error.type})`,
        ...details,
      });
  }
}
