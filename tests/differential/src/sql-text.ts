/** Pieces of statements. */
import type { TableRef } from '@mysync/core';

export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

export function quoteTable(ref: TableRef): string {
  return `${quoteName(ref.database)}.${quoteName(ref.table)}`;
}

/** A literal that means the same in every session: whatever its charset and sql_mode. */
export function quoteText(text: string): string {
  return `_utf8mb4 x'${Buffer.from(text, 'utf8').toString('hex')}'`;
}

export function isAscii(text: string): boolean {
  return [...text].every((character) => character <= '\u007f');
}
