/** Logs in through the client library, prepares the session for a dump, and takes its stream over. */
import type { Duplex } from 'node:stream';
import { createConnection } from 'mysql2';
import type { HostAddress } from '../options.ts';
import { type Credentials, connectionOptions } from '../server/session.ts';
import type { DumpStart } from './commands.ts';
import { Receiver, type Take } from './receiver.ts';

/** Fits any pause of a consumer: the largest value of net_write_timeout that both flavours accept on Linux. */
const YEAR_SECONDS = 31_536_000;
/** GTID events as they are, in place of statements that older replicas understand (MariaDB, sql/log_event.h). */
const MARIADB_CAPABILITY = 4;

export interface LoginOptions {
  readonly host: HostAddress;
  readonly credentials: Credentials;
  readonly start: DumpStart;
  /** Identity towards the server, so that it ends a former connection of ours and of nobody else. */
  readonly replicaUuid: string;
  readonly heartbeatMs: number;
}

export interface ReplicaSession {
  /** For writing, pausing, and its end. */
  readonly stream: Duplex;
  /** What comes from now on. */
  receive(take: Take): void;
  /** Of what was lent. */
  giveBack(buffer: Buffer): void;
  /** How the server names this connection. */
  readonly threadId: number;
  /** Ends the connection at once. */
  destroy(): void;
}

/** The parts of mysql2's connection that its types leave out. */
interface ClientConnection {
  /** The TLS stream where there is TLS. */
  readonly stream: Duplex;
  readonly threadId: number;
}

/** Whatever is under way when the signal aborts is given up, and its connection is closed. */
export async function login(options: LoginOptions, signal: AbortSignal): Promise<ReplicaSession> {
  // what is encrypted is decrypted into memory of Node's own
  const receiver = options.credentials.tls === undefined ? new Receiver(options.host) : undefined;
  const connection = createConnection({
    ...connectionOptions(options.credentials, options.host),
    ...(receiver === undefined ? {} : { stream: receiver.socket }),
  });
  const client = connection as unknown as ClientConnection;
  // whatever goes wrong later is seen at the stream
  connection.on('error', () => undefined);
  const giveUp = (): void => void client.stream.destroy();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.query(`SET ${settings(options).join(', ')}`, (error) => (error === null ? resolve() : reject(error)));
    });
  } catch (error) {
    client.stream.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  const { stream, threadId } = client;
  stream.removeAllListeners('data');
  return {
    stream,
    threadId,
    receive: (take) => {
      if (receiver !== undefined) receiver.receive(take);
      else stream.on('data', (chunk: Buffer) => take(chunk, chunk.length, false));
    },
    giveBack: (buffer) => receiver?.giveBack(buffer),
    // the library would only end its side and wait for the server's
    destroy: () => stream.destroy(),
  };
}

/** Variables of the session by which a replica tells the server what it wants; unknown ones do no harm. */
function settings({ start, replicaUuid, heartbeatMs }: LoginOptions): string[] {
  const period = heartbeatMs * 1_000_000;
  return [
    '@master_binlog_checksum = @@GLOBAL.binlog_checksum',
    '@source_binlog_checksum = @@GLOBAL.binlog_checksum',
    `@master_heartbeat_period = ${period}`,
    `@source_heartbeat_period = ${period}`,
    `@slave_uuid = '${replicaUuid}'`,
    `@replica_uuid = '${replicaUuid}'`,
    `@mariadb_slave_capability = ${MARIADB_CAPABILITY}`,
    ...(start.kind === 'gtids' && start.flavor === 'mariadb'
      ? [`@slave_connect_state = '${start.gtidSet.replace(/[^0-9,-]/g, '')}'`, '@slave_gtid_strict_mode = 1']
      : []),
    `SESSION net_write_timeout = ${YEAR_SECONDS}`,
  ];
}
