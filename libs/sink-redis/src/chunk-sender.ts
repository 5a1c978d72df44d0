import { randomBytes } from 'node:crypto';
import { type Refusal, sinkErrors } from '@mysync/sink';
import type { ClearBatch, RowBatch, ScriptReply } from './backend.ts';
import type { Argument, RedisConnection } from './connection.ts';
import type { Script } from './script.ts';

/** Rows of one script call. */
export interface Chunk {
  /** Place in the batch of each row. */
  readonly places: number[];
  readonly keys: string[];
  readonly args: Argument[];
}

export function newChunk(): Chunk {
  return { places: [], keys: [], args: [] };
}

export function refusedRows(reply: readonly unknown[], places: readonly number[]): Refusal[] {
  const refusals: Refusal[] = [];
  for (let at = 2; at + 1 < reply.length; at += 2) {
    const index = places[Number(reply[at]) - 1] ?? 0;
    refusals.push({ index, error: sinkErrors.SINK_WRONG_TYPE({ message: `Redis refused the row: ${reply[at + 1]}` }) });
  }
  return refusals;
}

/** Sends one batch's chunks, each behind the one before, and collects their replies. */
export class ChunkSender {
  readonly marker: string;
  readonly next: string | null;
  readonly results: { readonly reply: ScriptReply | Error; readonly places: readonly number[] }[] = [];
  openBytes = 0;
  readonly #connection: RedisConnection;
  readonly #signal: AbortSignal;
  readonly #expected: string;
  readonly #batchName = randomBytes(6).toString('base64');
  #sent = 0;
  readonly #stop = (): void => this.#connection.destroy('given up');
  #open: { readonly places: readonly number[]; readonly replies: Promise<unknown[]> }[] = [];

  constructor(connection: RedisConnection, batch: RowBatch | ClearBatch, marker: string, signal: AbortSignal) {
    this.#connection = connection;
    this.#signal = signal;
    signal.throwIfAborted();
    signal.addEventListener('abort', this.#stop, { once: true });
    this.marker = marker;
    this.next = batch.marker?.next ?? null;
    const expected = batch.marker?.expected ?? null;
    this.#expected = expected === null ? '-' : `+${expected}`;
  }

  /** True when a chunk found the batch's own next marker: the batch was applied before. */
  get isDone(): boolean {
    return this.results.some(
      ({ reply }) => !(reply instanceof Error) && reply[0] === 'moved' && reply[1] === this.next,
    );
  }

  /** `moves`: this is the last chunk, it moves the marker. */
  send(script: Script, chunk: Chunk, more: readonly string[], bytes: number, moves = false): void {
    const before = this.#sent === 0 ? '' : `${this.#batchName}${this.#sent}`;
    this.#sent++;
    const command = ['EVALSHA', script.sha, String(chunk.keys.length + 1), this.marker, ...chunk.keys] as Argument[];
    if (this.next === null) command.push('r', '', '', '', '-');
    else command.push('c', this.#expected, before, `${this.#batchName}${this.#sent}`, moves ? `+${this.next}` : '-');
    command.push(String(chunk.places.length), this.#deletedTtl, ...more);
    for (const arg of chunk.args) command.push(arg);
    const replies = this.#connection.callAll([command]);
    replies.catch(() => undefined); // awaited in settle; until then nobody listens
    this.#open.push({ places: chunk.places, replies });
    this.openBytes += bytes;
  }

  get #deletedTtl(): string {
    return String(this.#connection.settings.deletedTtlSeconds);
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#stop);
  }

  /** Waits for all that was sent. Rejects when the connection broke. */
  async settle(): Promise<void> {
    const open = this.#open;
    this.#open = [];
    this.openBytes = 0;
    const settled = await Promise.allSettled(open.map(({ replies }) => replies));
    this.#signal.throwIfAborted();
    settled.forEach((result, at) => {
      if (result.status === 'rejected') throw result.reason;
      this.results.push({ reply: result.value[0] as ScriptReply | Error, places: open[at]?.places ?? [] });
    });
  }
}
