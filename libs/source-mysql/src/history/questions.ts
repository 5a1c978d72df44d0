/** Where reading stops for somebody's word, and how that word is given. */
import { type BinlogPosition, formatBinlogPosition, formatTableRef, type TableRef } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import type { HistoryFact } from './history-index.ts';

export type Question = Extract<HistoryFact, { kind: 'question' }>;

/** A shell's word for any text. */
function shellWord(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `mysync ddl accept|skip` for exactly this question. */
export function ddlCommand(verb: 'accept' | 'skip', source: string, table: TableRef, position: BinlogPosition): string {
  const where = `--source ${shellWord(source)} --position ${formatBinlogPosition(position)} --table ${shellWord(formatTableRef(table))}`;
  return `mysync ddl ${verb} ${where}${verb === 'accept' ? ' --definition FILE' : ''}`;
}

const MESSAGES: Readonly<Record<string, (table: string) => string>> = {
  SOURCE_SCHEMA_UNKNOWN: (table) => `rows of ${table} are in the log, but not what the table was like then`,
  SOURCE_DDL_UNDECIDED: (table) => `what a statement made of ${table} is not known for sure`,
  SOURCE_SCHEMA_MISFIT: (table) => `what is known of ${table} does not fit its rows`,
};

export function questionError(source: string, table: TableRef, position: BinlogPosition, question: Question): Error {
  const { code, statement, reason } = question;
  const accept = ddlCommand('accept', source, table, position);
  const skip = ddlCommand('skip', source, table, position);
  const place = formatBinlogPosition(position);
  const isStatement = code === 'SOURCE_DDL_UNDECIDED';
  const remedy = isStatement
    ? `Stop the reader. Say what the table was like after the statement, as SHOW CREATE TABLE prints it: ${accept} (or --from-catalogue, if it is so still); or, if the statement left the table's columns and keys as they were: ${skip}. Then start again.`
    : `Stop the reader. Say what the table was like at that place, as SHOW CREATE TABLE prints it: ${accept} (or --from-catalogue, if it is so still). Then start again.`;
  const name = formatTableRef(table);
  return sourceErrors[code as 'SOURCE_SCHEMA_UNKNOWN' | 'SOURCE_DDL_UNDECIDED' | 'SOURCE_SCHEMA_MISFIT']({
    message: `${MESSAGES[code]?.(name) ?? name}: ${reason}`,
    where: { table: name, position: place, ...(isStatement ? { statement: short(statement) } : {}) },
    remedy,
  });
}

export function short(statement: string): string {
  return statement.length > 300 ? `${statement.slice(0, 300)}…` : statement;
}
