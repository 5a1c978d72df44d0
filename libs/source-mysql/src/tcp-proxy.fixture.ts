import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/** COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID. */
const DUMPS: ReadonlySet<number> = new Set([0x12, 0x1e]);

/** For tests: a connection that can go silent without being closed, and that counts what passes. */
export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #frozen = false;
  /** From the server to us. */
  bytes = 0;
  connections = 0;
  /** For the next connections that ask for the log, in order: cut off when so many bytes of it have passed. */
  readonly cuts: number[] = [];

  private constructor(target: number) {
    this.#server = createServer((near) => {
      this.connections += 1;
      const far = dial(target, '127.0.0.1');
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      let left: number | undefined;
      near.on('data', (chunk: Buffer) => {
        // the command stands behind the packet's header
        if (DUMPS.has(chunk[4] ?? 0)) left = this.cuts.shift();
      });
      near.pipe(far);
      far.on('data', (chunk) => {
        if (this.#frozen) return;
        this.bytes += chunk.length;
        if (left !== undefined && chunk.length >= left) {
          near.end(chunk.subarray(0, left), () => near.destroy());
          far.destroy();
          return;
        }
        if (left !== undefined) left -= chunk.length;
        if (!near.write(chunk)) {
          far.pause();
          near.once('drain', () => far.resume());
        }
      });
    });
  }

  static async open(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** What the server sends is swallowed; nobody is told. Later connections work. */
  blackHole(): void {
    for (const socket of this.#sockets) socket.removeAllListeners('data').pause();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
