/** A row image of a rows event as one of a message. */
import { COLUMN_BYTES, PLAN_COLUMN_COUNT, PLAN_COLUMNS } from '../src/transcribe/layout';
import { FIXED_ROOM, putNull, putVarint, room, varintSize } from './output';
import { plan } from './plan';
import { take } from './source';
import { walk } from './walk';

/** Where the values begin of the image that was written last. */
export let body: usize = 0;

/**
 * Writes the image as the field `tag` and returns where it ends. Where each value begins, counted from the first, goes to `places`. For the
 * length two bytes are left: rows from 128 bytes to 16 KiB stay where they are.
 */
export function putImage(out: usize, tag: u8, places: usize): usize {
  const count = <usize>load<u32>(plan, PLAN_COLUMN_COUNT);
  let column = plan + <usize>load<u32>(plan, PLAN_COLUMNS);
  const nulls = take((count + 7) >> 3);
  store<u8>(out, tag);
  const values = out + 3;
  let at = values;
  for (let i: usize = 0; i < count; i += 1) {
    room(at, FIXED_ROOM);
    store<u32>(places + 4 * i, <u32>(at - values));
    at = ((<u32>load<u8>(nulls + (i >> 3)) >>> (<u32>i & 7)) & 1) === 1 ? putNull(at) : walk(column, at);
    column += COLUMN_BYTES;
  }
  return closeRow(values, at);
}

function closeRow(values: usize, end: usize): usize {
  const length = end - values;
  if (length >= 0x80 && length <= 0x3fff) {
    store<u16>(values - 2, <u16>((length & 0x7f) | 0x80 | ((length >> 7) << 8)));
    body = values;
    return end;
  }
  body = values - 2 + varintSize(length);
  room(end, FIXED_ROOM);
  memory.copy(body, values, length);
  putVarint(values - 2, length);
  return body + length;
}
