import type { TableRef, TableSchema } from '@mysync/core';
import {
  type InspectedRow,
  type Refusal,
  type RowVerdict,
  type SinkInspector,
  type StoredRecord,
  type StreamRef,
  sinkErrors,
} from '@mysync/sink';
import { type KeyedCommand, type RedisBackend, type RowEncoder, type ScriptReply, versionText } from './backend.ts';
import type { Argument } from './connection.ts';
import { differencesOf, type FoundRow } from './differences.ts';
import { DIGEST_SCRIPT, digestOfAll, rowDigest, STANDING_SCRIPT } from './digests.ts';
import type { StoredForm, TableMapper } from './mapper.ts';
import { type RedisNames, recordId } from './names.ts';
import { applyScript } from './script.ts';

export interface RedisInspectorOptions {
  readonly backend: RedisBackend;
  readonly names: RedisNames;
  readonly chunkRows: number;
  readonly deletedTtlSeconds: number;
  /** Keys of several rows may stand in one command. */
  readonly oneSlot: boolean;
  /** Rows are members of index sets. */
  readonly indexed: boolean;
  mapper(schema: TableSchema): TableMapper;
  encoder(stream: StreamRef): RowEncoder;
}

/** A row, where it is stored and as what. */
interface Placed {
  readonly target: string;
  readonly form: StoredForm;
  readonly shape: string;
  readonly expires: boolean;
}

/**
 * Looks at what stands in Redis.
 *
 * 1. Digests are made in Redis, of many rows at once, then of each, then of each field: only what differs is looked at closer, and
 *    no value of a row that is right travels.
 * 2. A row is there when its companion says so and its key exists: a key without a companion is a stranger's.
 * 3. What stands at the key of a row that its companion calls deleted was put there by somebody else: it is a record, and too much, unless the
 *    row came back; its version is that of the deletion.
 */
export class RedisInspector implements SinkInspector {
  readonly #options: RedisInspectorOptions;

  constructor(options: RedisInspectorOptions) {
    this.#options = options;
  }

  targetOf({ schema, key, row }: InspectedRow): string {
    return this.#options.mapper(schema).keyOf(row, key);
  }

  async compare(rows: readonly InspectedRow[], signal: AbortSignal): Promise<readonly RowVerdict[]> {
    const verdicts: RowVerdict[] = [];
    const { chunkRows } = this.#options;
    for (let from = 0; from < rows.length; from += chunkRows) {
      verdicts.push(...(await this.#compareChunk(rows.slice(from, from + chunkRows), signal)));
    }
    return verdicts;
  }

  async *records(
    table: TableRef,
    streams: readonly StreamRef[],
    signal: AbortSignal,
  ): AsyncGenerator<readonly StoredRecord[]> {
    const ids = new Set(streams.map((stream) => recordId(stream, table)));
    for await (const companions of this.#options.backend.companions(signal)) {
      const targets = companions.flatMap((companion) => this.#options.names.rowKey(companion) ?? []);
      const stored = await this.#stored(targets, (id) => ids.has(id), signal);
      yield stored.filter((record) => record !== null);
    }
  }

  async find(
    _table: TableRef,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (StoredRecord | null)[]> {
    return await this.#stored(targets, () => true, signal);
  }

  async rewrite(
    stream: StreamRef,
    rows: readonly InspectedRow[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]> {
    const changes = rows.map((row) => ({ kind: 'put', ...row, version, offset: -1 }) as const);
    const { backend, encoder } = this.#options;
    const outcome = await backend.applyRows({ stream, changes, marker: null }, encoder(stream), signal);
    return outcome.status === 'refused' ? outcome.refusals : [];
  }

  async remove(
    _table: TableRef,
    targets: readonly string[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]> {
    const { backend, names, deletedTtlSeconds, indexed } = this.#options;
    const companions = targets.map((target) => names.companion(target));
    const records = await this.#read(companions, signal);
    const places: number[] = [];
    const commands = records.flatMap((record, at): KeyedCommand[] => {
      if (record === null) return [];
      places.push(at);
      const [key, companion] = [targets[at] as string, companions[at] as string];
      const gone = `${versionText(version)}-${record.slice(17, 37)}`;
      const args = ['r', '', '', '', '-', '1', String(deletedTtlSeconds), 'd', gone];
      return [{ key, command: ['EVAL', applyScript.text, '3', key, key, companion, ...args], stays: indexed }];
    });
    const replies = (await backend.ask(commands, signal)) as readonly ScriptReply[];
    return replies.flatMap((reply, at): Refusal[] => {
      if (reply[0] !== 'refused') return [];
      const error = sinkErrors.SINK_WRONG_TYPE({ message: `Redis refused to delete the row: ${reply[3]}` });
      return [{ index: places[at] ?? 0, error }];
    });
  }

  async #compareChunk(rows: readonly InspectedRow[], signal: AbortSignal): Promise<readonly RowVerdict[]> {
    const { mapper, oneSlot, backend } = this.#options;
    const placed = rows.map(({ schema, key, row }): Placed => {
      const { keyOf, stored, shape, expires } = mapper(schema);
      return { target: keyOf(row, key), form: stored(row), shape, expires };
    });
    const digests = placed.map(({ form }) => rowDigest(form));
    const [first] = placed;
    if (first === undefined) return [];
    const alike = oneSlot && rows.every((row) => row.schema === rows[0]?.schema);
    if (alike) {
      const [all] = await backend.ask([this.#digests('all', placed, first)], signal);
      if (all === digestOfAll(digests)) return placed.map(() => EQUAL);
    }
    const replies = alike
      ? perRow((await backend.ask([this.#digests('rows', placed, first)], signal))[0])
      : (
          await backend.ask(
            placed.map((each) => this.#digests('rows', [each], each)),
            signal,
          )
        ).flatMap(perRow);
    const verdicts: RowVerdict[] = [];
    for (const [at, each] of placed.entries()) {
      const reply = replies[at] as DigestedRow;
      if (reply.digest === digests[at]) verdicts.push({ ...EQUAL, version: stateOf(reply.companion)?.version ?? null });
      else verdicts.push(await this.#differing(each, reply, signal));
    }
    return verdicts;
  }

  async #differing(placed: Placed, reply: DigestedRow, signal: AbortSignal): Promise<RowVerdict> {
    const { form, expires } = placed;
    const { version = null, there = false } = stateOf(reply.companion) ?? {};
    const missing: RowVerdict = { state: expires && there ? 'expired' : 'missing', version, fields: [] };
    if (!there || reply.size === 0) return missing;
    const [found] = (await this.#options.backend.ask([this.#digests('fields', [placed], placed)], signal)) as [
      FoundRow,
    ];
    // it went meanwhile
    if (found[0] === 'none') return missing;
    const fields = differencesOf(form, found, expires);
    return { state: fields.length === 0 ? 'equal' : 'different', version, fields };
  }

  #digests(level: 'all' | 'rows' | 'fields', placed: readonly Placed[], like: Placed): KeyedCommand {
    const { form, shape, expires } = like;
    const keys = placed.flatMap(({ target }) => [target, this.#options.names.companion(target)]);
    const names = form.kind === 'string' ? [] : form.fields.map(([name]) => name);
    const command: Argument[] = ['EVAL', DIGEST_SCRIPT, String(keys.length), ...keys, level];
    command.push(form.kind === 'string' ? 'j' : 'h', shape, expires ? '' : 'stays', ...names);
    return { key: keys[0] ?? '', command };
  }

  /** In order; null where nothing is stored, or not of a stream and table that `wanted` takes (12 hex digits). */
  async #stored(
    targets: readonly string[],
    wanted: (id: string) => boolean,
    signal: AbortSignal,
  ): Promise<readonly (StoredRecord | null)[]> {
    const { names, backend } = this.#options;
    const companions = targets.map((target) => names.companion(target));
    const records = [...(await this.#read(companions, signal))];
    const deleted = [...records.keys()].filter((at) => {
      const record = records[at] ?? '';
      return stateOf(record)?.there === false && wanted(record.slice(25, 37));
    });
    const commands = deleted.map((at): KeyedCommand => {
      const [key, companion] = [targets[at] as string, companions[at] as string];
      return { key, command: ['EVAL', STANDING_SCRIPT, '2', key, companion] };
    });
    const standing = (await backend.ask(commands, signal)) as readonly (string | null)[];
    for (const [nth, at] of deleted.entries()) records[at] = standing[nth] ?? null;
    return records.map((record, at) => {
      if (record === null || !wanted(record.slice(25, 37))) return null;
      const state = stateOf(record);
      return state === null ? null : { target: targets[at] as string, version: state.version };
    });
  }

  /** Companions' texts, in order; null where there is none. MGET: a key of another type is none, and no error. */
  async #read(companions: readonly string[], signal: AbortSignal): Promise<readonly (string | null)[]> {
    const commands = companions.map((key) => ({ key, command: ['MGET', key] }));
    return ((await this.#options.backend.ask(commands, signal)) as [string | null][]).map(([text]) => text);
  }
}

const EQUAL: RowVerdict = { state: 'equal', version: null, fields: [] };

interface DigestedRow {
  readonly digest: string;
  readonly size: number;
  readonly companion: string;
}

function perRow(reply: unknown): readonly DigestedRow[] {
  const values = reply as readonly (string | number)[];
  const rows: DigestedRow[] = [];
  for (let at = 0; at + 2 < values.length; at += 3) {
    rows.push({ digest: String(values[at]), size: Number(values[at + 1]), companion: String(values[at + 2]) });
  }
  return rows;
}

/** `record`: a companion, or its first 17 characters. null: there is none, or what somebody else put in its place. */
function stateOf(record: string): { readonly version: bigint; readonly there: boolean } | null {
  const [, version, mark] = /^([0-9a-f]{16})([+-])/.exec(record) ?? [];
  return version === undefined ? null : { version: BigInt(`0x${version}`), there: mark === '+' };
}
