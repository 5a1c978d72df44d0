/**
 * What an operator says to a question that stopped a reader: `mysync ddl`.
 *
 * 1. Only an open question is answered, at exactly its place: an answer for another place would be found by nobody, or by the wrong rows.
 * 2. Who answered, and when, stands beside the answer.
 */
import type { SchemaHistoryEntry, SchemaHistoryStore } from '@mysync/checkpoint';
import {
  type BinlogPosition,
  compareBinlogPositions,
  formatBinlogPosition,
  formatTableRef,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import type { MysqlSourceOptions } from '../options.ts';
import { Charsets } from '../schema/charsets.ts';
import { openFirst } from '../server/first-host.ts';
import type { ServerSession } from '../server/session.ts';
import { readDatabaseCharset, readDefinition, withStorableMembers } from './catalogue.ts';
import { Undecided } from './ddl/ddl-words.ts';
import { interpret } from './ddl/interpret.ts';
import type { TableDefinition } from './definition.ts';
import { type HistoryEntry, readEntry, storedEntry } from './history-index.ts';

/** A line of `mysync ddl list`. */
export interface HistoryLine {
  readonly position: string;
  readonly table: string;
  /** `open`: nobody has answered it yet. */
  readonly kind: 'definition' | 'statement' | 'skip' | 'question' | 'open';
  /** The statement, what stopped the reader, or who said it. */
  readonly text: string;
  readonly recordedAt: string;
}

export type DdlAnswer =
  | { readonly kind: 'skip' }
  /** null: as the catalogue has it now. */
  | { readonly kind: 'accept'; readonly createTable: string | null };

export interface AnswerOptions {
  readonly source: MysqlSourceOptions;
  readonly store: SchemaHistoryStore;
  readonly position: BinlogPosition;
  /** As the question names it. */
  readonly table: string;
  readonly answer: DdlAnswer;
  /** Who says so. */
  readonly by: string;
  readonly now: Date;
}

export function describeHistory(entries: readonly SchemaHistoryEntry[]): HistoryLine[] {
  const read = entries.flatMap((entry) => readEntry(entry) ?? []);
  return read
    .map((entry) => ({
      position: formatBinlogPosition(entry.position),
      table: formatTableRef(entry.table),
      kind: isOpen(entry, read) ? ('open' as const) : entry.fact.kind,
      text: textOf(entry),
      recordedAt: entry.recordedAt,
      entry,
    }))
    .sort((a, b) => compareBinlogPositions(a.entry.position, b.entry.position))
    .map(({ entry: _, ...line }) => line);
}

/** Its table, and the statement that it is about ('': none). Throws SOURCE_DDL_QUESTION_NONE. */
export function requireOpenQuestion(
  stored: readonly SchemaHistoryEntry[],
  position: BinlogPosition,
  table: string,
): { readonly table: TableRef; readonly statement: string } {
  const entries = stored.flatMap((entry) => readEntry(entry) ?? []);
  const open = entries.filter((entry) => isOpen(entry, entries));
  const asked = open.find(
    (entry) => formatTableRef(entry.table) === table && compareBinlogPositions(entry.position, position) === 0,
  );
  if (asked?.fact.kind !== 'question') throw noQuestion(position, table, open);
  return { table: asked.table, statement: asked.fact.statement };
}

/** Throws SOURCE_DDL_QUESTION_NONE and SOURCE_DEFINITION_INVALID; nothing is noted then. */
export async function answerQuestion(options: AnswerOptions): Promise<void> {
  const { source, store, position, answer, by, now } = options;
  const { table, statement } = requireOpenQuestion((await store.load())?.entries ?? [], position, options.table);
  const isStatement = statement !== '';
  if (answer.kind === 'skip' && !isStatement) {
    throw sourceErrors.SOURCE_DDL_QUESTION_NONE({
      message: 'the question there is not about a statement: there is nothing to skip',
      where: { position: formatBinlogPosition(position), table: formatTableRef(table) },
      remedy: 'Say what the table was like there: mysync ddl accept.',
    });
  }
  const definition = answer.kind === 'accept' ? await definitionOf(source, table, answer.createTable) : undefined;
  const fact =
    definition === undefined
      ? ({ kind: 'skip', by } as const)
      : ({ kind: 'definition', definition, origin: 'operator', by } as const);
  await store.append([storedEntry({ position, table, fact, recordedAt: now.toISOString() })]);
}

async function definitionOf(
  source: MysqlSourceOptions,
  table: TableRef,
  createTable: string | null,
): Promise<TableDefinition> {
  const connection = { ...source, tls: source.tls, connectionTimeoutMs: source.connectionTimeoutMs ?? 10_000 };
  const session = await openFirst(connection);
  try {
    return createTable === null ? await fromCatalogue(session, table) : await fromText(session, table, createTable);
  } finally {
    session.close();
  }
}

async function fromCatalogue(session: ServerSession, table: TableRef): Promise<TableDefinition> {
  const definition = await readDefinition(session, table);
  if (definition !== undefined) return definition;
  throw invalid(table, 'the server has no such table now');
}

async function fromText(session: ServerSession, table: TableRef, createTable: string): Promise<TableDefinition> {
  const fallback = await readDatabaseCharset(session, table.database);
  const setting = {
    flavor: session.facts.flavor,
    versionNumber: session.facts.versionNumber,
    foldsNames: false,
    names: await Charsets.load(session),
    sqlMode: 0,
    database: table.database,
    databaseCharset: () => fallback,
  };
  try {
    const after = [...interpret(createTable.trim().replace(/;\s*$/, ''), setting, () => ({ kind: 'gone' })).values()];
    const [state] = after;
    if (after.length === 1 && state?.kind === 'known') return await withStorableMembers(session, state.definition);
  } catch (error) {
    if (!(error instanceof Undecided)) throw error;
    throw invalid(table, `the definition is not understood: ${error.message}`);
  }
  throw invalid(table, 'the definition is no CREATE TABLE');
}

function invalid(table: TableRef, message: string): Error {
  return sourceErrors.SOURCE_DEFINITION_INVALID({ message, where: { table: formatTableRef(table) } });
}

function noQuestion(position: BinlogPosition, table: string, open: readonly HistoryEntry[]): Error {
  const asked = open.map((entry) => `${formatTableRef(entry.table)} at ${formatBinlogPosition(entry.position)}`);
  return sourceErrors.SOURCE_DDL_QUESTION_NONE({
    message: 'no reader has stopped there for this table',
    where: { position: formatBinlogPosition(position), table },
    remedy:
      asked.length === 0
        ? 'No question is open: start the reader.'
        : `Open: ${asked.join(', ')}. Copy the command from the reader's error.`,
  });
}

function isAt(entry: HistoryEntry, position: BinlogPosition, table: TableRef): boolean {
  return tableRefKey(entry.table) === tableRefKey(table) && compareBinlogPositions(entry.position, position) === 0;
}

/** Until somebody has said something about the same place. */
function isOpen(entry: HistoryEntry, all: readonly HistoryEntry[]): boolean {
  if (entry.fact.kind !== 'question') return false;
  return !all
    .slice(all.indexOf(entry) + 1)
    .some(
      (other) =>
        isAt(other, entry.position, entry.table) &&
        (other.fact.kind === 'skip' || (other.fact.kind === 'definition' && other.fact.origin === 'operator')),
    );
}

function textOf({ fact }: HistoryEntry): string {
  switch (fact.kind) {
    case 'statement':
      return fact.statement;
    case 'question':
      return `${fact.code}: ${fact.reason}${fact.statement === '' ? '' : `: ${fact.statement}`}`;
    case 'definition': {
      const columns = fact.definition.columns.map((column) => column.name).join(', ');
      return `${fact.origin}${fact.by === '' ? '' : ` (${fact.by})`}: ${columns}`;
    }
    case 'skip':
      return fact.by;
  }
}
