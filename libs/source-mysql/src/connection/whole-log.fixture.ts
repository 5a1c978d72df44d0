import { randomUUID } from 'node:crypto';
import { systemClock } from '@mysync/core';
import type { LogEvent } from '../binlog/log-event.ts';
import { keptEvent } from '../testing.fixture.ts';
import { BinlogConnection, type BinlogConnectionOptions } from './binlog-connection.ts';
import { atLogEnd } from './log-end.ts';

export const CREDENTIALS = { user: 'mysync', password: 'mysync', tls: undefined, connectionTimeoutMs: 10_000 };

/** Every event from there to the log's end, as the connection gives it. */
export async function readWholeLog(
  options: Pick<BinlogConnectionOptions, 'host' | 'start'> & Partial<BinlogConnectionOptions>,
): Promise<LogEvent[]> {
  const connection = await BinlogConnection.open({
    credentials: CREDENTIALS,
    serverId: 3_800_000_000 + Math.floor(Math.random() * 2e8),
    hostName: 'test',
    replicaUuid: randomUUID(),
    stopsAtEnd: true,
    heartbeatMs: 5000,
    silenceMs: 15_000,
    queueBytes: 1 << 20,
    clock: systemClock,
    ...options,
  });
  const { signal } = new AbortController();
  const events: LogEvent[] = [];
  try {
    do {
      for (let event = connection.next(); event !== undefined; event = connection.next()) events.push(keptEvent(event));
    } while (!(await atLogEnd(connection, signal)));
    return events;
  } finally {
    await connection.close();
  }
}
