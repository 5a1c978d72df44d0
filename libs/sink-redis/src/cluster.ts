import { type Finding, isMysyncError } from '@mysync/core';
import type { ApplyOutcome, ClearChange, MarkerMove, Refusal, StreamRef } from '@mysync/sink';
import { argumentLengths } from './argument-lengths.ts';
import {
  type BackendOptions,
  type ClearBatch,
  type KeyedCommand,
  type RedisBackend,
  type RowBatch,
  type RowEncoder,
  type ScriptReply,
  versionText,
} from './backend.ts';
import { checkServer, unreachable } from './check.ts';
import { type Chunk, newChunk, refusedRows } from './chunk-sender.ts';
import { ClusterMarkers } from './cluster-markers.ts';
import { redisErrors } from './errors.ts';
import { noErrors, redisFailure } from './failure.ts';
import { type RedisNames, recordId, redisNames } from './names.ts';
import type { RedisSettings } from './options.ts';
import { ClusterRouter, type SlotRequest } from './router.ts';
import { scanKeys } from './scan.ts';
import { applyScript, clearScript, markerScript, type Script } from './script.ts';
import { keySlot } from './slot.ts';

/**
 * A Redis Cluster.
 *
 * 1. Scripts stay within one slot: the rows of a batch are grouped by slot; order between keys does not matter, a batch holds a
 *    key once, and the next batch is sent when all of this one have answered.
 * 2. The marker moves after every row's script has confirmed, on every master. What a predecessor still sends meanwhile is
 *    refused by the rows' versions.
 */
export class Cluster implements RedisBackend {
  readonly #settings: RedisSettings;
  readonly #names: RedisNames;
  readonly #router: ClusterRouter;
  readonly #markers: ClusterMarkers;

  constructor(settings: RedisSettings, options: BackendOptions) {
    this.#settings = settings;
    this.#names = redisNames(settings.prefix);
    this.#router = new ClusterRouter(settings, [applyScript, clearScript, markerScript], options.onDoubt);
    this.#markers = new ClusterMarkers(this.#router, this.#names);
  }

  async readMarker(stream: StreamRef): Promise<string | null> {
    return await this.#markers.read(stream);
  }

  async holders(stream: StreamRef): Promise<string> {
    return `${(await this.#router.slotMap()).holders}-${await this.#markers.losses(stream)}`;
  }

  async applyRows(batch: RowBatch, encoder: RowEncoder, signal: AbortSignal): Promise<ApplyOutcome> {
    const { stream, marker } = batch;
    if (marker !== null && batch.changes.length > 0) {
      const before = await this.#markers.compare(stream, marker.expected, marker.next, signal);
      if (before === 'done') return { status: 'applied', stale: 0 };
      if (before === 'moved') return { status: 'marker-moved' };
    }
    const refusals: Refusal[] = [];
    const chunks = this.#bySlot(batch, encoder, refusals);
    const stale = await this.#run(applyScript, chunks, { refusals, isRepair: marker === null }, signal);
    if (refusals.length > 0) return { status: 'refused', refusals: refusals.sort((a, b) => a.index - b.index) };
    if (marker === null) return { status: 'applied', stale };
    return await this.#move(stream, marker, stale, signal);
  }

  #bySlot(batch: RowBatch, encoder: RowEncoder, refusals: Refusal[]): readonly SlotChunk[] {
    const chunks: SlotChunk[] = [];
    const last = new Map<number, Chunk>();
    batch.changes.forEach((change, place) => {
      const args: Chunk['args'] = [];
      try {
        const key = encoder.encode(change, args);
        argumentLengths(args, 0, this.#router.maxArgumentBytes);
        const slot = keySlot(key);
        for (const index of encoder.indexKeys(change)) {
          if (keySlot(index) === slot) continue;
          throw redisErrors.REDIS_INDEX_CROSS_SLOT({
            message: `index key '${index}' and row key '${key}' lie in different slots`,
          });
        }
        let chunk = last.get(slot);
        if (chunk === undefined || chunk.places.length >= this.#settings.chunkRows) {
          chunk = newChunk();
          last.set(slot, chunk);
          chunks.push({ slot, chunk });
        }
        chunk.keys.push(key, this.#names.companion(key));
        chunk.places.push(place);
        for (const arg of args) chunk.args.push(arg);
      } catch (error) {
        if (!isMysyncError(error)) throw error;
        refusals.push({ index: place, error });
      }
    });
    return chunks;
  }

  /** Runs the script on every chunk; collects refusals; returns how many rows were stale. */
  async #run(
    script: Script,
    chunks: readonly SlotChunk[],
    rest: { readonly more?: readonly string[]; readonly refusals: Refusal[]; readonly isRepair?: boolean },
    signal: AbortSignal,
  ): Promise<number> {
    const { more = [], refusals, isRepair = false } = rest;
    const keep = String(this.#settings.deletedTtlSeconds);
    const requests = chunks.map(({ slot, chunk }): SlotRequest => {
      const { keys, args, places } = chunk;
      // KEYS[1] would be the marker: here it is any key of the slot.
      const head = ['EVALSHA', script.sha, String(keys.length + 1), keys[0] ?? '', ...keys];
      return {
        slot,
        stays: this.#settings.indexed,
        command: [...head, isRepair ? 'r' : '', '', '', '', '-', String(places.length), keep, ...more, ...args],
      };
    });
    const replies = await this.#router.run(requests, signal);
    let stale = 0;
    replies.forEach((reply, at) => {
      if (reply instanceof Error) throw redisFailure(reply, `slot ${chunks[at]?.slot}`);
      const answer = reply as ScriptReply;
      if (answer[0] === 'ok') stale += answer[1];
      else refusals.push(...refusedRows(answer, chunks[at]?.chunk.places ?? []));
    });
    return stale;
  }

  async #move(stream: StreamRef, marker: MarkerMove, stale: number, signal: AbortSignal): Promise<ApplyOutcome> {
    const moved = await this.#markers.move(stream, marker.expected, marker.next, signal);
    return moved ? { status: 'applied', stale } : { status: 'marker-moved' };
  }

  async applyClear(batch: ClearBatch, signal: AbortSignal): Promise<ApplyOutcome> {
    const { stream, marker } = batch;
    const before = await this.#markers.compare(stream, marker.expected, marker.next, signal);
    if (before === 'done') return { status: 'applied', stale: 0 };
    if (before === 'moved') return { status: 'marker-moved' };
    const layout = await this.#layout(signal);
    for (const change of batch.changes) {
      for (const master of await this.#router.masters()) {
        await this.#clearMaster(master.name, stream, change, signal);
      }
    }
    if ((await this.#layout(signal)) !== layout) throw slotsMoving();
    return await this.#move(stream, marker, 0, signal);
  }

  async #clearMaster(name: string, stream: StreamRef, change: ClearChange, signal: AbortSignal): Promise<void> {
    const master = (await this.#router.masters()).find((each) => each.name === name);
    if (master === undefined) throw slotsMoving();
    const more = [recordId(stream, change.table), versionText(change.version)];
    const connection = await this.#router.connection(master.address);
    for await (const companions of scanKeys(connection, this.#names.companionGlob, signal)) {
      const chunks = companions.flatMap((companion): SlotChunk[] => {
        const key = this.#names.rowKey(companion);
        if (key === null || change.keep?.has(key) === true) return [];
        return [{ slot: keySlot(key), chunk: { places: [0], keys: [key, companion], args: [] } }];
      });
      await this.#run(clearScript, chunks, { more, refusals: [] }, signal);
    }
  }

  /** Throws when slots moved meanwhile: keys that moved along were perhaps not seen. */
  async *companions(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    const layout = await this.#layout(signal);
    for (const master of await this.#router.masters()) {
      yield* scanKeys(await this.#router.connection(master.address), this.#names.companionGlob, signal);
    }
    if ((await this.#layout(signal)) !== layout) throw slotsMoving();
  }

  async ask(commands: readonly KeyedCommand[], signal: AbortSignal): Promise<readonly unknown[]> {
    const requests = commands.map(
      ({ key, command, stays = false }): SlotRequest => ({ slot: keySlot(key), command, stays }),
    );
    return noErrors(await this.#router.run(requests, signal), 'the cluster');
  }

  /** Who owns which slots; throws while some are on their way: a scan could miss a key that moves from one master to another. */
  async #layout(signal: AbortSignal): Promise<string> {
    const parts: string[] = [];
    for (const master of await this.#router.masters()) {
      const connection = await this.#router.connection(master.address);
      const nodes = String(await connection.call(['CLUSTER', 'NODES'], signal));
      const own = nodes.split('\n').find((line) => line.includes('myself')) ?? '';
      if (own.includes('->-') || own.includes('-<-')) throw slotsMoving();
      const fields = own.split(' ');
      parts.push([fields[0], ...fields.slice(8)].join(' '));
    }
    return parts.sort().join('\n');
  }

  async check(): Promise<readonly Finding[]> {
    try {
      const findings: Finding[] = [];
      for (const master of await this.#router.masters()) {
        findings.push(...(await checkServer(await this.#router.connection(master.address))));
      }
      return findings;
    } catch (error) {
      return [unreachable(error)];
    }
  }

  async close(): Promise<void> {
    await this.#router.close();
  }
}

interface SlotChunk {
  readonly slot: number;
  readonly chunk: Chunk;
}

function slotsMoving(): Error {
  return redisErrors.REDIS_SLOTS_MOVING({
    message: 'slots of the cluster are being moved: a scan would not see every key',
  });
}
