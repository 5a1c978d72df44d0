import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/**
 * What is wrong with a way to a server.
 *
 * - `delay`: every byte arrives `ms` later, in both directions.
 * - `throttle`: at most `bytesPerSecond` in each direction.
 * - `drop`: connections are ended in order, new ones are refused.
 * - `reset`: connections are reset (RST), new ones too.
 * - `half-open`: the far side is gone, the near side is not told; new connections do the same.
 * - `one-way`: what we send arrives, nothing comes back.
 * - `black-hole`: nothing arrives any more in either direction, new connections are taken and silent.
 */
export type Trouble =
  | { readonly kind: 'none' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'throttle'; readonly bytesPerSecond: number }
  | { readonly kind: 'drop' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'half-open' }
  | { readonly kind: 'one-way' }
  | { readonly kind: 'black-hole' };

const SLICE_MS = 20;

interface Waiting {
  readonly chunk: Buffer;
  readonly dueMs: number;
  /** The lane takes nothing until it has left. */
  readonly holds: boolean;
}

/** One direction of one connection: chunks wait in a queue until they are due, and nothing overtakes them, however late a timer is. */
class Lane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #trouble: () => Trouble;
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | null = null;
  #dead = false;

  constructor(from: Socket, to: Socket, trouble: () => Trouble) {
    this.#from = from;
    this.#to = to;
    this.#trouble = trouble;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Nothing is taken any more, so that whoever sends finds its buffers full, as with packets that are dropped. */
  die(): void {
    this.#dead = true;
    this.#from.pause();
    this.stop();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waiting.length = 0;
  }

  #take(chunk: Buffer): void {
    if (this.#dead) return;
    const trouble = this.#trouble();
    const now = performance.now();
    const free = Math.max(now, this.#waiting.at(-1)?.dueMs ?? 0);
    if (trouble.kind === 'throttle') {
      // a throttled way does not take more than it passes on
      this.#from.pause();
      const ms = Math.max(SLICE_MS, (chunk.length * 1000) / trouble.bytesPerSecond);
      this.#waiting.push({ chunk, dueMs: free + ms, holds: true });
    } else if (trouble.kind === 'delay') {
      this.#waiting.push({ chunk, dueMs: Math.max(free, now + trouble.ms), holds: false });
    } else {
      this.#waiting.push({ chunk, dueMs: free, holds: false });
    }
    this.#pass();
  }

  /** Passes on what is due. */
  #pass(): void {
    const now = performance.now();
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || first.dueMs > now) break;
      this.#waiting.shift();
      if (first.holds) this.#from.resume();
      this.#put(first.chunk);
    }
    const [next] = this.#waiting;
    if (next === undefined || this.#timer !== null) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#pass();
      },
      Math.ceil(next.dueMs - now),
    );
  }

  #put(chunk: Buffer): void {
    if (this.#to.destroyed || this.#to.write(chunk)) return;
    this.#from.pause();
    this.#to.once('drain', () => {
      if (!this.#dead) this.#from.resume();
    });
  }
}

interface Way {
  readonly near: Socket;
  readonly far: Socket;
  readonly up: Lane;
  readonly down: Lane;
}

/** A way to a server of this machine that can go wrong in every way a network does. The target may be told later. */
export class FaultProxy implements AsyncDisposable {
  #target = 0;
  #trouble: Trouble = { kind: 'none' };
  #server: Server | null = null;
  readonly #ways = new Set<Way>();
  port = 0;

  static async open(target = 0): Promise<FaultProxy> {
    const proxy = new FaultProxy();
    proxy.#target = target;
    const server = createServer({ allowHalfOpen: false }, (near) => proxy.#connect(near));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    proxy.port = (server.address() as AddressInfo).port;
    proxy.#server = server;
    return proxy;
  }

  aim(target: number): void {
    this.#target = target;
  }

  /** From now on, also for connections that are open. */
  strike(trouble: Trouble): void {
    this.#trouble = trouble;
    for (const way of this.#ways) this.#apply(way);
  }

  /** New connections work again. What a silent fault did to an open one stays: its bytes are lost. */
  mend(): void {
    this.#trouble = { kind: 'none' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.#server;
    this.#server = null;
    this.#trouble = { kind: 'drop' };
    for (const { near, far } of this.#ways) {
      near.destroy();
      far.destroy();
    }
    if (server !== null) await new Promise((resolve) => server.close(resolve));
  }

  #connect(near: Socket): void {
    near.on('error', () => undefined);
    if (this.#trouble.kind === 'drop') {
      near.destroy();
      return;
    }
    if (this.#trouble.kind === 'reset') {
      near.resetAndDestroy();
      return;
    }
    const far = dial(this.#target, '127.0.0.1');
    far.on('error', () => undefined);
    near.setNoDelay(true);
    far.setNoDelay(true);
    const trouble = (): Trouble => this.#trouble;
    const way: Way = { near, far, up: new Lane(near, far, trouble), down: new Lane(far, near, trouble) };
    this.#ways.add(way);
    const gone = (other: Socket, lane: Lane) => (): void => {
      // a silent fault hides the end of one side from the other
      if (lane.dead) return;
      this.#ways.delete(way);
      way.up.stop();
      way.down.stop();
      other.destroy();
    };
    near.on('close', () => {
      this.#ways.delete(way);
      way.up.stop();
      way.down.stop();
      far.destroy();
    });
    far.on('close', gone(near, way.down));
    this.#apply(way);
  }

  #apply(way: Way): void {
    const { near, far, up, down } = way;
    switch (this.#trouble.kind) {
      case 'drop':
        near.end();
        far.end();
        near.destroySoon();
        far.destroySoon();
        break;
      case 'reset':
        near.resetAndDestroy();
        far.destroy();
        break;
      case 'half-open':
        up.die();
        down.die();
        far.destroy();
        break;
      case 'one-way':
        down.die();
        break;
      case 'black-hole':
        up.die();
        down.die();
        break;
      default:
        break;
    }
  }
}
