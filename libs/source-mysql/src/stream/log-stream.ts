/**
 * The log as a stream of items that survives its connection.
 *
 * 1. After a lost connection reading resumes at the boundary of the last transaction handed over: a transaction of which a part
 *    was read is read again whole, so nothing comes twice and nothing is left out.
 * 2. The same server only: another UUID is an error, since positions of one server mean nothing on another.
 * 3. What was complete before an error is handed over before the error is thrown; nothing after it is.
 * 4. While nothing is read the observer knows, however often that is tried.
 */
import { randomUUID } from 'node:crypto';
import {
  causeText,
  formatBinlogPosition,
  isMysyncError,
  type MysyncError,
  type SourcePosition,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { SilenceLimit } from '../connection/silence-limit.ts';
import type { KeptHistory } from '../history/kept-history.ts';
import type { ResolvedOptions } from '../options.ts';
import type { SourceItem, StreamObserver } from '../port.ts';
import type { CascadeLog } from '../schema/cascade-book.ts';
import { checkPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { RowsTranscriber } from '../transcribe/rows-transcriber.ts';
import { LogRun, type ReplicaIdentity } from './log-run.ts';

export interface LogStreamOptions {
  readonly source: ResolvedOptions;
  readonly history: KeptHistory;
  /** A session with the first host that answers. */
  openSession(): Promise<ServerSession>;
  readonly from: SourcePosition;
  readonly knownTables: readonly TableRef[];
  readonly observer?: StreamObserver;
  readonly signal: AbortSignal;
}

export async function* streamLog(options: LogStreamOptions): AsyncGenerator<readonly SourceItem[]> {
  const { source, signal } = options;
  const { logger } = source;
  const backoff = new Backoff({ minMs: 200, maxMs: 10_000 });
  let position = options.from;
  let serverUuid: string | undefined;
  const identity: ReplicaIdentity = { uuid: randomUUID(), serverId: source.serverId };
  const transcriber = new RowsTranscriber();
  const silence = new SilenceLimit(source.heartbeatMs);
  const history = await options.history.open(options.from);
  const known = new Map(options.knownTables.map((ref) => [tableRefKey(ref), ref]));
  const cascadeLog: CascadeLog = { hidesRows: false };
  const shared = { history, identity, silence, known, cascadeLog, transcriber };
  while (!signal.aborted) {
    const run = new LogRun({ ...options, ...shared, from: position, serverUuid });
    try {
      for await (const batch of run.items()) {
        position = run.boundary;
        backoff.reset();
        yield batch;
      }
    } catch (failure) {
      if (signal.aborted) return;
      const error = isMysyncError(failure, 'SOURCE_LOG_REFUSED') ? await reasonOf(failure, options, run) : failure;
      if (!isMysyncError(error) || !error.retriable) throw error;
      options.observer?.brokeOff(error, run.heardMs);
      const waitMs = backoff.next();
      logger.warn(
        { code: error.code, cause: causeText(error), position: formatBinlogPosition(run.boundary), waitMs },
        'the stream of the log broke off and is opened again',
      );
      await source.clock.sleep(waitMs, signal).catch(() => undefined);
    } finally {
      silence.ended(source.clock.monotonic());
      position = run.boundary;
      serverUuid = run.serverUuid ?? serverUuid;
      await run.close();
    }
  }
}

/** The server has one number for everything: whether the position is gone is looked at. A server that cannot be asked is asked again with the next connection. */
async function reasonOf(refusal: MysyncError, options: LogStreamOptions, { boundary }: LogRun): Promise<unknown> {
  if (boundary.file === '') return refusal;
  try {
    const session = await options.openSession();
    try {
      await checkPosition(session, boundary);
    } finally {
      session.close();
    }
  } catch (error) {
    return error;
  }
  return refusal;
}
