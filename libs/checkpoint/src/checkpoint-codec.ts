/**
 * The text form of a checkpoint: two lines of JSON.
 *
 *     {"format":"mysync-checkpoint","version":1,"bytes":1234,"sha256":"…"}
 *     {"source":"shop","position":{…},…}
 *
 * The first line names the form and holds length and checksum of the second, so that a truncated, foreign or damaged text is
 * never taken for a checkpoint. Parsing is strict: every field there, of its type, and no other.
 */
import { createHash } from 'node:crypto';
import type { ChangeId, SourcePosition, TableRef } from '@mysync/core';
import { checkpointErrors } from './errors.ts';
import type { Checkpoint, CounterFloor, PartitionCheckpoint, SnapshotState } from './port.ts';
import type { SchemaHistoryHead } from './schema-history.ts';

const FORMAT = 'mysync-checkpoint';
const VERSION = 1;

export function encodeCheckpoint(checkpoint: Checkpoint): string {
  const body = JSON.stringify(checkpoint);
  const header = { format: FORMAT, version: VERSION, bytes: Buffer.byteLength(body), sha256: sha256(body) };
  return `${JSON.stringify(header)}\n${body}\n`;
}

/** Throws CHECKPOINT_INVALID; `where` says from where the text is. */
export function parseCheckpoint(text: string, where: string): Checkpoint {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
    throw checkpointErrors.CHECKPOINT_INVALID({
      message: `what is stored is not a checkpoint of ours: ${error.message}`,
      where: { path: where },
    });
  }
}

/** Why a text is not a checkpoint. Never leaves this file. */
class Unfit extends Error {}

function parse(text: string): Checkpoint {
  if (text === '') throw new Unfit('it is empty');
  const lineEnd = text.indexOf('\n');
  const header = fields(json(lineEnd < 0 ? text : text.slice(0, lineEnd), 'header'), 'header', [
    'format',
    'version',
    'bytes',
    'sha256',
  ]);
  if (header['format'] !== FORMAT)
    throw new Unfit(`its format is ${JSON.stringify(header['format'])}, not '${FORMAT}'`);
  if (header['version'] !== VERSION) {
    throw new Unfit(`its version is ${JSON.stringify(header['version'])}; this program reads version ${VERSION}`);
  }
  const body = lineEnd < 0 ? '' : text.slice(lineEnd + 1);
  const bytes = Buffer.byteLength(body) - 1;
  if (header['bytes'] !== bytes || !body.endsWith('\n')) {
    throw new Unfit(
      `it holds ${bytes} bytes where its header says ${JSON.stringify(header['bytes'])}: truncated or extended`,
    );
  }
  const content = body.slice(0, -1);
  if (header['sha256'] !== sha256(content)) throw new Unfit('its checksum does not fit: damaged or edited');
  return checkpoint(json(content, 'checkpoint'));
}

function checkpoint(value: unknown): Checkpoint {
  // checkpoints from before there was a schema history go with none
  const known =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? { schemaHistory: null, ...value } : value;
  const c = fields(
    known,
    'checkpoint',
    [
      'source',
      'position',
      'serverUuid',
      'transactionCounter',
      'epoch',
      'producer',
      'topic',
      'configFingerprint',
      'partitions',
      'snapshot',
      'schemaHistory',
      'savedAt',
    ],
    ['floors'],
  );
  const topic = fields(c['topic'], 'topic', ['name', 'id', 'partitions']);
  const partitions = list(c['partitions'], 'partitions').map(partition);
  if (partitions.length !== topic['partitions']) {
    throw new Unfit(
      `it holds ${partitions.length} partitions of a topic that has ${JSON.stringify(topic['partitions'])}`,
    );
  }
  return {
    source: text(c['source'], 'source'),
    position: position(c['position']),
    serverUuid: text(c['serverUuid'], 'serverUuid'),
    transactionCounter: integer(c['transactionCounter'], 'transactionCounter'),
    epoch: integer(c['epoch'], 'epoch'),
    producer: producer(c['producer']),
    topic: {
      name: text(topic['name'], 'topic.name'),
      id: text(topic['id'], 'topic.id'),
      partitions: integer(topic['partitions'], 'topic.partitions'),
    },
    configFingerprint: text(c['configFingerprint'], 'configFingerprint'),
    partitions,
    snapshot: snapshot(c['snapshot']),
    ...(c['floors'] === undefined ? {} : { floors: list(c['floors'], 'floors').map(floor) }),
    schemaHistory: schemaHistory(c['schemaHistory']),
    savedAt: text(c['savedAt'], 'savedAt'),
  };
}

function position(value: unknown): SourcePosition {
  const p = fields(value, 'position', ['file', 'offset', 'gtidSet'], ['fileCreated']);
  const created = p['fileCreated'];
  return {
    file: text(p['file'], 'position.file'),
    offset: integer(p['offset'], 'position.offset'),
    gtidSet: text(p['gtidSet'], 'position.gtidSet'),
    ...(created === undefined ? {} : { fileCreated: integer(created, 'position.fileCreated') }),
  };
}

function producer(value: unknown): Checkpoint['producer'] {
  if (value === null) return null;
  const p = fields(value, 'producer', ['id', 'epoch']);
  return { id: text(p['id'], 'producer.id'), epoch: integer(p['epoch'], 'producer.epoch') };
}

function partition(value: unknown, index: number): PartitionCheckpoint {
  const at = `partitions.${index}`;
  const p = fields(value, at, ['epoch', 'generation', 'sequence', 'offset', 'change']);
  return {
    epoch: integer(p['epoch'], `${at}.epoch`),
    generation: integer(p['generation'], `${at}.generation`),
    sequence: integer(p['sequence'], `${at}.sequence`),
    offset: integer(p['offset'], `${at}.offset`, -1),
    change: change(p['change'], `${at}.change`),
  };
}

function change(value: unknown, at: string): ChangeId {
  const c = fields(value, at, ['file', 'offset', 'gtid', 'ordinal']);
  return {
    file: text(c['file'], `${at}.file`),
    offset: integer(c['offset'], `${at}.offset`),
    gtid: text(c['gtid'], `${at}.gtid`),
    ordinal: integer(c['ordinal'], `${at}.ordinal`),
  };
}

function floor(value: unknown, index: number): CounterFloor {
  const at = `floors.${index}`;
  const f = fields(value, at, ['file', 'offset', 'transactionCounter']);
  return {
    file: text(f['file'], `${at}.file`),
    offset: integer(f['offset'], `${at}.offset`),
    transactionCounter: integer(f['transactionCounter'], `${at}.transactionCounter`),
  };
}

function snapshot(value: unknown): SnapshotState {
  const s = fields(value, 'snapshot', ['state', 'completeTables'], ['wantedTables', 'knownTables']);
  const state = s['state'];
  if (state !== 'none' && state !== 'running' && state !== 'done') {
    throw new Unfit(`snapshot.state is ${JSON.stringify(state)}`);
  }
  return {
    state,
    completeTables: list(s['completeTables'], 'snapshot.completeTables').map((table) => text(table, 'table')),
    ...tableRefs(s, 'wantedTables'),
    ...tableRefs(s, 'knownTables'),
  };
}

function tableRefs<K extends string>(snapshot: Record<string, unknown>, key: K): { readonly [k in K]?: TableRef[] } {
  const value = snapshot[key];
  if (value === undefined) return {};
  const refs = list(value, `snapshot.${key}`).map((each, i) => tableRef(each, `snapshot.${key}.${i}`));
  return { [key]: refs } as { readonly [k in K]?: TableRef[] };
}

function tableRef(value: unknown, at: string): TableRef {
  const t = fields(value, at, ['database', 'table']);
  return { database: text(t['database'], `${at}.database`), table: text(t['table'], `${at}.table`) };
}

function schemaHistory(value: unknown): SchemaHistoryHead | null {
  if (value === null) return null;
  const h = fields(value, 'schemaHistory', ['id', 'sequence']);
  return { id: text(h['id'], 'schemaHistory.id'), sequence: integer(h['sequence'], 'schemaHistory.sequence') };
}

function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

function json(content: string, what: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    throw new Unfit(`its ${what} is not JSON`);
  }
}

/** The object with exactly these fields. */
function fields(
  value: unknown,
  at: string,
  names: readonly string[],
  optional: readonly string[] = [],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Unfit(`${at} is not an object`);
  const missing = names.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw new Unfit(`${at} has no ${missing}`);
  const unknown = Object.keys(value).find((name) => !names.includes(name) && !optional.includes(name));
  if (unknown !== undefined) throw new Unfit(`${at} has an unknown field ${JSON.stringify(unknown)}`);
  return value as Record<string, unknown>;
}

function list(value: unknown, at: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Unfit(`${at} is not a list`);
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== 'string') throw new Unfit(`${at} is not text`);
  return value;
}

function integer(value: unknown, at: string, min = 0): number {
  if (!Number.isSafeInteger(value) || (value as number) < min) {
    throw new Unfit(`${at} is ${JSON.stringify(value)}, not a whole number from ${min} on`);
  }
  return value as number;
}
