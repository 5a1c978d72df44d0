import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/**
 * A way to a server that can be closed, opened late, cut off in the middle, hold back what flows through it as a frozen process does, or go silent
 * without a word as a firewall that drops packets does.
 */
export class TcpProxy {
  #target: number;
  readonly #sockets = new Set<Socket>();
  /** They forward nothing any more. */
  readonly #silent = new WeakSet<Socket>();
  readonly #held: (() => void)[] = [];
  #holding = false;
  #server: Server | null = null;
  port = 0;
  /** Connections taken so far. */
  connections = 0;
  /** Bytes from the server that came through. */
  bytes = 0;
  /** Bytes that clients sent while everything was held back. */
  heldBytes = 0;
  /** What a client sends that has its connection's answers counted for `cuts`. */
  isCounted: (sent: Buffer) => boolean = () => false;
  /** For the next connections that are counted, in order: cut off when so many bytes of the answer have passed. */
  readonly cuts: number[] = [];

  private constructor(target: number) {
    this.#target = target;
  }

  /** To a port of this machine, which may be told later. It listens at once, on a free port. */
  static async open(target = 0): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await proxy.listen();
    return proxy;
  }

  aim(target: number): void {
    this.#target = target;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: '127.0.0.1', port: this.port };
  }

  /** Listens again, on the same port. */
  async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (near) => this.#connect(near));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Connections that are open forward nothing any more, in either direction, and are not closed. New ones work. */
  blackHole(): void {
    for (const socket of this.#sockets) {
      this.#silent.add(socket);
      socket.pause();
    }
  }

  /** Holds everything back, in both directions, new connections too. A client that gives up does not take back what it sent. */
  hold(): void {
    this.#holding = true;
  }

  /** Lets everything held flow on. */
  release(): void {
    this.#holding = false;
    for (const act of this.#held.splice(0)) act();
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

  #connect(near: Socket): void {
    this.connections += 1;
    const far = dial({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    let left: number | undefined;
    this.#forward(near, far, (chunk) => {
      if (this.#holding) this.heldBytes += chunk.length;
      if (this.isCounted(chunk)) left = this.cuts.shift();
      return chunk;
    });
    this.#forward(far, near, (chunk) => {
      this.bytes += chunk.length;
      if (left === undefined) return chunk;
      left -= chunk.length;
      if (left > 0) return chunk;
      near.end(chunk.subarray(0, chunk.length + left), () => near.destroy());
      far.destroy();
      return null;
    });
  }

  /** `see` gives what goes on; null: nothing. */
  #forward(from: Socket, to: Socket, see: (chunk: Buffer) => Buffer | null): void {
    this.#sockets.add(from);
    from.on('data', (chunk: Buffer) => {
      if (this.#silent.has(from)) return;
      const passed = see(chunk);
      if (passed === null) return;
      this.#act(() => {
        if (to.write(passed)) return;
        from.pause();
        to.once('drain', () => {
          if (!this.#silent.has(from)) from.resume();
        });
      });
    });
    from.on('end', () => this.#act(() => to.end()));
    from.on('error', () => undefined);
    from.on('close', () => {
      this.#sockets.delete(from);
      this.#act(() => to.destroySoon());
    });
  }

  #act(act: () => void): void {
    if (this.#holding) this.#held.push(act);
    else act();
  }
}
