/** What the next start of a reader would do, and whether checkpoint, server and topic let it. */
import type { Checkpoint } from '@mysync/checkpoint';
import type { Config } from '@mysync/config';
import { type Finding, formatBinlogPosition, formatTableRef, type TableRef, tableRefKey } from '@mysync/core';
import { belongingErrors, leftTables, readerErrors, uncertainTable } from '@mysync/reader';
import type { BinlogSource, StartIntent } from '@mysync/source-mysql';
import type { Transport } from '@mysync/transport';
import { readCheckpoint } from './checkpoints.ts';
import { required, startAt } from './compose.ts';
import { errorFinding } from './output.ts';

export interface SourceStart {
  /** undefined: it cannot be read. null: there is none. */
  readonly loaded: Checkpoint | null | undefined;
  /** null: the server did not tell. */
  readonly serverUuid: string | null;
}

export async function loadCheckpoint(
  config: Config,
  source: string,
): Promise<{
  readonly loaded: Checkpoint | null | undefined;
  readonly intent: StartIntent | undefined;
  readonly finding: Finding;
}> {
  try {
    const loaded = await readCheckpoint(config, source);
    const message =
      loaded === null
        ? `no checkpoint yet: begins with start: ${required(config.sources, source).start}`
        : loaded.snapshot.state === 'running'
          ? `checkpoint of a start that has not got its snapshot to the end, saved ${loaded.savedAt}`
          : `checkpoint at ${formatBinlogPosition(loaded.position)}, saved ${loaded.savedAt}`;
    const finding: Finding = { level: 'ok', code: 'CHECKPOINT_INVALID', message, remedy: '' };
    return { loaded, intent: intentOf(config, source, loaded), finding };
  } catch (error) {
    return { loaded: undefined, intent: undefined, finding: errorFinding(error) };
  }
}

/** As the reader decides it: a snapshot that was not finished is begun anew. */
function intentOf(config: Config, source: string, loaded: Checkpoint | null): StartIntent {
  if (loaded !== null && loaded.snapshot.state !== 'running') {
    return { snapshot: false, resume: { position: loaded.position, serverUuid: loaded.serverUuid } };
  }
  const start = startAt(config, source);
  return {
    snapshot: start === 'snapshot',
    resume: typeof start === 'string' ? null : { position: { ...start, gtidSet: '' }, serverUuid: null },
  };
}

/** Tables that consumers may hold rows of, and that are not captured any more, or cannot be seen: a start says the same. */
export async function knownTableFindings(
  source: BinlogSource,
  loaded: Checkpoint | null | undefined,
  captured: readonly TableRef[],
): Promise<readonly Finding[]> {
  const there = new Set(captured.map(tableRefKey));
  const absent = (loaded?.snapshot.knownTables ?? []).filter((table) => !there.has(tableRefKey(table)));
  if (absent.length === 0) return [];
  const fates = await source.fates(absent);
  const left = fates.filter(({ fate }) => fate === 'left').map(({ table }) => formatTableRef(table));
  const uncertain = fates.flatMap((found) => (found.fate === 'uncertain' ? [uncertainTable(found)] : []));
  const warnings = left.length === 0 ? uncertain : [leftTables(left), ...uncertain];
  return warnings.map(({ code, message, remedy }) => ({ level: 'warning', code, message, remedy }));
}

/** A topic that is not there yet is no news before the first start. */
export function firstStart(finding: Finding, topic: string, { loaded }: SourceStart): Finding {
  if (finding.code !== 'TRANSPORT_TOPIC_MISSING' || loaded !== null) return finding;
  const message = `topic '${topic}' is not there yet: it will be made at the first start`;
  return { level: 'ok', code: finding.code, message, remedy: '' };
}

/** What a start would refuse, with its own errors. */
export async function topicFindings(
  transport: Transport,
  source: string,
  name: string,
  { loaded, serverUuid }: SourceStart,
): Promise<readonly Finding[]> {
  if (loaded === undefined) return [];
  const topic = await transport.describeTopic(name);
  if (topic === null) {
    if (loaded === null) return [];
    const message = `the checkpoint is of topic '${loaded.topic.name}' with id ${loaded.topic.id}; there is no topic '${name}'`;
    return [errorFinding(readerErrors.READER_TOPIC_CHANGED({ message, where: { source, topic: name } }))];
  }
  const ranges = await transport.offsetRanges(name);
  // Of an unknown server nothing is said.
  const known = serverUuid ?? loaded?.serverUuid ?? '';
  const errors = belongingErrors({ sourceName: source, loaded, serverUuid: known, topic, ranges });
  if (errors.length > 0) return errors.map(errorFinding);
  const message = loaded === null ? `topic '${name}' is empty` : 'checkpoint, server and topic belong together';
  return [{ level: 'ok', code: 'READER_TOPIC_CHANGED', message, remedy: '' }];
}
