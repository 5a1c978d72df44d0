/** Where a walker reads: the rows of one event, and how far they have been read. Never past their end. */

const NO_BYTES = Buffer.alloc(0);

export class RowBytes {
  buffer: Buffer = NO_BYTES;
  /** Over the same bytes, with the same places. */
  view: DataView = new DataView(NO_BYTES.buffer, NO_BYTES.byteOffset, 0);
  at = 0;
  end = 0;

  open(buffer: Buffer, start: number, end: number): void {
    if (this.buffer !== buffer) {
      this.buffer = buffer;
      this.view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
    }
    this.at = start;
    this.end = end;
  }

  /** Steps over so many bytes and returns where they begin. Throws a RangeError when there are fewer. */
  take(bytes: number): number {
    const at = this.at;
    const next = at + bytes;
    if (next > this.end) throw new RangeError(`${bytes} bytes wanted at ${at}, the rows end at ${this.end}`);
    this.at = next;
    return at;
  }

  /** A little-endian number of one to four bytes. */
  length(bytes: number): number {
    const at = this.take(bytes);
    const { buffer } = this;
    let value = buffer[at] as number;
    if (bytes > 1) value += (buffer[at + 1] as number) << 8;
    if (bytes > 2) value += (buffer[at + 2] as number) << 16;
    if (bytes > 3) value += (buffer[at + 3] as number) * 0x1000000;
    return value;
  }
}
