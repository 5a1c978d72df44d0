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

/** A name inside a statement. */
export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

export function quoteTable(ref: { readonly database: string; readonly table: string }): string {
  return `${quoteName(ref.database)}.${quoteName(ref.table)}`;
}
