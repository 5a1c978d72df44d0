import { Client, errors } from '@elastic/elasticsearch';
import { sinkErrors } from '@mysync/sink';
import { refusedCertificate } from './certificate.ts';
import { elasticsearchErrors } from './errors.ts';
import { clientError, responseError } from './failures.ts';
import type { ElasticsearchSinkOptions } from './options.ts';

export interface EsRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as it is. */
  readonly body?: string;
  /** The body is lines for `_bulk`. */
  readonly lines?: boolean;
  /** Statuses besides 2xx that are an answer to the caller and no error. */
  readonly accept?: readonly number[];
  readonly signal?: AbortSignal;
}

export interface EsAnswer {
  readonly status: number;
  readonly body: unknown;
}

const JSON_TYPE = 'application/json';
const LINES_TYPE = 'application/x-ndjson';

/**
 * The one way to Elasticsearch.
 *
 * 1. Bodies are text that we wrote; the client never serialises.
 * 2. Nothing is retried here: the caller's retry loop is the only one. The client's pool takes the next node.
 * 3. Plain media types, so that Elasticsearch 8 answers as well as 9 (the client's own name a version, and 8 refuses 9).
 * 4. One timeout for all requests: with one of its own for a request, the client's undici connection dispatches `abort` on the
 *    caller's signal.
 * 5. After a request without an answer, the next answer means that the connection is another one: `onReconnect` is called.
 */
export class EsHttp {
  readonly #client: Client;
  readonly #onReconnect: () => void;
  readonly #options: ElasticsearchSinkOptions;
  #lost = false;

  constructor(options: ElasticsearchSinkOptions, onReconnect: () => void) {
    this.#options = options;
    this.#client = new Client(clientOptions(options));
    this.#onReconnect = onReconnect;
  }

  /** True from a request without an answer on until the next answer. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Rejects with a catalogue error, or with the signal's reason. */
  async request(request: EsRequest): Promise<EsAnswer> {
    const answer = await this.#send(request, false);
    if (answer.status >= 400 && request.accept?.includes(answer.status) !== true) {
      throw responseError(answer.status, answer.body, whatOf(request));
    }
    return answer;
  }

  /** The text of the answer, unread. */
  async requestText(request: EsRequest): Promise<string> {
    const answer = await this.#send(request, true);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of answer.body as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch (error) {
      throw await this.#failed(error, request);
    }
    const text = Buffer.concat(chunks).toString('utf8');
    if (answer.status >= 400) throw responseError(answer.status, parsed(text), whatOf(request));
    return text;
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #send(request: EsRequest, asStream: boolean): Promise<EsAnswer> {
    request.signal?.throwIfAborted();
    const { method, path, query, body, lines } = request;
    const contentType = lines === true ? LINES_TYPE : JSON_TYPE;
    try {
      const result = await this.#client.transport.request(
        {
          method,
          path,
          ...(query === undefined ? {} : { querystring: query }),
          ...(body === undefined ? {} : { [lines === true ? 'bulkBody' : 'body']: Buffer.from(body, 'utf8') }),
        },
        {
          meta: true,
          asStream,
          ignore: ALL_ERRORS,
          headers: {
            accept: JSON_TYPE,
            ...(body === undefined ? {} : { 'content-type': contentType }),
            // The client does not inflate what it hands over as a stream.
            ...(asStream ? { 'accept-encoding': 'identity' } : {}),
          },
          openTelemetry: { enabled: false },
          ...(request.signal === undefined ? {} : { signal: request.signal }),
        },
      );
      return this.#answered(result.statusCode, result.body);
    } catch (error) {
      if (error instanceof errors.ResponseError) return this.#answered(error.statusCode ?? 0, error.body);
      throw await this.#failed(error, request);
    }
  }

  #answered(status: number, body: unknown): EsAnswer {
    if (this.#lost) {
      this.#lost = false;
      this.#onReconnect();
    }
    return { status, body };
  }

  async #failed(error: unknown, request: EsRequest): Promise<unknown> {
    if (request.signal?.aborted) return request.signal.reason;
    const failure = clientError(error, whatOf(request));
    this.#lost ||= failure.lost;
    if (!(error instanceof errors.ConnectionError)) return failure.error;
    const cause = await refusedCertificate(this.#options);
    if (cause === null) return failure.error;
    return sinkErrors.SINK_TLS_FAILED({
      message: failure.error.message,
      where: { nodes: this.#options.nodes.join() },
      cause,
    });
  }
}

/** Every status is an answer to us; 502 to 504 are left to the client, which then marks the node as dead. */
const ALL_ERRORS = [...Array(200).keys()].map((each) => 400 + each).filter((status) => status < 502 || status > 504);

function whatOf(request: EsRequest): string {
  return `${request.method} ${request.path}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { error: text };
  }
}

function clientOptions(options: ElasticsearchSinkOptions): ConstructorParameters<typeof Client>[0] {
  const { auth, tls } = options;
  for (const node of options.nodes) checkNode(node);
  return {
    nodes: [...options.nodes],
    ...(auth === undefined ? {} : { auth }),
    ...(tls === undefined ? {} : { tls }),
    compression: options.compression === true,
    maxRetries: 0,
    requestTimeout: options.requestTimeoutMs ?? 60_000,
  };
}

function checkNode(node: string): void {
  const url = URL.canParse(node) ? new URL(node) : undefined;
  const valid = url !== undefined && (url.protocol === 'http:' || url.protocol === 'https:');
  if (valid && url.username === '' && url.password === '') return;
  throw elasticsearchErrors.ES_OPTION_INVALID({
    message: valid ? 'a node holds a user or a password' : `'${node}' is not the address of a node`,
    remedy: 'Write nodes as http://HOST:PORT or https://HOST:PORT; user and password go into `auth`.',
  });
}
