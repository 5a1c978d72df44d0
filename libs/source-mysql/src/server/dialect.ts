/** Statements that differ by flavour and version. */
import type { ServerFacts } from './session.ts';

/** MySQL 8.2 brought SHOW BINARY LOG STATUS, 8.4 removed SHOW MASTER STATUS (MySQL release notes). */
export function showLogStatus(facts: ServerFacts): string {
  return facts.flavor === 'mysql' && facts.versionNumber >= 80_200 ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS';
}

/** MySQL 8.0.22 brought SHOW REPLICAS. */
export function showReplicas(facts: ServerFacts): string {
  return facts.flavor === 'mysql' && facts.versionNumber >= 80_022 ? 'SHOW REPLICAS' : 'SHOW SLAVE HOSTS';
}

/**
 * What makes a SELECT wait for whoever changed its rows, and what makes it leave out rows that somebody holds (MySQL 8.0.1, MariaDB
 * 10.6; undefined before). SELECT is all that it takes; MySQL before 8.0.22 asks for more in FOR SHARE.
 */
export function lockingClause(facts: ServerFacts): { readonly waiting: string; readonly skipping: string | undefined } {
  const waiting = ' LOCK IN SHARE MODE';
  if (facts.flavor === 'mysql')
    return { waiting, skipping: facts.versionNumber >= 80_022 ? ' FOR SHARE SKIP LOCKED' : undefined };
  return { waiting, skipping: facts.versionNumber >= 100_600 ? `${waiting} SKIP LOCKED` : undefined };
}

/** A name inside a statement. */
export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

export function quoteTable(ref: { readonly database: string; readonly table: string }): string {
  return `${quoteName(ref.database)}.${quoteName(ref.table)}`;
}

/**
 * Whether rows that a foreign key changes are in the log: on MySQL from 9.6 on, where the server itself follows foreign keys, unless the
 * engine is told to (innodb_native_foreign_keys; seen on 9.7). `variables` are global ones, that one among them.
 */
export function logsCascades(facts: ServerFacts, variables: ReadonlyMap<string, string>): boolean {
  return facts.flavor === 'mysql' && variables.get(NATIVE_FOREIGN_KEYS) === 'OFF';
}

export const NATIVE_FOREIGN_KEYS = 'innodb_native_foreign_keys';
