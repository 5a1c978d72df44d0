import {
  type Clock,
  formatBinlogPosition,
  formatTableRef,
  type Logger,
  type MysyncError,
  type TableRef,
} from '@mysync/core';
import type { Batch } from '@mysync/flow';
import type { Metrics } from '@mysync/telemetry';
import { type Publisher, transportErrors } from '@mysync/transport';
import { decodeKey, EncodedRow, rowToJson, smallerRow, toRecord } from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';

/** What becomes of a row's change that is larger than the transport takes. */
export type LargeRowPolicy = 'halt' | 'withhold';

export interface LargeRowsOptions {
  readonly source: string;
  readonly publisher: Pick<Publisher, 'takes' | 'surelyTakenBytes'>;
  readonly onLargeRow: (table: TableRef) => LargeRowPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const MEBI = 2 ** 20;
/** More than any transport puts around one record. */
const BATCH_BYTES = 4096;
/** The largest limit that can be configured. */
const MOST_BYTES = 2 ** 30;
/** Of a table, what becomes of its rows is told at most this often, with a count. */
const TELL_MS = 10_000;

/**
 * Messages that are larger than the transport takes, as it says (`Publisher.takes`) or shows by a refusal.
 *
 * 1. A message is made smaller only while it is in no log: it was refused, or its caller knows (`Unstored`). It keeps its sequence, version
 *    and key.
 * 2. The image before goes first: nobody who keeps the newest state needs more of it than what names the row. Only when that was not enough
 *    is the row withheld, so that its consumers learn that what they hold of it is out of date.
 * 3. The limit is the transport's own at that moment; nothing of it is remembered here.
 */
export class LargeRows {
  readonly #options: LargeRowsOptions;
  /** By table and outcome: when it was told last, and how many rows since. */
  readonly #told = new Map<string, { atMs: number; untold: number }>();

  constructor(options: LargeRowsOptions) {
    this.#options = options;
  }

  /** Puts a smaller message in the place of the one that was refused (none, where only the batch was too large) and gives null, or the error to end with. */
  meet(refusal: MysyncError, batch: Batch<WindowEntry>): MysyncError | null {
    const place = refusal.where['record'];
    if (place === undefined) return null;
    const entry = batch.items[Number(place)];
    return entry === undefined || !this.#shrink(entry, 1) ? this.#failure(refusal, entry) : null;
  }

  /** Puts a message that fits in the place of one that does not, where there is one. The message must be in no log. */
  fit(entry: WindowEntry): void {
    if (entry.message.bytes > this.#options.publisher.surelyTakenBytes) this.#shrink(entry, 0);
  }

  /** By `steps` at least, then until the transport takes it; false when it stays as it is. */
  #shrink(entry: WindowEntry, steps: number): boolean {
    const { publisher, onLargeRow } = this.#options;
    const whole = entry.message;
    if (!(whole instanceof EncodedRow)) return false;
    let message = whole;
    for (
      let step = 0;
      step < steps || !publisher.takes(toRecord(message.key, message.payload, message.deletes));
      step += 1
    ) {
      if (step === 0 && onLargeRow(rowOf(message)) !== 'withhold') return false;
      const smaller = smallerRow(message);
      if (smaller === null) break;
      message = smaller;
    }
    if (message === whole) return false;
    this.#tell(entry, message);
    entry.message = message;
    whole.giveBack();
    return true;
  }

  /** What happens often is counted, not told each time: the metric has them all. */
  #tell(entry: WindowEntry, message: EncodedRow): void {
    const { source, metrics, clock, logger } = this.#options;
    const place = placeOf(entry);
    const isWithheld = message.operation === 'withheld';
    if (isWithheld) metrics.reader.withheldRows.inc({ source, table: place.table });
    const name = `${isWithheld} ${place.table}`;
    const nowMs = clock.monotonic();
    const told = this.#told.get(name) ?? { atMs: Number.NEGATIVE_INFINITY, untold: 0 };
    this.#told.set(name, told);
    told.untold += 1;
    if (nowMs - told.atMs < TELL_MS) return;
    const fields = { ...place, bytes: entry.message.bytes, rows: told.untold };
    told.atMs = nowMs;
    told.untold = 0;
    if (isWithheld) logger.error(fields, 'row withheld: its message is larger than the transport takes');
    else logger.warn(fields, 'the image before is left out: the message is larger than the transport takes');
  }

  /** The transport knows a record's place in its batch; the operator wants to know the row, where it changed, and which limit would do. */
  #failure(refusal: MysyncError, entry: WindowEntry | undefined): MysyncError {
    if (entry === undefined || !(entry.message instanceof EncodedRow)) return refusal;
    const place = placeOf(entry);
    const withholds = this.#options.onLargeRow(rowOf(entry.message)) === 'withhold';
    const what = withholds ? 'what is left of the row' : 'the message of the row';
    return transportErrors.TRANSPORT_RECORD_TOO_LARGE({
      message: `${what} ${place.row} of ${place.table} is larger than the transport takes (${entry.message.bytes} bytes)`,
      where: { ...refusal.where, ...place },
      remedy: remedyOf(entry.message.bytes, withholds),
      cause: refusal,
    });
  }
}

function remedyOf(bytes: number, withholds: boolean): string {
  const needed = Math.ceil((bytes + BATCH_BYTES) / MEBI) * MEBI;
  const others = withholds ? 'Or do' : 'Or have such rows withheld (sources.NAME.onLargeRow), or do';
  if (needed > MOST_BYTES) {
    return `No limit that can be configured takes ${needed} bytes. ${withholds ? 'Do' : 'Have such rows withheld (sources.NAME.onLargeRow), or do'} not capture the table, then start again.`;
  }
  return `Set transport.log.maxRecordBytes, or transport.kafka.maxRecordBytes and max.message.bytes of the topic, to ${needed} or more, then start again: nothing was skipped. ${others} not capture the table.`;
}

function placeOf({ message, transaction: { id } }: WindowEntry) {
  const row = rowOf(message as EncodedRow);
  return {
    table: formatTableRef(row),
    row: JSON.stringify(rowToJson(row.columns, row.values)),
    position: formatBinlogPosition(id),
    ...(id.gtid === '' ? {} : { gtid: id.gtid }),
  };
}

function rowOf(message: EncodedRow) {
  const decoded = decodeKey(message.key);
  if (decoded.kind !== 'row') throw new TypeError('the key of a row is no row key');
  return decoded.row;
}
