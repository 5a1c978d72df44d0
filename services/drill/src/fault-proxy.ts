import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

export type ProxyState =
  | { readonly kind: 'open' }
  /** Connections are cut, new ones refused. */
  | { readonly kind: 'cut' }
  /** Nothing gets through, and nobody is told: as a firewall that drops packets does. */
  | { readonly kind: 'silent' }
  /** So many bytes a second in each direction of each connection. */
  | { readonly kind: 'slow'; readonly bytesPerSecond: number };

/**
 * A way to a server that can be broken.
 *
 * A connection that was silent stays so: what was lost on it cannot come back. New ones after `open` work.
 */
export class FaultProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #state: ProxyState = { kind: 'open' };

  private constructor(target: { host: string; port: number }) {
    this.#target = target;
    this.#server = createServer((near) => this.#accept(near));
  }

  static async open(target: { host: string; port: number }): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  set(state: ProxyState): void {
    this.#state = state;
    if (state.kind === 'cut') for (const socket of this.#sockets) socket.destroy();
    if (state.kind === 'silent') for (const socket of this.#sockets) socket.unpipe().pause();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket): void {
    this.#keep(near);
    if (this.#state.kind === 'cut') {
      near.destroy();
      return;
    }
    if (this.#state.kind === 'silent') return;
    const far = dial(this.#target.port, this.#target.host);
    this.#keep(far);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    near.pipe(this.#pace()).pipe(far);
    far.pipe(this.#pace()).pipe(near);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #pace(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _, done) => {
        if (this.#state.kind !== 'slow') {
          done(null, chunk);
          return;
        }
        setTimeout(() => done(null, chunk), (chunk.length / this.#state.bytesPerSecond) * 1000);
      },
    });
  }
}
