import { isMysyncError } from '@mysync/core';
import type { BinlogConnection } from './binlog-connection.ts';

/** Of a dump that stops at the log's end: waits for more, and says whether there is none. */
export async function atLogEnd(connection: BinlogConnection, signal: AbortSignal): Promise<boolean> {
  try {
    await connection.wait(signal);
    return false;
  } catch (error) {
    if (connection.ended && isMysyncError(error, 'SOURCE_CONNECTION_LOST')) return true;
    throw error;
  }
}
