import { type ChangeId, causeText, formatTableRef, isMysyncError, type TableRef, tableRefKey } from '@mysync/core';
import { decodeKey } from '@mysync/wire';
import type { writerErrors } from './errors.ts';
import { operationOf, type RowStateChange } from './row-change.ts';

/** A key that is set aside, as the applied marker holds it. The message itself stays in the log. */
export interface ParkedKey {
  /** The record's key bytes, base64. */
  readonly key: string;
  /** Of the change that was refused first: its offset names the entry. */
  readonly first: number;
  /** The newest change of the key: version (decimal digits), offset, and what it does. */
  readonly version: string;
  readonly offset: number;
  readonly operation: 'put' | 'delete';
  /** From this offset on the key's changes make up the newest state; below `offset` only where rows came in part. */
  readonly from: number;
  /** Why: the code of the error, and its text. */
  readonly code: string;
  readonly reason: string;
  readonly sinceMs: number;
  /** Version (decimal digits) and name of a change that lies before the newest one in the log: where a recovery of a lost log begins. */
  readonly behind: { readonly version: string; readonly change: ChangeId };
  /** The sink's name for the row's record, where it has one. Absent in markers of the first days, too. */
  readonly target?: string;
  /** How many changes came behind the one that was refused. */
  readonly waiting: number;
}

/** A change with its record's key bytes as a latin1 string. */
export interface KeyedChange<Change extends RowStateChange = RowStateChange> {
  readonly key: string;
  readonly change: Change;
  /** Where the change was merged out of several: the offset of the first of them. */
  readonly mergedFrom?: number | undefined;
}

/** When a key is set aside, behind which change, and what the sink calls its record. */
export type ParkedPlace = Pick<ParkedKey, 'sinceMs' | 'behind' | 'target'>;

const REASON_LENGTH = 300;
const WITHHELD: keyof typeof writerErrors = 'WRITER_ROW_WITHHELD';

/**
 * The keys of one partition of one sink that are set aside.
 *
 * 1. An entry names the newest change of its key that the writer has met; an older one never takes its place.
 * 2. A clear of the table drops what is older than it: there is nothing to apply any more.
 * 3. The entries are part of the applied marker, so they change in the very step that moves it.
 */
export class ParkedKeys {
  #entries: Map<string, ParkedKey>;
  /** As the marker has them. */
  #saved: readonly ParkedKey[];
  #changed = false;

  constructor(entries: readonly ParkedKey[] = []) {
    this.#saved = entries;
    this.#entries = byKey(entries);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** True when something changed since `saved` was called. */
  get changed(): boolean {
    return this.#changed;
  }

  saved(): void {
    if (this.#changed) this.#saved = this.entries();
    this.#changed = false;
  }

  /** As `saved` was called last. */
  restore(): void {
    if (this.#changed) this.#entries = byKey(this.#saved);
    this.#changed = false;
  }

  entries(): readonly ParkedKey[] {
    return [...this.#entries.values()];
  }

  /**
   * False when the key is not set aside; else the change waits behind it. A whole row behind one that was withheld ends that: there is
   * nothing else to mend.
   */
  wait({ key, change, mergedFrom }: KeyedChange, behind: ParkedKey['behind']): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    // Read again, or sent again.
    if (change.version < BigInt(entry.version) || change.offset <= entry.offset) return true;
    const partial = change.kind === 'put' && change.row.includes(undefined);
    if (isWithheld(entry) && change.kind !== 'withheld' && !partial) {
      this.#entries.delete(key);
      this.#changed = true;
      return false;
    }
    this.#set(key, {
      ...entry,
      version: change.version.toString(),
      offset: change.offset,
      operation: operationOf(change),
      from: partial ? entry.from : (mergedFrom ?? change.offset),
      behind: partial ? entry.behind : behind,
      // The same change, published again: it counts once.
      waiting: entry.waiting + (change.version === BigInt(entry.version) ? 0 : 1),
    });
    return true;
  }

  /** Sets the key aside with its newest change. */
  park({ key, change, mergedFrom }: KeyedChange, error: unknown, place: ParkedPlace): ParkedKey {
    const entry: ParkedKey = {
      key: Buffer.from(key, 'latin1').toString('base64'),
      first: change.offset,
      version: change.version.toString(),
      offset: change.offset,
      operation: operationOf(change),
      from: mergedFrom ?? change.offset,
      ...causeOf(error),
      ...place,
      waiting: 0,
    };
    this.#set(key, entry);
    return entry;
  }

  /** The table was cleared up to a version; returns how many entries went with it. */
  clear(table: TableRef, version: bigint): number {
    let dropped = 0;
    for (const [key, entry] of this.#entries) {
      if (BigInt(entry.version) >= version || tableRefKey(parkedRow(entry)) !== tableRefKey(table)) continue;
      this.#entries.delete(key);
      this.#changed = true;
      dropped += 1;
    }
    return dropped;
  }

  byTable(): Readonly<Record<string, number>> {
    return countByTable(this.#entries.values());
  }

  /** What the sink calls the records of those rows of a table that are there. */
  targets(table: TableRef): ReadonlySet<string> {
    const targets = new Set<string>();
    for (const entry of this.#entries.values()) {
      if (entry.target === undefined || entry.operation === 'delete') continue;
      if (tableRefKey(parkedRow(entry)) === tableRefKey(table)) targets.add(entry.target);
    }
    return targets;
  }

  #set(key: string, entry: ParkedKey): void {
    this.#entries.set(key, entry);
    this.#changed = true;
  }
}

function byKey(entries: readonly ParkedKey[]): Map<string, ParkedKey> {
  return new Map(entries.map((entry) => [keyText(entry), entry]));
}

/** The record's key bytes as a latin1 string. */
export function keyText(entry: Pick<ParkedKey, 'key'>): string {
  return Buffer.from(entry.key, 'base64').toString('latin1');
}

/** The log holds nothing but its key: only the source can tell the row. */
export function isWithheld({ code }: Pick<ParkedKey, 'code'>): boolean {
  return code === WITHHELD;
}

/** Why a change was refused, short enough for a marker. */
export function causeOf(error: unknown): Pick<ParkedKey, 'code' | 'reason'> {
  const code = isMysyncError(error) ? error.code : 'INTERNAL';
  const text = isMysyncError(error)
    ? [error.message, ...(error.cause === undefined ? [] : [causeText(error.cause)])].join(': ')
    : causeText(error);
  return { code, reason: text.length > REASON_LENGTH ? `${text.slice(0, REASON_LENGTH)}…` : text };
}

/** The table and the key of a parked row. */
export function parkedRow(entry: Pick<ParkedKey, 'key'>): TableRef & { readonly values: readonly unknown[] } {
  const decoded = decodeKey(Buffer.from(entry.key, 'base64'));
  if (decoded.kind !== 'row') return { database: '', table: '', values: [] };
  return decoded.row;
}

/** How many rows of each table. */
export function countByTable(entries: Iterable<Pick<ParkedKey, 'key'>>): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const entry of entries) {
    const table = formatTableRef(parkedRow(entry));
    counts[table] = (counts[table] ?? 0) + 1;
  }
  return counts;
}

/** For logs and lists: `shop.orders 17`. */
export function parkedName(entry: Pick<ParkedKey, 'key'>): string {
  const row = parkedRow(entry);
  return `${formatTableRef(row)} ${row.values.map(valueText).join(',')}`;
}

export function valueText(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}

export function isParkedKey(value: unknown): value is ParkedKey {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as Partial<ParkedKey>;
  const numbers = [entry.first, entry.offset, entry.from, entry.waiting];
  return (
    typeof entry.key === 'string' &&
    typeof entry.version === 'string' &&
    /^\d+$/.test(entry.version) &&
    (entry.operation === 'put' || entry.operation === 'delete') &&
    typeof entry.code === 'string' &&
    typeof entry.reason === 'string' &&
    Number.isFinite(entry.sinceMs) &&
    (entry.target === undefined || typeof entry.target === 'string') &&
    typeof entry.behind?.version === 'string' &&
    typeof entry.behind.change === 'object' &&
    numbers.every((number) => Number.isSafeInteger(number))
  );
}
