/**
 * Events that are no row data: where transactions begin and end, which GTIDs there are, statements, rotation.
 * Layouts: MySQL, libs/mysql/binlog/event/control_events.h and statement_events.h; MariaDB, sql/log_event.h, Gtid_log_event,
 * Gtid_list_log_event. Every reading is bounded by the event; a RangeError says what does not fit.
 */
import { ByteReader } from './byte-reader.ts';
import { EVENT } from './column-types.ts';
import { inflateEvent } from './compression.ts';
import { readMysqlGtidSet, readSignedVarint, readTag, readUuid, readVarint, uuidText } from './gtid-bytes.ts';
import type { ControlEvent } from './log-event.ts';

const NONE: ControlEvent = { kind: 'none' };
const XID: ControlEvent = { kind: 'xid' };

/** One for all events, which are read one after the other. */
const shared = new ByteReader(Buffer.alloc(0), 0, 0);

/** Flags of MariaDB's GTID event. */
const MARIADB = { STANDALONE: 1, GROUP_COMMIT: 2, PREPARED_XA: 64, COMPLETED_XA: 128 } as const;
/** Its further flags. */
const MARIADB_EXTRA = { START_ALTER: 2, ROLLBACK_ALTER: 8 } as const;
/** Fields of a tagged GTID event, by number. */
const TAGGED = { FLAGS: 0, UUID: 1, NUMBER: 2, TAG: 3, LAST_COMMITTED: 4, SEQUENCE: 5, IMMEDIATE: 6, ORIGINAL: 7 };
/** Fields of a heartbeat of version 2. */
const HEARTBEAT = { END: 0, FILE: 1, OFFSET: 2 } as const;
const LONGEST_XID_PART = 64;
/** LOAD DATA: number of the file, where its name stands in the text, what to do with duplicates. */
const LOADED_FILE_BYTES = 13;

/** `serverId` is that of the event's header. The body is `buffer[start, end)`. */
export function readControlEvent(
  type: number,
  serverId: number,
  buffer: Buffer,
  start: number,
  end: number,
): ControlEvent {
  if (type === EVENT.XID) return XID;
  if (!isControlEvent(type)) return NONE;
  const reader = shared;
  reader.open(buffer, start, end);
  switch (type) {
    case EVENT.QUERY:
    case EVENT.QUERY_COMPRESSED:
      return readQuery(reader, type === EVENT.QUERY_COMPRESSED);
    case EVENT.EXECUTE_LOAD_QUERY:
      return readQuery(reader, false, LOADED_FILE_BYTES);
    case EVENT.ROTATE:
      return { kind: 'rotate', offset: reader.uint64(), file: fileName(reader, reader.left) };
    case EVENT.GTID:
      return readGtid(reader, true);
    case EVENT.ANONYMOUS_GTID:
      return readGtid(reader, false);
    case EVENT.GTID_TAGGED:
      return readTaggedGtid(reader);
    case EVENT.PREVIOUS_GTIDS:
      return { kind: 'gtid-set', gtidSet: readMysqlGtidSet(reader) };
    case EVENT.MARIADB_GTID:
      return readMariadbGtid(reader, serverId);
    case EVENT.MARIADB_GTID_LIST:
      return readMariadbGtidList(reader);
    case EVENT.XA_PREPARE:
      return { kind: 'xa-prepare', onePhase: reader.uint(1) !== 0, xid: readXid(reader, 4) };
    case EVENT.HEARTBEAT:
      return { kind: 'heartbeat', file: fileName(reader, reader.left), offset: 0 };
    case EVENT.HEARTBEAT_V2:
      return readHeartbeat(reader);
    case EVENT.INCIDENT:
      return { kind: 'incident', number: reader.uint(2), text: reader.text(Math.min(reader.uint(1), reader.left)) };
    default:
      return NONE;
  }
}

/** Rows are by far the most events: nothing is made for them. */
function isControlEvent(type: number): boolean {
  return (
    type === EVENT.QUERY ||
    type === EVENT.EXECUTE_LOAD_QUERY ||
    type === EVENT.ROTATE ||
    type === EVENT.XID ||
    type === EVENT.INCIDENT ||
    type === EVENT.HEARTBEAT ||
    (type >= EVENT.GTID && type <= EVENT.XA_PREPARE) ||
    type === EVENT.HEARTBEAT_V2 ||
    type === EVENT.GTID_TAGGED ||
    (type >= EVENT.MARIADB_GTID && type <= EVENT.QUERY_COMPRESSED)
  );
}

/** Thread, seconds of execution, length of the database's name, error code, length of the variables, perhaps more; variables, database, text. */
function readQuery(reader: ByteReader, compressed: boolean, moreBytes = 0): ControlEvent {
  reader.skip(8);
  const databaseBytes = reader.uint(1);
  reader.skip(2);
  const variableBytes = reader.uint(2);
  reader.skip(moreBytes + variableBytes);
  const database = reader.text(databaseBytes);
  reader.skip(1);
  const bytes = compressed ? inflateEvent(reader.bytes(reader.left)) : reader.bytes(reader.left);
  const statement = bytes.toString('utf8');
  return { kind: 'query', database, statement, bytes: NOT_ASCII.test(statement) ? bytes : null };
}

const NOT_ASCII = /[^\0-\x7f]/;

/** Flags, UUID, number, kind of the logical clock and its two numbers, then the commit time. */
function readGtid(reader: ByteReader, named: boolean): ControlEvent {
  reader.skip(1);
  const uuid = readUuid(reader);
  const number = reader.uint64();
  if (named && number < 1) throw new RangeError('a GTID without a number');
  const gtid = named ? `${uuid}:${number}` : '';
  if (reader.left === 0) return { kind: 'gtid', gtid, commitTimeMicros: 0 };
  reader.skip(1 + 8 + 8);
  // of the server that sends; its highest bit set means that the original server's follows
  const immediate = commitTime(reader);
  const isOriginal = immediate < 2 ** 55;
  const micros = isOriginal ? immediate : commitTime(reader);
  if (!Number.isSafeInteger(micros)) throw new RangeError(`a commit time of ${micros} µs`);
  return { kind: 'gtid', gtid, commitTimeMicros: micros };
}

/** Seven bytes; 0 where the event ends before. */
function commitTime(reader: ByteReader): number {
  if (reader.left === 0) return 0;
  return reader.uint(6) + reader.uint(1) * 2 ** 48;
}

/** Version, size, then numbered fields in order, of which those with a default may be missing. */
function readTaggedGtid(reader: ByteReader): ControlEvent {
  const from = reader.at;
  const version = readVarint(reader);
  if (version !== 1) throw new RangeError(`${version} is no known version of a tagged GTID`);
  const size = readVarint(reader);
  if (size > reader.end - from) throw new RangeError(`a tagged GTID of ${size} bytes is longer than its event`);
  const fields = new ByteReader(reader.buffer, reader.at, from + size);
  readVarint(fields); // the last field that may not be ignored
  let uuid: string | undefined;
  let number: number | undefined;
  let tag = '';
  let micros = 0;
  while (fields.left > 0) {
    const field = readVarint(fields);
    if (field === TAGGED.UUID) {
      const bytes = Buffer.from(Array.from({ length: 16 }, () => readVarint(fields)));
      uuid = uuidText(bytes.toString('hex'));
    } else if (field === TAGGED.NUMBER) number = readSignedVarint(fields);
    else if (field === TAGGED.TAG) tag = readTag(fields);
    else if (field === TAGGED.IMMEDIATE || field === TAGGED.ORIGINAL) micros = readVarint(fields);
    else if (field > TAGGED.ORIGINAL)
      break; // lengths and versions, which nobody asks for
    else readVarint(fields);
  }
  if (uuid === undefined || number === undefined || number < 1) {
    throw new RangeError('a tagged GTID without UUID or number');
  }
  const gtid = tag === '' ? `${uuid}:${number}` : `${uuid}:${tag}:${number}`;
  return { kind: 'gtid', gtid, commitTimeMicros: micros };
}

function readMariadbGtid(reader: ByteReader, serverId: number): ControlEvent {
  const sequence = reader.uint64();
  const domain = reader.uint(4);
  const flags = reader.uint(1);
  if ((flags & MARIADB.GROUP_COMMIT) !== 0) reader.skip(8);
  const isXa = (flags & (MARIADB.PREPARED_XA | MARIADB.COMPLETED_XA)) !== 0;
  const xid = isXa ? readXid(reader, 1) : '';
  const extra = reader.left > 0 ? reader.uint(1) : 0;
  return {
    kind: 'mariadb-gtid',
    gtid: `${mariadbPrefix(domain, serverId)}${sequence}`,
    standalone: (flags & MARIADB.STANDALONE) !== 0,
    preparedXa: (flags & MARIADB.PREPARED_XA) !== 0,
    idle: (extra & (MARIADB_EXTRA.START_ALTER | MARIADB_EXTRA.ROLLBACK_ALTER)) !== 0,
    xid,
  };
}

/** Of the GTIDs that came last: most come from one server. */
let prefix = { domain: 0, serverId: 0, text: '0-0-' };

function mariadbPrefix(domain: number, serverId: number): string {
  if (prefix.domain !== domain || prefix.serverId !== serverId) {
    prefix = { domain, serverId, text: `${domain}-${serverId}-` };
  }
  return prefix.text;
}

/** The count's upper four bits are flags. */
function readMariadbGtidList(reader: ByteReader): ControlEvent {
  const count = reader.uint(4) & 0x0fff_ffff;
  if (count > reader.left / 16) throw new RangeError(`${count} GTIDs are not in the event`);
  const gtids: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const domain = reader.uint(4);
    const server = reader.uint(4);
    gtids.push(`${domain}-${server}-${reader.uint64()}`);
  }
  // as long as a sum, which would have been cut off if it were right
  if (reader.left >= 4) throw new RangeError(`${reader.left} bytes behind the GTIDs`);
  return { kind: 'gtid-set', gtidSet: gtids.join(',') };
}

/** Number of the format, lengths of both parts (of one byte or four each), the parts: in one text that names the transaction. */
function readXid(reader: ByteReader, lengthBytes: 1 | 4): string {
  const format = reader.uint(4);
  const globalBytes = reader.uint(lengthBytes);
  const branchBytes = reader.uint(lengthBytes);
  if (globalBytes > LONGEST_XID_PART || branchBytes > LONGEST_XID_PART) {
    throw new RangeError(`an XA transaction's name has ${globalBytes} and ${branchBytes} bytes`);
  }
  return xidText(format, reader.bytes(globalBytes).toString('hex'), reader.bytes(branchBytes).toString('hex'));
}

/** Both parts in hexadecimal digits, as statements in the log spell them. */
export function xidText(format: number, global: string, branch: string): string {
  return `X'${global}',X'${branch}',${format}`.toLowerCase();
}

function readHeartbeat(reader: ByteReader): ControlEvent {
  let file = '';
  let offset = 0;
  while (reader.left > 0) {
    const field = reader.packed();
    if (field === HEARTBEAT.END) break;
    const bytes = reader.packed();
    if (field === HEARTBEAT.FILE) file = fileName(reader, bytes);
    else if (field === HEARTBEAT.OFFSET) offset = new ByteReader(reader.bytes(bytes), 0, bytes).packed();
    else reader.skip(bytes);
  }
  return { kind: 'heartbeat', file, offset };
}

/** The server's FN_REFLEN. */
const LONGEST_FILE_NAME = 512;

/** Throws where the name is none of a file of the log: a sum that is wrong may have been taken for the end of it. */
function fileName(reader: ByteReader, bytes: number): string {
  if (bytes > LONGEST_FILE_NAME) throw new RangeError(`a file name of ${bytes} bytes`);
  const name = reader.text(bytes);
  if (!/\.\d+$/.test(name)) throw new RangeError('the name of a file of the log ends in no number');
  return name;
}
