import type { Finding } from '@mysync/core';
import type {
  ApplyBatch,
  ApplyOutcome,
  ClearChange,
  DeleteChange,
  MarkerMove,
  PutChange,
  StreamRef,
} from '@mysync/sink';
import type { Argument } from './connection.ts';

/** Turns changes into rows of the apply script. */
export interface RowEncoder {
  /** Appends the row to `args` and returns its key. Throws a catalogue error when the row can never be applied. */
  encode(change: PutChange | DeleteChange, args: Argument[]): string;
  /** The keys of the sets that the row is a member of. */
  indexKeys(change: PutChange | DeleteChange): readonly string[];
}

export interface RowBatch {
  readonly stream: StreamRef;
  readonly changes: readonly (PutChange | DeleteChange)[];
  /** null: no marker is looked at or moved (a repair). */
  readonly marker: MarkerMove | null;
}

export type ClearBatch = Omit<ApplyBatch, 'changes'> & { readonly changes: readonly ClearChange[] };

export interface KeyedCommand {
  readonly key: string;
  readonly command: readonly Argument[];
  /** It touches further keys of the slot (a row's index sets). */
  readonly stays?: boolean;
}

/** One server or a cluster: what differs between them. */
export interface RedisBackend {
  readMarker(stream: StreamRef): Promise<string | null>;
  applyRows(batch: RowBatch, encoder: RowEncoder, signal: AbortSignal): Promise<ApplyOutcome>;
  applyClear(batch: ClearBatch, signal: AbortSignal): Promise<ApplyOutcome>;
  /** Companion keys of all rows, in pages, each at least once (SCAN). */
  companions(signal: AbortSignal): AsyncIterable<readonly string[]>;
  /** Runs commands whose keys share a slot with `key`; replies in order, a reply that is an error throws. */
  ask(commands: readonly KeyedCommand[], signal: AbortSignal): Promise<readonly unknown[]>;
  /** Which servers hold the data; only where a marker may outlive rows before it. */
  holders?(stream: StreamRef): Promise<string>;
  check(): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

export interface BackendOptions {
  readonly onDoubt: (reason: string) => void;
}

/** Reply of the scripts. */
export type ScriptReply =
  | readonly ['ok', number]
  | readonly ['refused', number, ...unknown[]]
  | readonly ['moved', string, number]
  | readonly ['behind']
  | readonly ['no-marker', string];

/** 16 hex digits: as text in the order of the number. */
export function versionText(version: bigint): string {
  return version.toString(16).padStart(16, '0');
}
