/** Legal names for indices, fields and documents; all but lower-casing reversible, so that no two names become one. */
import { createHash } from 'node:crypto';
import { formatTableRef, type TableRef } from '@mysync/core';
import { mappingErrors, parseTemplate } from '@mysync/mapping';
import { elasticsearchErrors } from './errors.ts';

const MAX_NAME_BYTES = 255;
const MAX_ID_BYTES = 512;
/** Elasticsearch refuses these in index names (besides capitals); `%` is ours. */
const INDEX_ESCAPES = /[\\/*?"<>| ,#:%\p{Cc}]/gu;
/** Names of metadata fields, which no document may hold (those of plugins too). */
const METADATA_FIELDS = new Set([
  '_id',
  '_index',
  '_source',
  '_type',
  '_uid',
  '_routing',
  '_version',
  '_seq_no',
  '_primary_term',
  '_field_names',
  '_ignored',
  '_ignored_source',
  '_doc_count',
  '_nested_path',
  '_tier',
  '_tsid',
  '_ts_routing_hash',
  '_size',
  '_feature',
  '_data_stream_timestamp',
  '_inference_fields',
  '_none',
  '_all',
  '_parent',
  '_timestamp',
  '_ttl',
]);

/** The index of a table: lower-cased, other illegal characters as `%` and two hex digits per byte. */
export function indexName(template: string, table: TableRef): string {
  let name = '';
  for (const part of parseTemplate(template)) {
    if (part.kind === 'text') name += part.text;
    else if (part.kind === 'database') name += percentEncoded(table.database, INDEX_ESCAPES);
    else if (part.kind === 'table') name += percentEncoded(table.table, INDEX_ESCAPES);
    else {
      throw mappingErrors.MAPPING_TEMPLATE_INVALID({
        message: `index template '${template}': only {database} and {table} name an index`,
        where: { template, table: formatTableRef(table) },
      });
    }
  }
  const legal = name.replace(/^[-_+.]/, (char) => percentEncoded(char, /./gu)).toLowerCase();
  if (legal === '' || Buffer.byteLength(legal) > MAX_NAME_BYTES || /[\\/*?"<>| ,#:]/.test(legal)) {
    throw elasticsearchErrors.ES_INDEX_NAME_INVALID({
      message: `'${legal}' cannot name an index`,
      where: { template, table: formatTableRef(table) },
    });
  }
  return legal;
}

/** The field of a column: a dot would make an object of it, and metadata names are refused. */
export function fieldName(name: string): string {
  if (METADATA_FIELDS.has(name)) return `%5F${name.slice(1)}`;
  const escaped = name.includes('.') || name.includes('%') ? percentEncoded(name, /[.%]/gu) : name;
  return escaped.trim() === '' ? percentEncoded(escaped, /./gsu) : escaped;
}

/**
 * A document's id from the key's text. Reversible but for the hash: `~` alone stands for the empty text (Elasticsearch
 * takes no empty id), `~~` begins a text that begins with `~`, `~` and 64 hex digits stand for one of over 512 bytes.
 * Undefined when it is too long and must not be hashed.
 */
export function documentId(text: string, longIds: 'hash' | 'refuse'): string | undefined {
  const first = text.charCodeAt(0);
  const id = first === 0x7e ? `~${text}` : text === '' ? '~' : text;
  if (id.length * 3 <= MAX_ID_BYTES || Buffer.byteLength(id) <= MAX_ID_BYTES) return id;
  return longIds === 'hash' ? `~${createHash('sha256').update(text).digest('hex')}` : undefined;
}

function percentEncoded(text: string, what: RegExp): string {
  return text.replace(what, (char) => {
    let hex = '';
    for (const byte of Buffer.from(char)) hex += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    return hex;
  });
}
