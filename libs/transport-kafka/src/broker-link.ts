/**
 * One connection to one broker: kafkajs's socket, TLS, SASL and request queue, with a way of our own to send.
 *
 * 1. Requests go to the socket in the order of the `send` calls: `send` writes before it returns. (kafkajs's own way
 *    awaits several promises between a call and its write, so that concurrent calls may be written in another order.)
 * 2. A request that is not answered in time closes the link: answers come in the order of requests, so all behind it are
 *    stuck too, and a frame's buffer is never reused while a dying socket might still send it.
 * 3. A closed link stays closed and rejects everything at once. Whoever needs the broker opens a new one: kafkajs's
 *    connection can wait for ever for its queue to empty when it is disconnected with requests open.
 */
import net from 'node:net';
import tls from 'node:tls';
import { systemClock } from '@mysync/core';
import type { ISocketFactory } from 'kafkajs';
import Broker from 'kafkajs/src/broker/index.js';
import loggers from 'kafkajs/src/loggers/index.js';
import Connection from 'kafkajs/src/network/connection.js';
import { type Admission, LOG_IN } from './admission.ts';
import { BrokerError, fromKafkajs, NO_ANSWER } from './broker-error.ts';
import { kafkaErrors } from './errors.ts';
import type { Address, ResolvedKafkaOptions } from './options.ts';
import { FETCH } from './protocol/fetch.ts';
import { type Api, stampCorrelation } from './protocol/frame.ts';
import { INIT_PRODUCER_ID } from './protocol/init-producer-id.ts';
import { METADATA } from './protocol/metadata.ts';
import { PRODUCE } from './protocol/record-batch-encode.ts';

const KEEP_ALIVE_MS = 30_000;

export interface BrokerLinkOptions {
  readonly nodeId: number;
  readonly address: Address;
  readonly options: ResolvedKafkaOptions;
  /** A request had no answer: the connection was lost, or the time was over. */
  readonly onSilent: (address: string) => void;
  /** Of every request without a limit of its own. Default: that of the options. */
  readonly requestTimeoutMs?: number | undefined;
}

export class BrokerLink {
  readonly nodeId: number;
  readonly address: string;
  readonly #connection: Connection;
  readonly #broker: Broker;
  readonly #requestTimeoutMs: number;
  readonly #usesSasl: boolean;
  readonly #admission: Admission;
  readonly #onSilent: (address: string) => void;
  #closed: Error | null = null;
  /** While the connection authenticates anew, requests wait here, in order. */
  #held: (() => void)[] | null = null;

  private constructor({ nodeId, address, options, onSilent, requestTimeoutMs: limitMs }: BrokerLinkOptions) {
    const requestTimeoutMs = limitMs ?? options.requestTimeoutMs;
    this.nodeId = nodeId;
    this.#onSilent = onSilent;
    this.address = `${address.host}:${address.port}`;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#usesSasl = options.sasl !== null;
    this.#admission = options.admission;
    const logger = kafkajsLogger(options);
    this.#connection = new Connection({
      host: address.host,
      port: address.port,
      logger,
      socketFactory,
      clientId: options.clientId,
      requestTimeout: requestTimeoutMs,
      connectionTimeout: Math.min(options.connectionTimeoutMs, requestTimeoutMs),
      ssl: typeof options.tls === 'boolean' ? {} : options.tls,
      sasl: options.sasl === null ? null : { ...options.sasl },
    });
    this.#broker = new Broker({
      connectionPool: poolOfOne(this.#connection, options, address),
      logger,
      nodeId,
      authenticationTimeout: options.connectionTimeoutMs,
    });
  }

  /** Connects, asks for the broker's versions and authenticates. */
  static async open(linkOptions: BrokerLinkOptions): Promise<BrokerLink> {
    const link = new BrokerLink(linkOptions);
    try {
      const { connectionTimeoutMs } = linkOptions.options;
      await link.#connect(Math.min(connectionTimeoutMs, link.#requestTimeoutMs) * 2 + link.#requestTimeoutMs);
      link.#admission.given(LOG_IN);
      link.#checkVersions();
    } catch (error) {
      const failure = link.#failureOf(error);
      if (failure instanceof BrokerError && failure.code === NO_ANSWER) link.#silent(failure);
      else link.close(failure);
      throw failure;
    }
    return link;
  }

  /** With a limit around it all: a socket that ends during its TLS handshake leaves kafkajs waiting for ever. */
  async #connect(limitMs: number): Promise<void> {
    const timer = new AbortController();
    const connecting = this.#broker.connect();
    try {
      await Promise.race([
        connecting,
        systemClock.sleep(limitMs, timer.signal).then(() => {
          throw new BrokerError(NO_ANSWER, `connecting to ${this.address} took more than ${limitMs} ms`);
        }),
      ]);
    } finally {
      timer.abort();
      connecting.catch(() => {}); // reported above, or given up
    }
  }

  get alive(): boolean {
    if (this.#closed === null && !this.#connection.isConnected()) this.close();
    return this.#closed === null;
  }

  /** Sends a frame and resolves with the answer's bytes behind the correlation id. The frame must not change before. */
  send(frame: Buffer, api: Api, timeoutMs = this.#requestTimeoutMs): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const push = (): void => this.#push(frame, api, timeoutMs, resolve, reject);
      if (this.#held !== null) this.#held.push(push);
      else if (this.#usesSasl && this.alive && !this.#connection.isAuthenticated()) {
        this.#held = [push];
        this.#authenticate();
      } else push();
    });
  }

  /** A request by kafkajs's own codecs; `right` names what it takes, as the process's admission is told. */
  async call<T>(request: (broker: Broker) => Promise<T>, right: string): Promise<T> {
    if (!this.alive) throw this.#lost();
    try {
      const answer = await request(this.#broker);
      this.#admission.given(right);
      return answer;
    } catch (error) {
      const failure = this.#failureOf(error, right);
      if (failure instanceof BrokerError && failure.code === NO_ANSWER) this.#silent(failure);
      throw failure;
    }
  }

  /** Rejects what is open and destroys the socket. Idempotent. */
  close(reason: Error = new BrokerError(NO_ANSWER, `the connection to ${this.address} was closed`)): void {
    if (this.#closed !== null) return;
    this.#closed = reason;
    this.#destroy(reason);
  }

  #silent(failure: BrokerError): void {
    if (this.#closed === null) this.#onSilent(this.address);
    this.close(failure);
  }

  #destroy(reason: Error): void {
    const connection = this.#connection;
    connection.requestQueue.rejectAll(reason);
    connection.requestQueue.destroy();
    const socket = connection.socket;
    if (socket !== undefined) {
      socket.removeAllListeners('data');
      socket.on('error', () => {}); // of a socket given up: its requests were rejected above
      socket.destroy();
    }
    const held = this.#held ?? [];
    this.#held = null;
    for (const push of held) push();
    connection.disconnect().catch(() => {}); // only marks it as disconnected: the queue is empty
  }

  #push(
    frame: Buffer,
    api: Api,
    timeoutMs: number,
    resolve: (payload: Buffer) => void,
    reject: (error: Error) => void,
  ): void {
    if (!this.alive) {
      reject(this.#lost());
      return;
    }
    const connection = this.#connection;
    const correlationId = connection.nextCorrelationId();
    connection.requestQueue.push({
      entry: {
        apiKey: api.key,
        apiName: api.name,
        apiVersion: api.version,
        correlationId,
        resolve: (answer) => resolve(answer.payload),
        reject: (error) => {
          const failure = this.#failureOf(error);
          reject(failure);
          if (this.#closed !== null) return;
          this.#closed = failure;
          this.#onSilent(this.address);
          // Not at once: kafkajs may be in the middle of rejecting all that is in its queue.
          queueMicrotask(() => this.#destroy(failure));
        },
      },
      expectResponse: true,
      requestTimeout: timeoutMs,
      sendRequest: () => {
        stampCorrelation(frame, correlationId);
        connection.socket?.write(frame);
      },
    });
  }

  /** The broker ends sessions after `connections.max.reauth.ms`; kafkajs says when one is due (10 s before). */
  #authenticate(): void {
    this.#connection.authenticate().then(
      () => {
        const held = this.#held ?? [];
        this.#held = null;
        for (const push of held) push();
      },
      (error: unknown) => this.close(this.#failureOf(error)),
    );
  }

  #failureOf(error: unknown, right?: string): Error {
    return fromKafkajs(error, { address: this.address, admission: this.#admission, right });
  }

  #lost(): Error {
    return this.#closed ?? new BrokerError(NO_ANSWER, `the connection to ${this.address} was closed`);
  }

  #checkVersions(): void {
    const versions = this.#broker.versions ?? {};
    for (const api of [METADATA, INIT_PRODUCER_ID, PRODUCE, FETCH]) {
      const range = versions[api.key];
      if (range !== undefined && range.minVersion <= api.version && range.maxVersion >= api.version) continue;
      const has = range === undefined ? 'none' : `${range.minVersion} to ${range.maxVersion}`;
      throw kafkaErrors.KAFKA_TOO_OLD({
        message: `the broker knows versions ${has} of ${api.name}, and MySync needs ${api.version}`,
        where: { broker: this.address },
      });
    }
  }
}

/** As kafkajs's own, but without Nagle's algorithm: a small batch behind another would wait for a delayed ack. */
const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const socket =
    ssl === undefined || ssl === null
      ? net.connect({ host, port }, onConnect)
      : tls.connect({ host, port, ...(net.isIP(host) === 0 ? { servername: host } : {}), ...ssl }, onConnect);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  return socket;
};

/** What kafkajs's `Broker` asks of its pool, on our one connection. */
function poolOfOne(connection: Connection, options: ResolvedKafkaOptions, address: Address): object {
  return {
    host: address.host,
    port: address.port,
    sasl: options.sasl,
    connectionTimeout: options.connectionTimeoutMs,
    isConnected: () => connection.isConnected(),
    isAuthenticated: () => connection.isAuthenticated(),
    setVersions: (versions: object) => connection.setVersions(versions),
    setSupportAuthenticationProtocol: (supported: boolean) => connection.setSupportAuthenticationProtocol(supported),
    getConnection: async () => {
      if (!connection.isConnected()) await connection.connect();
      return connection;
    },
    send: (request: object) => connection.send(request),
    destroy: async () => {},
  };
}

/** kafkajs reports each failed attempt as an error; here what follows from it is reported, so its words are debug. */
function kafkajsLogger(options: ResolvedKafkaOptions): object {
  return loggers.createLogger({
    level: loggers.LEVELS.WARN,
    logCreator: () => (entry) =>
      options.observer.log?.({ level: 'debug', message: entry.log.message, fields: { by: 'kafkajs' } }),
  });
}
