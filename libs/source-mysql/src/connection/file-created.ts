/** When the server began a file of its log, as the file's first event says: no statement tells it. */
import { randomUUID } from 'node:crypto';
import { type BinlogPosition, isMysyncError } from '@mysync/core';
import { EVENT } from '../binlog/column-types.ts';
import type { ResolvedOptions } from '../options.ts';
import { replicaName } from '../server/log-state.ts';
import { freeServerId } from '../server/server-id.ts';
import type { ServerSession } from '../server/session.ts';
import { BinlogConnection } from './binlog-connection.ts';
import { SilenceLimit } from './silence-limit.ts';

const QUEUE_BYTES = 1 << 16;

/** In seconds since 1970; undefined when the server sends nothing from that position. */
export async function fileCreated(
  source: ResolvedOptions,
  session: ServerSession,
  { file, offset }: BinlogPosition,
): Promise<number | undefined> {
  const hostName = replicaName(source.name);
  const connection = await BinlogConnection.open({
    host: session.facts.host,
    credentials: source,
    hostName,
    heartbeatMs: source.heartbeatMs,
    queueBytes: QUEUE_BYTES,
    silenceMs: new SilenceLimit(source.heartbeatMs).ms,
    clock: source.clock,
    serverId: await freeServerId(session, undefined, hostName),
    replicaUuid: randomUUID(),
    start: { kind: 'place', file, offset },
    stopsAtEnd: true,
  });
  const { signal } = new AbortController();
  try {
    for (;;) {
      const event = connection.next();
      if (event?.type === EVENT.FORMAT_DESCRIPTION) return event.seconds;
      if (event === undefined) await connection.wait(signal);
    }
  } catch (error) {
    // offsets inside of an event, for instance: a start says so
    if (connection.ended || isMysyncError(error, 'SOURCE_LOG_REFUSED')) return undefined;
    throw error;
  } finally {
    await connection.close();
  }
}
