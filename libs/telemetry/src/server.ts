import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorCatalogue } from '@mysync/core';
import type { Registry } from 'prom-client';

export const telemetryErrors = errorCatalogue({
  TELEMETRY_PORT_TAKEN: {
    remedy:
      'Another mysync may run with this configuration (`mysync status` asks it): stop it. Else set telemetry.port to a free port (0 takes any), or telemetry.enabled: false.',
    retriable: false,
  },
  TELEMETRY_LISTEN_FAILED: {
    remedy:
      'Set telemetry.host to an address of this machine and telemetry.port to one that this user may listen on (0 takes any), or telemetry.enabled: false.',
    retriable: false,
  },
});

/** Health of one part of the process: `ready` means it does its work now, `alive` that a restart would not help. */
export interface HealthReport {
  readonly name: string;
  readonly alive: boolean;
  readonly ready: boolean;
  readonly detail: string;
}

export interface TelemetryServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly registry: Registry;
  /** Asked at each request. */
  readonly health: () => readonly HealthReport[];
  /** Called before metrics are printed, to refresh gauges that are computed on demand. */
  readonly refresh: () => void;
  /** What `mysync status` shows of a running process, as JSON at /status. */
  readonly status: () => unknown;
}

/** Serves /metrics, /healthz, /readyz and /status; plain HTTP, read only. Nobody is ready before there is a part. */
export class TelemetryServer {
  readonly #server: Server;
  readonly #options: TelemetryServerOptions;

  constructor(options: TelemetryServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      const send = (code: number, type: string, body: string): void => {
        response.writeHead(code, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(body);
      };
      this.#answer(request.url ?? '/', send).catch(() => send(500, 'text/plain', 'internal error\n'));
    });
  }

  /** Starts listening; returns the port. */
  async start(): Promise<number> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (cause: NodeJS.ErrnoException) => {
        const message = `cannot listen on ${host}:${port}`;
        const isTaken = cause.code === 'EADDRINUSE';
        const make = telemetryErrors[isTaken ? 'TELEMETRY_PORT_TAKEN' : 'TELEMETRY_LISTEN_FAILED'];
        const key = isTaken || cause.code === 'EACCES' ? 'telemetry.port' : 'telemetry.host';
        reject(make({ message, where: { key }, cause }));
      });
      this.#server.listen(port, host, resolve);
    });
    this.#server.unref();
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(url: string, send: (code: number, type: string, body: string) => void): Promise<void> {
    const path = url.split('?', 1)[0];
    if (path === '/metrics') {
      this.#options.refresh();
      send(200, this.#options.registry.contentType, await this.#options.registry.metrics());
      return;
    }
    if (path === '/status') {
      send(200, 'application/json', `${JSON.stringify(this.#options.status())}\n`);
      return;
    }
    if (path !== '/healthz' && path !== '/readyz') {
      send(404, 'text/plain', 'see /metrics, /healthz, /readyz, /status\n');
      return;
    }
    const reports = this.#options.health();
    const isReady = reports.length > 0 && reports.every(({ ready }) => ready);
    const good = path === '/healthz' ? reports.every(({ alive }) => alive) : isReady;
    send(good ? 200 : 503, 'application/json', `${JSON.stringify({ ok: good, parts: reports })}\n`);
  }
}
