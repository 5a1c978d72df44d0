import type { Packet } from './internals.ts';

const COM_REGISTER_REPLICA = 0x15;
const ERROR_PACKET = 0xff;
const HEADER_BYTES = 4;

interface Outgoing {
  readonly buffer: Buffer;
  length(): number;
  writeHeader(sequence: number): void;
}

interface CommandConnection {
  _resetSequenceId(): void;
  writePacket(packet: Outgoing): void;
}

/**
 * Makes us visible in SHOW REPLICAS, so that nobody else takes our id. A command of mysql2; its own one cannot be used: it
 * writes its texts without an encoding and throws.
 */
export class RegisterReplica {
  readonly #serverId: number;
  readonly #hostName: string;
  #sent = false;
  readonly onResult: (error?: unknown) => void;

  constructor(options: { serverId: number; hostName: string; done: (error?: unknown) => void }) {
    this.#serverId = options.serverId;
    this.#hostName = options.hostName;
    this.onResult = options.done;
  }

  /** Called by mysql2, first without a packet; true when the command is over. */
  execute(
    packet: (Packet & { asError(encoding: string): unknown }) | undefined,
    connection: CommandConnection,
  ): boolean {
    if (!this.#sent) {
      this.#sent = true;
      connection._resetSequenceId();
      connection.writePacket(this.#request());
      return false;
    }
    const failed = packet !== undefined && packet.buffer[packet.offset] === ERROR_PACKET;
    const error = failed ? packet.asError('utf8') : undefined;
    process.nextTick(() => this.onResult(error));
    return true;
  }

  /** Server id, host, user, password (each with its length), port, rank, id of the source (MySQL, sql/rpl_source.cc, register_replica). */
  #request(): Outgoing {
    const host = Buffer.from(this.#hostName, 'utf8').subarray(0, 60);
    const buffer = Buffer.alloc(HEADER_BYTES + 1 + 4 + 1 + host.length + 1 + 1 + 2 + 4 + 4);
    buffer[HEADER_BYTES] = COM_REGISTER_REPLICA;
    buffer.writeUInt32LE(this.#serverId, HEADER_BYTES + 1);
    buffer[HEADER_BYTES + 5] = host.length;
    host.copy(buffer, HEADER_BYTES + 6);
    return {
      buffer,
      length: () => buffer.length,
      writeHeader: (sequence) => {
        buffer.writeUIntLE(buffer.length - HEADER_BYTES, 0, 3);
        buffer[3] = sequence;
      },
    };
  }
}
