/** The commands of a replica, as packets (MySQL, "Client/Server Protocol", replication commands). */
import { mysqlGtidSetBytes } from '../binlog/gtid-bytes.ts';
import { FIRST_OFFSET } from './far-place.ts';

const COM_BINLOG_DUMP = 0x12;
const COM_REGISTER_REPLICA = 0x15;
const COM_BINLOG_DUMP_GTID = 0x1e;
const HEADER_BYTES = 4;
const FLAG = { NON_BLOCK: 1, THROUGH_GTID: 4 } as const;

/** Where the log is asked for. A GTID set stands for everything that is not in it. */
export type DumpStart =
  | { readonly kind: 'place'; readonly file: string; readonly offset: number }
  | { readonly kind: 'gtids'; readonly flavor: 'mysql' | 'mariadb'; readonly gtidSet: string };

/** Makes us visible in SHOW REPLICAS, so that nobody else takes our id: server id, host, user, password, port, rank, id of the source. */
export function registerReplica(serverId: number, hostName: string): Buffer {
  const host = Buffer.from(hostName, 'utf8').subarray(0, 60);
  const packet = begin(COM_REGISTER_REPLICA, 4 + 1 + host.length + 1 + 1 + 2 + 4 + 4);
  packet.writeUInt32LE(serverId, HEADER_BYTES + 1);
  packet[HEADER_BYTES + 5] = host.length;
  host.copy(packet, HEADER_BYTES + 6);
  return packet;
}

/** `stopsAtEnd`: the server ends the stream where its log ends, in place of waiting for more. */
export function dumpRequest(start: DumpStart, serverId: number, stopsAtEnd: boolean): Buffer {
  const flags = stopsAtEnd ? FLAG.NON_BLOCK : 0;
  if (start.kind === 'gtids' && start.flavor === 'mysql') return dumpByGtids(start.gtidSet, serverId, flags);
  // MariaDB takes the GTIDs from a variable of the session, and ignores the place
  const { file, offset } = start.kind === 'place' ? start : { file: '', offset: FIRST_OFFSET };
  const name = Buffer.from(file, 'utf8');
  const packet = begin(COM_BINLOG_DUMP, 4 + 2 + 4 + name.length);
  let at = packet.writeUInt32LE(offset, HEADER_BYTES + 1);
  at = packet.writeUInt16LE(flags, at);
  at = packet.writeUInt32LE(serverId, at);
  name.copy(packet, at);
  return packet;
}

function dumpByGtids(gtidSet: string, serverId: number, flags: number): Buffer {
  const set = mysqlGtidSetBytes(gtidSet);
  const packet = begin(COM_BINLOG_DUMP_GTID, 2 + 4 + 4 + 8 + 4 + set.length);
  let at = packet.writeUInt16LE(flags | FLAG.THROUGH_GTID, HEADER_BYTES + 1);
  at = packet.writeUInt32LE(serverId, at);
  at = packet.writeUInt32LE(0, at); // no file name
  at = packet.writeBigUInt64LE(BigInt(FIRST_OFFSET), at);
  at = packet.writeUInt32LE(set.length, at);
  set.copy(packet, at);
  return packet;
}

function begin(command: number, bodyBytes: number): Buffer {
  const packet = Buffer.alloc(HEADER_BYTES + 1 + bodyBytes);
  packet.writeUIntLE(1 + bodyBytes, 0, 3);
  packet[HEADER_BYTES] = command;
  return packet;
}
