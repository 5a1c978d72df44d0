import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect as dial, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { promisify } from 'node:util';

/** TLS before a server of this machine that has none, with a certificate of its own for `localhost`. */
export class TlsProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Nobody but itself vouches for it. */
  readonly certificate: string;

  private constructor(target: number, key: string, certificate: string) {
    this.certificate = certificate;
    this.#server = createServer({ key, cert: certificate }, (near) => {
      const far = dial(target, '127.0.0.1');
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => socket.destroy());
        socket.on('close', () => {
          this.#sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    // clients that refuse the certificate
    this.#server.on('tlsClientError', () => undefined);
  }

  static async open(target: number): Promise<TlsProxy> {
    const folder = await mkdtemp(join(tmpdir(), 'mysync-tls-'));
    try {
      const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
      const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
      const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'];
      await promisify(execFile)('openssl', ['req', ...kind, '-keyout', key, '-out', cert, ...subject]);
      const proxy = new TlsProxy(target, await readFile(key, 'utf8'), await readFile(cert, 'utf8'));
      await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
      return proxy;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
