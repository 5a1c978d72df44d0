/** A small HTTP proxy before Elasticsearch that can change what goes through, for failures that a server does not make on demand. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly authorization: string;
}

export interface ProxiedAnswer {
  readonly status: number;
  readonly body: string;
}

export class TestProxy {
  readonly #target: string;
  readonly #server: Server;
  /** All requests, in order. */
  readonly requests: ProxiedRequest[] = [];
  /** Changes a body before it is sent on, or answers in the server's stead. */
  onRequest: (request: ProxiedRequest) => string | ProxiedAnswer = (request) => request.body;
  /** Changes an answer; 'cut' breaks the connection instead. */
  onAnswer: (request: ProxiedRequest, answer: ProxiedAnswer) => ProxiedAnswer | 'cut' = (_, answer) => answer;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  static async start(target: string): Promise<TestProxy> {
    const proxy = new TestProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', url: path = '/' } = request;
    const { authorization = '' } = request.headers;
    const proxied = { method, path, body: Buffer.concat(chunks).toString('utf8'), authorization };
    this.requests.push(proxied);
    const changed = this.onRequest(proxied);
    const answer = typeof changed === 'string' ? await this.#forward(request, proxied, changed) : changed;
    const final = this.onAnswer(proxied, answer);
    if (final === 'cut') {
      response.destroy();
      return;
    }
    response.writeHead(final.status, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' });
    response.end(final.body);
  }

  async #forward(request: IncomingMessage, proxied: ProxiedRequest, body: string): Promise<ProxiedAnswer> {
    const type = request.headers['content-type'];
    const answer = await fetch(this.#target + proxied.path, {
      method: proxied.method,
      headers: { ...(type === undefined ? {} : { 'content-type': type }) },
      ...(body === '' ? {} : { body }),
    });
    return { status: answer.status, body: await answer.text() };
  }
}
