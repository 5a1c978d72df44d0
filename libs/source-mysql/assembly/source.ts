/** Where walkers read: the rows of one event, and how far they have been read. Never past their end. */
import { FAIL_SHORT } from '../src/transcribe/layout';
import { fail } from './host';

export let at: usize = 0;
export let end: usize = 0;

export function open(from: usize, to: usize): void {
  at = from;
  end = to;
}

export function moveTo(place: usize): void {
  at = place;
}

/** Steps over so many bytes and returns where they begin. */
export function take(bytes: usize): usize {
  const from = at;
  if (bytes > end - from) fail(FAIL_SHORT, from);
  at = from + bytes;
  return from;
}

/** A little-endian number of one to four bytes. */
export function takeLength(bytes: u32): usize {
  const from = take(bytes);
  // what stands behind the rows may be read, and is masked away
  return <usize>(load<u32>(from) & (0xffffffff >>> (32 - 8 * bytes)));
}
