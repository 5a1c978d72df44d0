/** What the suite reads of a message beyond its numbers in fixed places, with a decoder of its own (docs/spec/message.md, proto/mysync/v1/message.proto). */

/** A place in the source's log. */
export interface SourcePlace {
  readonly file: string;
  readonly offset: number;
}

/** What happened, and where the transaction that it is of begins. */
export interface LoggedChange extends SourcePlace {
  /** As in the enum Operation. */
  readonly operation: number;
}

/** A field of a protobuf message: of a varint its value, else its bytes. */
interface Field {
  readonly number: number;
  readonly value: number;
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);
const text = new TextDecoder();

/** null where it names no place: a fence, or a heartbeat before the first change. */
export function readChange(message: Uint8Array): LoggedChange | null {
  let operation = 0;
  let source: Uint8Array = NO_BYTES;
  // they are the second and the third; rows lie behind them
  for (const { number, value, bytes } of fieldsOf(message)) {
    if (number === 2) operation = value;
    else if (number === 3) source = bytes;
    if (number >= 3) break;
  }
  let transaction: Uint8Array = NO_BYTES;
  for (const { number, bytes } of fieldsOf(source)) if (number === 1) transaction = bytes;
  let file = '';
  let offset = 0;
  for (const { number, value, bytes } of fieldsOf(transaction)) {
    if (number === 4) file = text.decode(bytes);
    else if (number === 5) offset = value;
  }
  return file === '' ? null : { operation, file, offset };
}

/** Below 0: `a` lies before `b`. Files are ordered by their numbers. */
export function comparePlaces(a: SourcePlace, b: SourcePlace): number {
  return a.file === b.file ? a.offset - b.offset : numberOf(a.file) - numberOf(b.file);
}

function numberOf(file: string): number {
  return Number(file.slice(file.lastIndexOf('.') + 1));
}

function* fieldsOf(message: Uint8Array): Generator<Field> {
  let at = 0;
  // up to 2^53: places and lengths are
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at];
      if (byte === undefined) throw new Error('a message of the log is cut off');
      at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    const kind = tag % 8;
    if (kind === 0) {
      yield { number, value: varint(), bytes: NO_BYTES };
      continue;
    }
    const length = kind === 1 ? 8 : kind === 5 ? 4 : kind === 2 ? varint() : Number.POSITIVE_INFINITY;
    if (at + length > message.length) throw new Error('a message of the log is no protobuf message');
    yield { number, value: 0, bytes: message.subarray(at, at + length) };
    at += length;
  }
}
