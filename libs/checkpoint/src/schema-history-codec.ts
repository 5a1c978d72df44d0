/**
 * The text form of a schema history: a line for its head, then one for each addition, each behind a checksum of its own.
 *
 *     1f0c9a… {"format":"mysync-schema-history","version":1,"id":"…","sequence":0}
 *     88e1b2… {"sequence":1,"entries":[{"position":{…},"table":{…},"kind":"…","body":{…},"recordedAt":"…"}]}
 *
 * A last line without its end was never confirmed (its writer died): it does not count. Any other line that does not fit is damage.
 */
import { createHash } from 'node:crypto';
import { checkpointErrors } from './errors.ts';
import type { SchemaHistory, SchemaHistoryEntry, SchemaHistoryHead } from './schema-history.ts';

const FORMAT = 'mysync-schema-history';
const VERSION = 1;
const CHECKSUM_DIGITS = 16;

export function encodeHead(head: SchemaHistoryHead): string {
  return line({ format: FORMAT, version: VERSION, ...head });
}

export function encodeAddition(sequence: number, entries: readonly SchemaHistoryEntry[]): string {
  return line({ sequence, entries });
}

export function encodeHistory({ head, entries }: SchemaHistory): string {
  return entries.length === 0 ? encodeHead(head) : encodeHead(head) + encodeAddition(head.sequence, entries);
}

/** Throws SCHEMA_HISTORY_INVALID; `where` says from where the text is. */
export function parseHistory(text: string, where: string): SchemaHistory {
  const lines = text.split('\n');
  lines.pop(); // what stands behind the last line's end: nothing, or a line that was never confirmed
  const entries: SchemaHistoryEntry[] = [];
  let head: SchemaHistoryHead | undefined;
  for (const [index, content] of lines.entries()) {
    const value = readLine(content);
    const sequence = value?.['sequence'];
    if (value === undefined || typeof sequence !== 'number') throw invalid(`line ${index + 1} is damaged`, where);
    if (head === undefined) {
      if (value['format'] !== FORMAT || value['version'] !== VERSION || typeof value['id'] !== 'string') {
        throw invalid(`its format is ${JSON.stringify(value['format'])} ${JSON.stringify(value['version'])}`, where);
      }
      head = { id: value['id'], sequence };
      continue;
    }
    const added = value['entries'];
    if (!Array.isArray(added) || !added.every(isEntry)) throw invalid(`line ${index + 1} holds no entries`, where);
    entries.push(...added);
    head = { id: head.id, sequence: Math.max(head.sequence, sequence) };
  }
  if (head === undefined) throw invalid('it is empty', where);
  return { head, entries };
}

function line(value: unknown): string {
  const json = JSON.stringify(value);
  return `${checksum(json)} ${json}\n`;
}

function checksum(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, CHECKSUM_DIGITS);
}

function readLine(content: string): Readonly<Record<string, unknown>> | undefined {
  const json = content.slice(CHECKSUM_DIGITS + 1);
  if (content.slice(0, CHECKSUM_DIGITS) !== checksum(json)) return undefined;
  const value: unknown = JSON.parse(json);
  return isRecord(value) ? value : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEntry(value: unknown): value is SchemaHistoryEntry {
  if (!isRecord(value)) return false;
  const { position, table, kind, body, recordedAt } = value;
  if (!isRecord(position) || typeof position['file'] !== 'string' || typeof position['offset'] !== 'number')
    return false;
  if (!isRecord(table) || typeof table['database'] !== 'string' || typeof table['table'] !== 'string') return false;
  return typeof kind === 'string' && isRecord(body) && typeof recordedAt === 'string';
}

function invalid(what: string, where: string): Error {
  return checkpointErrors.SCHEMA_HISTORY_INVALID({
    message: `what is stored is not a schema history of ours: ${what}`,
    where: { path: where },
  });
}
