import { formatBinlogPosition, formatTableRef, type Logger, type MysyncError, type TableRef } from '@mysync/core';
import type { Batch } from '@mysync/flow';
import type { Metrics } from '@mysync/telemetry';
import { transportErrors } from '@mysync/transport';
import { decodeKey, EncodedRow, rowToJson, smallerRow } from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';

/** What becomes of a row's change that is larger than the transport takes. */
export type LargeRowPolicy = 'halt' | 'withhold';

export interface LargeRowsOptions {
  readonly source: string;
  readonly onLargeRow: (table: TableRef) => LargeRowPolicy;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const MEBI = 2 ** 20;
/** More than any transport puts around one record. */
const BATCH_BYTES = 4096;

/**
 * Messages that the transport refuses for their size.
 *
 * 1. A message is made smaller only after it was refused, so it is in no log; it keeps its sequence, version and key.
 * 2. The image before goes first: nobody who keeps the newest state needs it. Only when that was not enough is the row withheld, so that
 *    its consumers learn that what they hold of it is out of date.
 */
export class LargeRows {
  readonly #options: LargeRowsOptions;

  constructor(options: LargeRowsOptions) {
    this.#options = options;
  }

  /** Puts a smaller message in the place of the one that was refused and gives null, or the error to end with. */
  meet(refusal: MysyncError, batch: Batch<WindowEntry>): MysyncError | null {
    const entry = batch.items[Number(refusal.where['record'])];
    const decoded = entry === undefined ? undefined : decodeKey(entry.message.key);
    if (entry === undefined || decoded?.kind !== 'row') return refusal;
    const { columns, values } = decoded.row;
    const { id } = entry.transaction;
    const place = {
      table: formatTableRef(decoded.row),
      row: JSON.stringify(rowToJson(columns, values)),
      position: formatBinlogPosition(id),
      gtid: id.gtid,
    };
    const { source, onLargeRow, logger, metrics } = this.#options;
    const { message } = entry;
    const withholds = onLargeRow(decoded.row) === 'withhold' && message instanceof EncodedRow;
    const smaller = withholds ? smallerRow(message) : null;
    if (smaller === null) return tooLarge(refusal, place, message.bytes);
    const fields = { ...place, bytes: message.bytes };
    if (smaller.operation === 'withheld') {
      metrics.reader.withheldRows.inc({ source, table: place.table });
      logger.error(fields, 'row withheld: its message is larger than the transport takes');
    } else {
      logger.warn(fields, 'the image before is left out: the message is larger than the transport takes');
    }
    entry.message = smaller;
    message.giveBack();
    return null;
  }
}

/** The transport knows a record's place in its batch; the operator wants to know the row, where it changed, and which limit would do. */
function tooLarge(
  refusal: MysyncError,
  place: { readonly table: string; readonly row: string },
  bytes: number,
): MysyncError {
  const needed = Math.ceil((bytes + BATCH_BYTES) / MEBI) * MEBI;
  return transportErrors.TRANSPORT_RECORD_TOO_LARGE({
    message: `the message of the row ${place.row} of ${place.table} is larger than the transport takes`,
    where: { ...refusal.where, ...place },
    remedy: `Set transport.log.maxRecordBytes, or transport.kafka.maxRecordBytes and max.message.bytes of the topic, to ${needed} or more, then start again: nothing was skipped. Or have such rows withheld (sources.NAME.onLargeRow), or do not capture the table.`,
    cause: refusal,
  });
}
