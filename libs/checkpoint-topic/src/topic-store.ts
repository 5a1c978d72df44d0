import {
  type Checkpoint,
  type OwnedCheckpointStore,
  type OwnedLines,
  parseCheckpoint,
  parseSchemaHistory,
  type SchemaHistory,
  type SchemaHistoryStore,
  TextCheckpointStore,
  TextSchemaHistoryStore,
} from '@mysync/checkpoint';
import type { Transport } from '@mysync/transport';
import { pieces, readState, TopicLog, type TopicLogOptions } from './topic-log.ts';

export type TopicCheckpointStoreOptions = TopicLogOptions;

const CHECKPOINT = 'checkpoint';
/** Which generation of lines counts: `GENERATION`. */
const HISTORY = 'schema';

/**
 * A checkpoint and its schema history in a compacted topic of the transport, one topic a source. Spec: docs/spec/checkpoint.md.
 *
 * 1. Whoever opens takes over: the transport fences the one before, whose saves are refused from then on (CHECKPOINT_FENCED).
 * 2. The checkpoint is one record, so it is whole.
 * 3. Lines of the history are records under a generation; a rewrite writes the next generation, then one record that says so.
 */
export class TopicCheckpointStore implements OwnedCheckpointStore {
  readonly #log: TopicLog;
  readonly #store: TextCheckpointStore;
  #history: TextSchemaHistoryStore | undefined;

  private constructor(log: TopicLog) {
    this.#log = log;
    const text = {
      where: log.where,
      read: () => Promise.resolve(log.get(CHECKPOINT) ?? null),
      write: (content: string) => log.put([[CHECKPOINT, content]]),
    };
    this.#store = new TextCheckpointStore(text, () => log.close());
  }

  /** Makes the topic where it is missing. */
  static async open(options: TopicCheckpointStoreOptions): Promise<TopicCheckpointStore> {
    return new TopicCheckpointStore(await TopicLog.open(options));
  }

  async load(): Promise<Checkpoint | null> {
    return await this.#store.load();
  }

  async save(checkpoint: Checkpoint, replaces: number | null): Promise<void> {
    await this.#store.save(checkpoint, replaces);
  }

  /** Under the same ownership; closed with this store. */
  schemaHistory(): Promise<SchemaHistoryStore> {
    this.#history ??= new TextSchemaHistoryStore(linesOf(this.#log));
    return Promise.resolve(this.#history);
  }

  async close(): Promise<void> {
    await this.#history?.close();
    await this.#store.close();
  }
}

/** Reads without taking over, for looking on. null when there is none. */
export async function readTopicCheckpoint(transport: Transport, topic: string): Promise<Checkpoint | null> {
  const text = (await readState(transport, topic)).get(CHECKPOINT);
  return text === undefined ? null : parseCheckpoint(text, `topic ${topic}`);
}

/** Likewise its schema history. */
export async function readTopicSchemaHistory(transport: Transport, topic: string): Promise<SchemaHistory | null> {
  const state = await readState(transport, topic);
  const text = linesIn(state, [...state.keys()]);
  return text === null ? null : parseSchemaHistory(text, `topic ${topic}`);
}

interface Texts {
  get(key: string): string | undefined;
}

function generationOf(texts: Texts): number {
  return Number(texts.get(HISTORY) ?? 0);
}

function prefix(generation: number): string {
  return `${HISTORY}:${generation}:`;
}

function numbered(keys: readonly string[], generation: number): readonly (readonly [at: number, key: string])[] {
  return keys
    .filter((key) => key.startsWith(prefix(generation)))
    .map((key) => [Number(key.split(':')[2]), key] as const);
}

/** null when none was begun. */
function linesIn(texts: Texts, keys: readonly string[]): string | null {
  return texts.get(HISTORY) === undefined ? null : joined(texts, numbered(keys, generationOf(texts)));
}

/** Lines are numbered; a long one is cut into pieces: `schema:GENERATION:LINE:PIECE`, the last piece's key ending in `.`. */
function linesOf(log: TopicLog): OwnedLines {
  const generation = (): number => generationOf(log);
  const line = (number: number, at: number, text: string): [string, string][] => {
    const parts = pieces(text);
    return parts.map((part, i) => [`${prefix(number)}${at}:${i}${i === parts.length - 1 ? '.' : ''}`, part]);
  };
  return {
    where: log.where,
    read: () => Promise.resolve(linesIn(log, log.keys())),
    replace: async (text) => {
      const [old, next] = [generation(), generation() + 1];
      await log.put(line(next, 0, text));
      await log.put([[HISTORY, String(next)]]);
      const gone = log.keys().filter((key) => key.startsWith(prefix(old)));
      await log.put(gone.map((key) => [key, null]));
    },
    append: async (text) => {
      const number = generation();
      const at = numbered(log.keys(), number).reduce((last, [each]) => Math.max(last, each), -1) + 1;
      await log.put(line(number, at, text));
    },
  };
}

/** The whole lines in their order. One without its last piece was never confirmed: its writer died. */
function joined(texts: Texts, keys: readonly (readonly [at: number, key: string])[]): string {
  const lines = new Map<number, { readonly parts: string[]; isWhole: boolean }>();
  for (const [at, key] of keys) {
    const line = lines.get(at) ?? { parts: [], isWhole: false };
    lines.set(at, line);
    const piece = key.split(':')[3] ?? '';
    line.parts[Number.parseInt(piece, 10)] = texts.get(key) ?? '';
    line.isWhole ||= piece.endsWith('.');
  }
  return [...lines.entries()]
    .sort(([a], [b]) => a - b)
    .map(([, { parts, isWhole }]) => (isWhole ? parts.join('') : ''))
    .join('');
}
