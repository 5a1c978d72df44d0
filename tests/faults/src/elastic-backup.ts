import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

const MARKERS = 'mysync-markers';

/** A backup of Elasticsearch by its own snapshots: the documents first and the markers later, as a slow snapshot takes them. */
export class ElasticBackup {
  readonly #url: string;
  readonly #folder: string;
  readonly #repository = `backup-${randomBytes(4).toString('hex')}`;
  #names: readonly string[] = [];

  constructor(url: string, folder: string) {
    this.#url = url;
    this.#folder = folder;
  }

  async takeDocuments(pattern: string): Promise<void> {
    const settings = { location: join(this.#folder, this.#repository) };
    await this.#ask('PUT', `_snapshot/${this.#repository}`, { type: 'fs', settings });
    await this.#take('documents', pattern);
  }

  async takeMarkers(): Promise<void> {
    await this.#take('markers', MARKERS);
  }

  /** Both, over what is there; meanwhile nothing of it can be read or written. */
  async restore(): Promise<void> {
    await this.#ask('POST', `${this.#names.join(',')}/_close`);
    for (const snapshot of ['documents', 'markers']) {
      await this.#ask('POST', `_snapshot/${this.#repository}/${snapshot}/_restore?wait_for_completion=true`);
    }
    await this.#ask('DELETE', `_snapshot/${this.#repository}`);
  }

  async #take(snapshot: string, indices: string): Promise<void> {
    const body = { indices, include_global_state: false };
    const path = `_snapshot/${this.#repository}/${snapshot}?wait_for_completion=true`;
    const answer = (await this.#ask('PUT', path, body)) as {
      snapshot: { state: string; indices: readonly string[] };
    };
    const { state, indices: names } = answer.snapshot;
    if (state !== 'SUCCESS') throw new Error(`the snapshot of ${indices} ended as ${state}`);
    this.#names = [...this.#names, ...names];
  }

  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.#url}/${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }
}
