/**
 * Rows of an event to records: from bytes to bytes. The host (`src/transcribe/`) copies the rows to INPUT, tells
 * what they share and where the records go, and is told by numbers in STATE and RECORDS how far it went. It says what the records are held to.
 *
 * 1. Nothing is read past the rows' end but what lies in SLACK, and no length is believed before it was compared with it; an image takes at
 *    least a byte.
 * 2. Nothing is written past the end that the host names: a row that finds no room fails.
 * 3. A failure leaves STATE_ROW at the row that failed and STATE_RECORDS at the records before it.
 *
 * An update is written as one message first; only when it then shows another key it is written again as two.
 */
import {
  DELETE,
  INSERT,
  PLACES_AFTER,
  PLACES_BEFORE,
  RECORD_BYTES,
  RECORD_DELETES,
  RECORD_END,
  RECORD_HASH,
  RECORD_KEY,
  RECORDS,
  STATE_EXPECTED,
  STATE_ORDINAL,
  STATE_RECORDS,
  STATE_ROW,
  UPDATE,
} from '../src/transcribe/layout';
import { openHead, putHead } from './head';
import { body, putImage } from './image';
import { hash, putKey, sameKey } from './key';
import { FIXED_ROOM, openOutput, room } from './output';
import { usePlan } from './plan';
import { at, end, moveTo, open } from './source';

const BEFORE: u8 = 0x2a;
const AFTER: u8 = 0x32;
/** The field last_in_transaction: false. */
const NOT_LAST: u16 = 0x0078;

const RECORDS_AT: usize = RECORDS;

let record: usize = 0;
let ordinal: u64 = 0;
/** Places of records are counted from here. */
let base: usize = 0;

/**
 * Of rows in `[from, to)`, one at least. The records are written from `first` to `limit` at most. It stops early when `enough` is reached, and when the next one may not
 * find room: then it is called again, from STATE_ROW and STATE_ORDINAL on.
 */
export function transcribe(
  plan: usize,
  operation: u32,
  from: usize,
  to: usize,
  blockBytes: usize,
  fileBytes: usize,
  eventOffset: f64,
  firstOrdinal: f64,
  begin: usize,
  first: usize,
  enough: usize,
  limit: usize,
): void {
  usePlan(plan);
  open(from, to);
  openOutput(limit);
  base = begin;
  openHead(blockBytes, fileBytes, <u64>eventOffset);
  ordinal = <u64>firstOrdinal;
  record = RECORDS_AT;
  let out = first;
  let expected = <usize>load<u32>(STATE_EXPECTED);
  settle();
  do {
    const start = out;
    if (operation === INSERT) out = putInsert(out);
    else if (operation === DELETE) out = putDelete(out);
    else out = putUpdate(out);
    const size = out - start;
    // small ones between large ones do not count at once, and the next one may be somewhat larger
    expected = max(size + (size >> 3), expected - (expected >> 4));
    store<u32>(STATE_EXPECTED, <u32>expected);
    settle();
  } while (at < end && out < enough && out + expected <= limit);
}

function settle(): void {
  store<u32>(STATE_ROW, <u32>at);
  store<u32>(STATE_RECORDS, <u32>((record - RECORDS_AT) / RECORD_BYTES));
  store<f64>(STATE_ORDINAL, <f64>ordinal);
}

function putInsert(out: usize): usize {
  const end = putImage(putHead(out, INSERT, ordinal), AFTER, PLACES_AFTER);
  return finish(end, body, PLACES_AFTER, 0);
}

function putDelete(out: usize): usize {
  const end = putImage(putHead(out, DELETE, ordinal), BEFORE, PLACES_BEFORE);
  return finish(end, body, PLACES_BEFORE, 1);
}

function putUpdate(out: usize): usize {
  const start = at;
  let to = putImage(putHead(out, UPDATE, ordinal), BEFORE, PLACES_BEFORE);
  const before = body;
  to = putImage(to, AFTER, PLACES_AFTER);
  if (sameKey(before, PLACES_BEFORE, body, PLACES_AFTER)) return finish(to, body, PLACES_AFTER, 0);
  moveTo(start);
  to = putDelete(out);
  // behind the image before it stands the one after it
  return putInsert(to);
}

/** What stands behind the images, and the record's key. */
function finish(out: usize, values: usize, places: usize, deletes: u32): usize {
  room(out, FIXED_ROOM);
  store<u16>(out, NOT_LAST);
  const key = out + 2;
  const to = putKey(key, values, places);
  store<u32>(record, <u32>(key - base), RECORD_KEY);
  store<u32>(record, <u32>(to - base), RECORD_END);
  store<u32>(record, hash, RECORD_HASH);
  store<u32>(record, deletes, RECORD_DELETES);
  record += RECORD_BYTES;
  ordinal += 1;
  return to;
}
