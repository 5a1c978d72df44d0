/**
 * The entries of a schema history in memory, as their store has them.
 *
 * 1. An entry is in the store, durably, before it is in here.
 * 2. What was noted once is not noted again when its stretch of the log is read again.
 */
import type { SchemaHistoryEntry, SchemaHistoryStore } from '@mysync/checkpoint';
import { type BinlogPosition, type Clock, compareBinlogPositions, type TableRef, tableRefKey } from '@mysync/core';
import { asDefinition, type TableDefinition } from './definition.ts';

/** Who gave a definition. `types`: statements, followed for the types of columns alone, without charsets and what they do to members. */
export type DefinitionOrigin = 'catalogue' | 'statements' | 'types' | 'operator';

export type HistoryFact =
  | {
      readonly kind: 'definition';
      readonly definition: TableDefinition;
      readonly origin: DefinitionOrigin;
      readonly by: string;
    }
  | {
      readonly kind: 'statement';
      readonly statement: string;
      readonly database: string;
      readonly sqlMode: number;
      readonly base: 'creates' | 'drops' | '';
    }
  /** An operator's word: the statement there changes nothing of the table. */
  | { readonly kind: 'skip'; readonly by: string }
  /** Reading stopped there. */
  | { readonly kind: 'question'; readonly code: string; readonly statement: string; readonly reason: string };

export interface HistoryEntry {
  readonly position: BinlogPosition;
  readonly table: TableRef;
  readonly fact: HistoryFact;
  readonly recordedAt: string;
}

/** In the place of a table: statements on the database itself. */
export function wholeDatabase(database: string): TableRef {
  return { database, table: '' };
}

export class HistoryIndex {
  readonly #store: SchemaHistoryStore | undefined;
  readonly #clock: Clock;
  /** By table, in the order of their positions, then of their addition. */
  readonly #entries = new Map<string, HistoryEntry[]>();
  #size = 0;

  private constructor(store: SchemaHistoryStore | undefined, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Begins a history where there is none. Without a store it lives as long as its reader. */
  static async open(store: SchemaHistoryStore | undefined, clock: Clock): Promise<HistoryIndex> {
    const index = new HistoryIndex(store, clock);
    if (store === undefined) return index;
    const stored = await store.load();
    if (stored === null) await store.begin();
    for (const entry of stored?.entries ?? []) {
      const read = readEntry(entry);
      if (read !== undefined) index.#put(read);
    }
    return index;
  }

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  of(ref: TableRef): readonly HistoryEntry[] {
    return this.#entries.get(tableRefKey(ref)) ?? [];
  }

  tablesOf(database: string): TableRef[] {
    return [...this.#entries.values()].flatMap((entries) => {
      const ref = entries[0]?.table;
      return ref !== undefined && ref.database === database && ref.table !== '' ? [ref] : [];
    });
  }

  all(): HistoryEntry[] {
    return [...this.#entries.values()].flat();
  }

  /** An entry of this kind at exactly this place. */
  at(ref: TableRef, position: BinlogPosition, kind: HistoryFact['kind']): HistoryEntry | undefined {
    return this.of(ref).findLast(
      (entry) => entry.fact.kind === kind && compareBinlogPositions(entry.position, position) === 0,
    );
  }

  async add(facts: readonly Pick<HistoryEntry, 'position' | 'table' | 'fact'>[]): Promise<void> {
    if (facts.length === 0) return;
    const recordedAt = new Date(this.#clock.now()).toISOString();
    const entries = facts.map((fact) => ({ ...fact, recordedAt }));
    await this.#store?.append(entries.map(storedEntry));
    for (const entry of entries) this.#put(entry);
  }

  /** Leaves what reading from `before` on may ask for. */
  async prune(before: BinlogPosition, captures: (ref: TableRef) => boolean): Promise<void> {
    const dropped = new Set<HistoryEntry>();
    for (const entries of this.#entries.values()) {
      const passed = entries.filter((entry) => compareBinlogPositions(entry.position, before) <= 0);
      // of statements on a database the newest one says as much as all
      const base = entries[0]?.table.table === '' ? passed.length - 1 : passed.findLastIndex(isBase);
      for (const [i, entry] of passed.entries()) {
        const isMeant =
          entry.fact.kind === 'definition' || entry.fact.kind === 'statement' || entry.fact.kind === 'skip';
        if (i < base || !isMeant || (isDrop(entry) && entry.table.table !== '' && !captures(entry.table)))
          dropped.add(entry);
      }
    }
    await this.#drop(dropped);
  }

  /** Where nobody notes statements any more, definitions go out of date. */
  async forgetDefinitions(): Promise<void> {
    await this.#drop(new Set(this.all().filter(({ fact }) => fact.kind !== 'skip' && fact.kind !== 'question')));
  }

  /** What says too little for rows whose maps have no metadata. */
  async forgetTypes(): Promise<void> {
    await this.#drop(new Set(this.all().filter(({ fact }) => fact.kind === 'definition' && fact.origin === 'types')));
  }

  /** Others may be added meanwhile: those stay. */
  async #drop(dropped: ReadonlySet<HistoryEntry>): Promise<void> {
    if (dropped.size === 0) return;
    const texts = new Set([...dropped].map((entry) => JSON.stringify(storedEntry(entry))));
    await this.#store?.prune((entry) => !texts.has(JSON.stringify(entry)));
    for (const [key, entries] of this.#entries) {
      const kept = entries.filter((entry) => !dropped.has(entry));
      if (kept.length === 0) this.#entries.delete(key);
      else this.#entries.set(key, kept);
    }
    this.#size -= dropped.size;
  }

  #put(entry: HistoryEntry): void {
    const key = tableRefKey(entry.table);
    const entries = this.#entries.get(key) ?? [];
    this.#entries.set(key, entries);
    let at = entries.length;
    while (at > 0 && compareBinlogPositions((entries[at - 1] as HistoryEntry).position, entry.position) > 0) at -= 1;
    entries.splice(at, 0, entry);
    this.#size += 1;
  }
}

function isBase(entry: HistoryEntry): boolean {
  return entry.fact.kind === 'definition' || (entry.fact.kind === 'statement' && entry.fact.base !== '');
}

function isDrop(entry: HistoryEntry): boolean {
  return entry.fact.kind === 'statement' && entry.fact.base === 'drops';
}

export function storedEntry({ position, table, fact, recordedAt }: HistoryEntry): SchemaHistoryEntry {
  const { kind, ...body } = fact;
  const { file, offset } = position;
  return {
    position: { file, offset },
    table: { database: table.database, table: table.table },
    kind,
    body,
    recordedAt,
  };
}

/** undefined for a kind that a later version wrote, and for a body that does not fit. */
export function readEntry({ position, table, kind, body, recordedAt }: SchemaHistoryEntry): HistoryEntry | undefined {
  const fact = readFact(kind, body);
  return fact === undefined ? undefined : { position, table, fact, recordedAt };
}

function readFact(kind: string, body: Readonly<Record<string, unknown>>): HistoryFact | undefined {
  const text = (name: string): string => String(body[name] ?? '');
  switch (kind) {
    case 'definition': {
      const definition = asDefinition(body['definition']);
      if (definition === undefined) return undefined;
      return { kind, definition, origin: text('origin') as DefinitionOrigin, by: text('by') };
    }
    case 'statement': {
      const base = text('base');
      return {
        kind,
        statement: text('statement'),
        database: text('database'),
        sqlMode: Number(body['sqlMode'] ?? 0),
        base: base === 'creates' || base === 'drops' ? base : '',
      };
    }
    case 'skip':
      return { kind, by: text('by') };
    case 'question':
      return { kind, code: text('code'), statement: text('statement'), reason: text('reason') };
    default:
      return undefined;
  }
}
