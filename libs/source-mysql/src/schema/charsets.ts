/**
 * Charsets as the server itself has them.
 *
 * 1. Collation ids and character lengths are asked from the server: each flavour and version has its own.
 * 2. Unicode charsets are decoded here. Every other one is decoded by a table that the server made by converting each of
 *    its byte sequences: so a value of the stream is the text that SELECT shows, also where tables of other
 *    libraries differ (latin1 is cp1252 with gaps filled; each CJK charset has several published mappings).
 */
import type { CharsetNames } from '../history/ddl/charset-names.ts';
import type { LazySession } from '../server/lazy-session.ts';
import type { ServerSession, TextRow } from '../server/session.ts';

/** Text of `buffer[start, end)`. */
export type TextDecode = (buffer: Buffer, start: number, end: number) => string;

const UNICODE: Readonly<Record<string, TextDecode>> = {
  utf8: (buffer, start, end) => buffer.toString('utf8', start, end),
  utf8mb3: (buffer, start, end) => buffer.toString('utf8', start, end),
  utf8mb4: (buffer, start, end) => buffer.toString('utf8', start, end),
  // bytes that the server let in although they are no ASCII are question marks when it shows them
  ascii: (buffer, start, end) => buffer.toString('latin1', start, end).replace(/[^\0-\x7f]/g, '?'),
  binary: (buffer, start, end) => buffer.toString('latin1', start, end),
  ucs2: bigEndian,
  utf16: bigEndian,
  utf16le: (buffer, start, end) => buffer.toString('utf16le', start, end) + rest((end - start) & 1),
  utf32: (buffer, start, end) => {
    let text = '';
    for (let at = start; at + 4 <= end; at += 4) text += String.fromCodePoint(buffer.readUInt32BE(at));
    return text + rest((end - start) & 3);
  },
  gb18030: (buffer, start, end) => gb18030.decode(buffer.subarray(start, end)),
};
const gb18030 = new TextDecoder('gb18030', { ignoreBOM: true });

function bigEndian(buffer: Buffer, start: number, end: number): string {
  const odd = (end - start) & 1;
  const copy = Buffer.from(buffer.subarray(start, end - odd));
  return copy.swap16().toString('utf16le', 0, copy.length) + rest(odd);
}

/** Bytes that are too few for a character: the server shows a question mark for each. */
function rest(bytes: number): string {
  return '?'.repeat(bytes);
}

/** Charsets with sequences of three bytes that begin with 0x8F. */
const THREE_BYTES = new Set(['ujis', 'eucjpms']);

export class Charsets implements CharsetNames {
  readonly #charsetOf: ReadonlyMap<number, string>;
  /** By the collation's name; null: it goes with every charset. */
  readonly #charsetOfName: ReadonlyMap<string, string | null>;
  readonly #maxLength: ReadonlyMap<string, number>;
  readonly #decoders = new Map<string, TextDecode>(Object.entries(UNICODE));

  private constructor(
    charsetOf: ReadonlyMap<number, string>,
    charsetOfName: ReadonlyMap<string, string | null>,
    maxLength: ReadonlyMap<string, number>,
  ) {
    this.#charsetOf = charsetOf;
    this.#charsetOfName = charsetOfName;
    this.#maxLength = maxLength;
  }

  static async load(session: ServerSession): Promise<Charsets> {
    const lengths = await session.query(
      'SELECT CHARACTER_SET_NAME AS name, MAXLEN AS length FROM information_schema.CHARACTER_SETS',
    );
    // MariaDB's newer collations stand, with their ids, in the second table only
    const [own, more] = [
      await session.query(
        'SELECT ID AS id, CHARACTER_SET_NAME AS name, COLLATION_NAME AS collation FROM information_schema.COLLATIONS',
      ),
      session.facts.flavor === 'mariadb' && session.facts.versionNumber >= 101_000
        ? await session.query(
            'SELECT ID AS id, CHARACTER_SET_NAME AS name, FULL_COLLATION_NAME AS collation FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY',
          )
        : [],
    ];
    const ids = new Map<number, string>();
    for (const row of [...own, ...more])
      if (row['id'] != null && row['name'] != null) ids.set(Number(row['id']), row['name']);
    const names = new Map([...own, ...more].map((row) => [row['collation'] ?? '', row['name'] ?? null]));
    return new Charsets(ids, names, new Map(lengths.map((row) => [row['name'] ?? '', Number(row['length'])])));
  }

  charsetOf(collationId: number): string | undefined {
    return this.#charsetOf.get(collationId);
  }

  /** Any collation of a charset; 0 where there is none. */
  collationOf(charset: string): number {
    for (const [id, name] of this.#charsetOf) if (name === charset) return id;
    return 0;
  }

  charset(name: string): string | undefined {
    const wanted = name.toLowerCase();
    if (this.#maxLength.has(wanted)) return wanted;
    const other = wanted === 'utf8' ? 'utf8mb3' : wanted === 'utf8mb3' ? 'utf8' : '';
    return this.#maxLength.has(other) ? other : undefined;
  }

  charsetOfCollation(name: string): string | null | undefined {
    const wanted = name.toLowerCase();
    const found = this.#charsetOfName.get(wanted);
    if (found !== undefined) return found;
    const other = wanted.startsWith('utf8_')
      ? wanted.replace('utf8_', 'utf8mb3_')
      : wanted.replace('utf8mb3_', 'utf8_');
    return this.#charsetOfName.get(other);
  }

  /** Most bytes of one character. */
  maxLength(charset: string): number {
    return this.#maxLength.get(charset) ?? 1;
  }

  /** A statement as its client wrote it; `collationId` is the client's, one that is not known means UTF-8. */
  async statementText(bytes: Buffer, collationId: number, session: LazySession): Promise<string> {
    const charset = this.charsetOf(collationId);
    if (charset === undefined) return bytes.toString('utf8');
    await session.use((open) => this.prepare([charset], open));
    return this.decoder(charset)(bytes, 0, bytes.length);
  }

  /** Throws unless the charset was prepared. */
  decoder(charset: string): TextDecode {
    const decode = this.#decoders.get(charset);
    if (decode === undefined) throw new Error(`charset ${charset} was not prepared`);
    return decode;
  }

  /** Fetches the tables of the charsets that have none yet. */
  async prepare(names: Iterable<string>, session: ServerSession): Promise<void> {
    for (const name of new Set(names)) {
      if (name === '' || this.#decoders.has(name)) continue;
      this.#decoders.set(name, await fetchDecoder(name, this.maxLength(name), session));
    }
  }
}

async function fetchDecoder(charset: string, maxLength: number, session: ServerSession): Promise<TextDecode> {
  const singles: (string | undefined)[] = new Array(256);
  for (const row of await session.query(conversion(charset, '', 0, 255))) {
    const text = utf16Text(row);
    const byte = Number.parseInt(row['bytes'] ?? '', 16);
    // where the server has no character it gives NULL or a question mark
    if (text !== undefined && (text !== '?' || byte === 0x3f)) singles[byte] = text;
  }
  if (maxLength === 1) return singleByteDecoder(singles);
  const pairs = await fetchPairs(charset, '', session);
  const triples = THREE_BYTES.has(charset) ? await fetchPairs(charset, '8F', session) : undefined;
  return multiByteDecoder(singles, pairs, triples, session.facts.flavor === 'mysql' ? '' : '?');
}

/** undefined where the bytes are no character of the charset; a question mark where Unicode has none for it. */
async function fetchPairs(
  charset: string,
  prefix: string,
  session: ServerSession,
): Promise<readonly (string | undefined)[]> {
  const table: (string | undefined)[] = new Array(65_536);
  const leads = `(${bytesQuery(0x80, 0xff)}) a`;
  const trails = `(${bytesQuery(0x30, 0xff)}) b`;
  const bytes = `CONCAT(a.h, b.h)`;
  const rows = await session.query(
    `SELECT ${bytes} AS bytes, ${converted(charset, `CONCAT('${prefix}', ${bytes})`)} AS text FROM ${leads}, ${trails}`,
  );
  for (const row of rows) {
    const text = utf16Text(row);
    if (text !== undefined) table[Number.parseInt(row['bytes'] ?? '', 16)] = text;
  }
  return table;
}

function conversion(charset: string, prefix: string, from: number, to: number): string {
  return `SELECT a.h AS bytes, ${converted(charset, `CONCAT('${prefix}', a.h)`)} AS text FROM (${bytesQuery(from, to)}) a`;
}

/** The name comes from the server's own list of charsets. */
function converted(charset: string, hex: string): string {
  return `HEX(CONVERT(CONVERT(UNHEX(${hex}) USING ${charset}) USING utf16))`;
}

function bytesQuery(from: number, to: number): string {
  const hex = Array.from({ length: to - from + 1 }, (_, i) => (from + i).toString(16).padStart(2, '0').toUpperCase());
  return hex.map((text, i) => (i === 0 ? `SELECT '${text}' AS h` : `SELECT '${text}'`)).join(' UNION ALL ');
}

function utf16Text(row: TextRow): string | undefined {
  const hex = row['text'];
  if (hex == null || hex === '') return undefined;
  const bytes = Buffer.from(hex, 'hex');
  return bigEndian(bytes, 0, bytes.length);
}

function isAscii(buffer: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if ((buffer[at] as number) > 0x7f) return false;
  return true;
}

function singleByteDecoder(singles: readonly (string | undefined)[]): TextDecode {
  const plain = asciiIsPlain(singles);
  return (buffer, start, end) => {
    if (plain && isAscii(buffer, start, end)) return buffer.toString('latin1', start, end);
    let text = '';
    for (let at = start; at < end; at += 1) text += singles[buffer[at] as number] ?? '?';
    return text;
  };
}

function multiByteDecoder(
  singles: readonly (string | undefined)[],
  pairs: readonly (string | undefined)[],
  triples: readonly (string | undefined)[] | undefined,
  /** What the beginning of a character is at the end of a text. */
  cutOff: string,
): TextDecode {
  const plain = asciiIsPlain(singles);
  // what is no character is one question mark: for a byte in the EUC charsets with three bytes, for two in all others
  const wrong = triples === undefined ? 2 : 1;
  return (buffer, start, end) => {
    if (plain && isAscii(buffer, start, end)) return buffer.toString('latin1', start, end);
    let text = '';
    for (let at = start; at < end; ) {
      const first = buffer[at] as number;
      let character = singles[first];
      let bytes = 1;
      if (character === undefined && at + 1 === end && isLead(first, pairs)) return text + cutOff;
      if (character === undefined && at + 1 < end) {
        bytes = first === 0x8f && triples !== undefined ? 3 : 2;
        if (bytes === 2) character = pairs[(first << 8) | (buffer[at + 1] as number)];
        else if (at + 2 < end) character = triples?.[((buffer[at + 1] as number) << 8) | (buffer[at + 2] as number)];
      }
      text += character ?? '?';
      at += character === undefined ? Math.min(wrong, end - at) : bytes;
    }
    return text;
  };
}

function isLead(byte: number, pairs: readonly (string | undefined)[]): boolean {
  for (let at = byte << 8; at < (byte + 1) << 8; at += 1) if (pairs[at] !== undefined) return true;
  return false;
}

/** Charsets such as swe7 have letters in place of ASCII's brackets. */
function asciiIsPlain(singles: readonly (string | undefined)[]): boolean {
  return singles.slice(0, 128).every((text, byte) => text === String.fromCharCode(byte));
}
