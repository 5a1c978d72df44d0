/** What `GET /INDEX?flat_settings=true` says of an index. */
import type { IndexOwner } from './indexes.ts';
import type { FieldMapping } from './options.ts';

export interface IndexInfo {
  /** Of the index itself, where the name asked for was an alias. */
  readonly name: string;
  readonly identity: string;
  readonly gcDeletes: string | undefined;
  readonly fieldLimit: number | undefined;
  readonly translogDurability: string | undefined;
  /** Settings of the form `index.blocks.X` that are true. */
  readonly blocks: readonly string[];
  readonly properties: Readonly<Record<string, FieldMapping>>;
  readonly owners: readonly IndexOwner[];
  /** All of the mapping's `_meta`. */
  readonly meta: object;
}

interface RawIndex {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly mappings?: {
    readonly properties?: Readonly<Record<string, FieldMapping>>;
    readonly _meta?: { readonly mysync?: { readonly tables?: readonly IndexOwner[] } };
  };
}

/** Of the first index in the answer (an alias of several cannot be written to anyway). */
export function parseIndexInfo(body: unknown): IndexInfo {
  const [name, raw] = Object.entries(body as Record<string, RawIndex>)[0] ?? ['', {}];
  return indexInfo(name, raw);
}

export function indexInfo(name: string, raw: RawIndex): IndexInfo {
  const settings = raw.settings ?? {};
  const text = (key: string): string | undefined => (settings[key] === undefined ? undefined : String(settings[key]));
  const tables = raw.mappings?._meta?.mysync?.tables;
  return {
    name,
    identity: identityOf(settings),
    gcDeletes: text('index.gc_deletes'),
    fieldLimit: settingNumber(settings, 'index.mapping.total_fields.limit'),
    translogDurability: text('index.translog.durability'),
    blocks: Object.keys(settings).filter((key) => key.startsWith('index.blocks.') && String(settings[key]) === 'true'),
    properties: raw.mappings?.properties ?? {},
    owners: Array.isArray(tables) ? tables : [],
    meta: raw.mappings?._meta ?? {},
  };
}

/**
 * What tells an index from another one of its name: its UUID, and, once it was restored from a snapshot, the history that began then
 * (`index.history.uuid`, tried on 9.5.3: a closed index that is restored over keeps its UUID, one that was deleted before gets another one).
 */
export function identityOf(settings: Readonly<Record<string, unknown>>): string {
  const history = settings['index.history.uuid'];
  return `${settings['index.uuid'] ?? ''}${history === undefined ? '' : `/${history}`}`;
}

export function settingNumber(settings: Readonly<Record<string, unknown>>, key: string): number | undefined {
  const value = settings[key] ?? settings[key.replace(/^index\./, '')];
  return value === undefined ? undefined : Number(value);
}

const UNITS: Readonly<Record<string, number>> = {
  nanos: 1e-9,
  micros: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
  d: 86_400,
};

/** Seconds of a time value such as `1h` or `60s`; 60 where the setting is missing, Elasticsearch's default. */
export function gcDeletesSeconds(value: string | undefined): number {
  if (value === undefined) return 60;
  const match = /^(-?\d+)\s*([a-z]*)$/.exec(value.trim().toLowerCase());
  return match === null ? 0 : Number(match[1]) * (UNITS[match[2] || 'ms'] ?? 0);
}

/**
 * Whether a field of this existing mapping takes what the wanted one is for: the same type, or one that takes anything as text.
 * Parameters are compared by nobody: whoever changed them knows why.
 */
export function isBuiltFrom(existing: FieldMapping, wanted: FieldMapping): boolean {
  const type = existing['type'] ?? 'object';
  return type === (wanted['type'] ?? 'object') || type === 'keyword' || type === 'text' || type === 'wildcard';
}
