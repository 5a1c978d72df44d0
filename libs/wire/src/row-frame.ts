/** The frame of a row image in a message: its tag, and its length once it is known. */
import type { ByteWriter } from './byte-writer.ts';

/** Begins the image, as the message's field `tag`. Returns where its values begin, counted from `start`. */
export function openRow(writer: ByteWriter, tag: number): number {
  writer.ensure(8);
  writer.buffer[writer.position] = tag;
  writer.position += 3;
  return writer.position - writer.start;
}

/**
 * Puts the length in front of the values that began at `mark`, for which two bytes were left: rows from 128 bytes to 16 KiB stay where they
 * are. Returns where the values begin now.
 */
export function closeRow(writer: ByteWriter, mark: number): number {
  const length = writer.position - writer.start - mark;
  if (length < 0x80 || length > 0x3fff) {
    const size = length < 0x80 ? 1 : length < 0x200000 ? 3 : length < 0x10000000 ? 4 : 5;
    writer.ensure(4);
    const from = writer.start + mark;
    writer.buffer.copyWithin(from - 2 + size, from, writer.position);
    writer.position = from - 2;
    writer.varint64(length, 0);
    writer.position += length;
    return mark - 2 + size;
  }
  const at = writer.start + mark - 2;
  writer.buffer[at] = (length & 0x7f) | 0x80;
  writer.buffer[at + 1] = length >>> 7;
  return mark;
}
