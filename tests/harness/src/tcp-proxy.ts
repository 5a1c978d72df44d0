import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/** A way to a server that can be closed, opened late, or go silent without a word, as a firewall that drops packets does. */
export class TcpProxy {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  port = 0;
  /** Connections taken so far. */
  connections = 0;

  private constructor(target: number) {
    this.#target = target;
  }

  /** To a port of this machine. It listens at once, on a free port. */
  static async open(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await proxy.listen();
    return proxy;
  }

  /** Listens again, on the same port. */
  async listen(): Promise<void> {
    const server = createServer((near) => this.#forward(near));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Connections that are open forward nothing any more, in either direction, and are not closed. New ones work. */
  blackHole(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  /** Refuses connections, and cuts those that are open. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    for (const socket of this.#sockets) socket.destroy();
    if (server !== null) await new Promise((resolve) => server.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #forward(near: Socket): void {
    this.connections += 1;
    const far = dial(this.#target, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
