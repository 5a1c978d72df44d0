/** A TCP proxy that can hold back what flows through it, in both directions, as a frozen process or a silent network does. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { RedisAddress } from './options.ts';

export class HoldingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #parked: (() => void)[] = [];
  #holding = false;
  /** Connections accepted so far. */
  accepted = 0;
  /** Bytes that came from clients while holding. */
  heldBytes = 0;

  private constructor(target: RedisAddress) {
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      this.accepted++;
      const server = connect({ ...target, allowHalfOpen: true });
      this.#forward(client, server, true);
      this.#forward(server, client, false);
    });
  }

  static async start(target: RedisAddress): Promise<HoldingProxy> {
    const proxy = new HoldingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get address(): RedisAddress {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  #forward(from: Socket, to: Socket, client: boolean): void {
    this.#sockets.add(from);
    from.on('data', (data: Buffer) => {
      if (!this.#holding) to.write(data);
      else {
        if (client) this.heldBytes += data.length;
        this.#parked.push(() => to.write(data));
      }
    });
    // A client that gave up does not take back what it sent.
    from.on('end', () => (this.#holding ? this.#parked.push(() => to.end()) : to.end()));
    from.on('error', () => undefined);
    from.on('close', () => this.#sockets.delete(from));
  }

  hold(): void {
    this.#holding = true;
  }

  /** Lets everything held flow on. */
  release(): void {
    this.#holding = false;
    for (const send of this.#parked.splice(0)) send();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
