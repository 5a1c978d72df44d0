/** `mysync status`: from the running process where one answers, else from checkpoints and offsets. */
import type { Checkpoint } from '@mysync/checkpoint';
import { type Config, sourcesOf, topicOf } from '@mysync/config';
import { formatBinlogPosition, formatTableRef, type SourcePosition } from '@mysync/core';
import type { Transport } from '@mysync/transport';
import { type AppliedMarker, countByTable, type PartitionStatus } from '@mysync/writer';
import { readCheckpoint } from './checkpoints.ts';
import { groupOf, openLookedAtTransport, transportPlace } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig } from './context.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { count, errorText, table } from './output.ts';
import {
  countsText,
  type DeadLetterCount,
  deadLetters,
  merged,
  type SinkPlace,
  storedMarkers,
  type TableCounts,
  total,
} from './set-aside.ts';
import type { ProcessStatus } from './status-report.ts';

const ANSWER_MS = 2_000;

export interface SourceState {
  readonly source: string;
  /** `stopped` when no process answers. */
  readonly state: string;
  readonly detail: string;
  readonly epoch: number;
  readonly position: string | null;
  readonly checkpoint: string | null;
  readonly savedAt: string | null;
  readonly lagSeconds: number | null;
  readonly snapshot: string;
  readonly completeTables: readonly string[];
  /** Captured tables of which the log lacks rows; known of a running reader only. */
  readonly missingTables: readonly string[];
  /** Captured tables that are to be read again; known of a running reader only. */
  readonly resyncingTables: readonly string[];
}

export interface PartitionState {
  readonly partition: number;
  readonly state: string;
  readonly nextOffset: number | null;
  readonly endOffset: number;
  readonly backlog: number;
  readonly lagSeconds: number | null;
  /** Keys that are set aside; null where neither process nor sink says. */
  readonly parkedKeys: number | null;
  /** Since when rows that are gone from the source may stand in the sink (deletions that the log had forgotten); null when none do, or where neither process nor sink says. */
  readonly deletionsLostSince: string | null;
  /** The writer, of another process, stands before deletions that the log had forgotten, at this offset. */
  readonly standsBefore: number | null;
  readonly detail: string;
}

export interface SinkState {
  readonly sink: string;
  readonly source: string;
  /** Why the process here has no partitions that it might have; empty when it has, or none answers. */
  readonly detail: string;
  readonly partitions: readonly PartitionState[];
  /** Keys that are set aside, by table: of the partitions that tell. */
  readonly parked: TableCounts;
  /** null where they could not be read. */
  readonly deadLetters: DeadLetterCount | null;
}

export interface StatusReport {
  /** The process that answered, or null. */
  readonly process: { readonly version: string; readonly pid: number; readonly startedAt: string } | null;
  readonly sources: readonly SourceState[];
  readonly sinks: readonly SinkState[];
  /** Where topics are looked for: the folder of the embedded log, or brokers. */
  readonly topicsAt: string;
  /** What could not be found out. */
  readonly unknown: readonly { readonly part: string; readonly error: string }[];
}

export async function runStatus(context: CommandContext, options: CommonOptions & { json?: boolean }): Promise<void> {
  const { config } = requireConfig(context, options);
  const report = await statusReport(config);
  context.output.result(options.json === true ? `${JSON.stringify(report)}\n` : statusText(report));
  if (report.unknown.length > 0) throw new ExitRequest(EXIT.failed);
}

export async function statusReport(config: Config): Promise<StatusReport> {
  const live = await askProcess(config);
  const unknown: { part: string; error: string }[] = [];
  const sources: SourceState[] = [];
  for (const source of Object.keys(config.sources)) {
    try {
      sources.push(sourceState(source, live, await readCheckpoint(config, source)));
    } catch (error) {
      unknown.push({ part: `source ${source}`, error: errorText(error) });
    }
  }
  const sinks: SinkState[] = [];
  try {
    const transport = await openLookedAtTransport(config);
    try {
      for (const [sink, sinkConfig] of Object.entries(config.sinks)) {
        for (const source of sourcesOf(config, sinkConfig))
          sinks.push(await sinkState({ config, transport, live, unknown }, sink, source));
      }
    } finally {
      await transport.close();
    }
  } catch (error) {
    unknown.push({ part: 'transport', error: errorText(error) });
  }
  const process = live === null ? null : { version: live.version, pid: live.pid, startedAt: live.startedAt };
  return { process, sources, sinks, topicsAt: transportPlace(config), unknown };
}

/** null when nobody answers: then nothing runs here, or its telemetry is off. */
async function askProcess(config: Config): Promise<ProcessStatus | null> {
  const { enabled, host, port } = config.telemetry;
  if (!enabled || port === 0) return null;
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  try {
    const response = await fetch(`http://${address}:${port}/status`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const status: unknown = await response.json();
    return isProcessStatus(status) ? status : null;
  } catch {
    return null;
  }
}

function isProcessStatus(value: unknown): value is ProcessStatus {
  const status = value as Partial<ProcessStatus> | null;
  return typeof status?.pid === 'number' && Array.isArray(status.readers) && Array.isArray(status.writers);
}

function sourceState(source: string, live: ProcessStatus | null, checkpoint: Checkpoint | null): SourceState {
  const reader = live?.readers.find((each) => each.source === source);
  const place = (position: SourcePosition | null | undefined): string | null =>
    position === null || position === undefined || position.file === '' ? null : formatBinlogPosition(position);
  return {
    source,
    state: reader?.state ?? (checkpoint === null ? 'never started' : 'stopped'),
    detail: reader?.detail ?? '',
    epoch: reader?.epoch ?? checkpoint?.epoch ?? 0,
    position: place(reader?.position ?? null),
    checkpoint: place(reader?.checkpoint ?? checkpoint?.position),
    savedAt: checkpoint?.savedAt ?? null,
    lagSeconds: reader?.lagSeconds ?? null,
    snapshot: checkpoint?.snapshot.state ?? 'none',
    completeTables: reader?.completeTables ?? checkpoint?.snapshot.completeTables ?? [],
    missingTables: reader?.missingTables ?? [],
    resyncingTables: reader?.resyncingTables ?? (checkpoint?.snapshot.wantedTables ?? []).map(formatTableRef).sort(),
  };
}

interface Asking {
  readonly config: Config;
  readonly transport: Transport;
  readonly live: ProcessStatus | null;
  readonly unknown: { part: string; error: string }[];
}

async function sinkState(
  { config, transport, live, unknown }: Asking,
  sink: string,
  source: string,
): Promise<SinkState> {
  const writer = live?.writers.find((each) => each.sink === sink && each.source === source);
  const topic = topicOf(config, source);
  const described = await transport.describeTopic(topic);
  if (described === null) {
    return { sink, source, detail: '', partitions: [], parked: {}, deadLetters: { open: {}, records: 0 } };
  }
  const ranges = await transport.offsetRanges(topic);
  const committed = await transport.committedOffsets(topic, groupOf(config, sink, source));
  const place: SinkPlace = { config, sink, source, topic: described };
  // What a process here does not tell stands beside the sink's data.
  const elsewhere = [...ranges.keys()].filter(
    (each) => !writer?.partitions.some(({ partition }) => partition === each),
  );
  const told = async <T>(part: string, ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await ask();
    } catch (error) {
      unknown.push({ part, error: errorText(error) });
      return null;
    }
  };
  const stored = await told(`sink ${sink}`, async () => await storedMarkers(place, elsewhere));
  const letters = await told(`dead letters of sink ${sink}`, async () => await deadLetters(transport, place));
  const counts: TableCounts[] = [];
  const partitions = ranges.map((range, partition): PartitionState => {
    const marker = stored?.get(partition);
    const running = writer?.partitions.find((each) => each.partition === partition);
    counts.push(running?.parkedByTable ?? countByTable(marker?.parked ?? []));
    return partitionState({ partition, range, committed: committed[partition] ?? null, running, marker });
  });
  return { sink, source, detail: writer?.detail ?? '', partitions, parked: merged(counts), deadLetters: letters };
}

/** `running`: what a process here says; `marker`: what stands in the sink, null where it has none, undefined where nobody looked. */
export function partitionState({
  partition,
  range,
  committed,
  running,
  marker,
}: {
  readonly partition: number;
  readonly range: { readonly earliest: number; readonly end: number };
  readonly committed: number | null;
  readonly running: PartitionStatus | undefined;
  readonly marker: AppliedMarker | null | undefined;
}): PartitionState {
  const nextOffset = running?.nextOffset ?? committed;
  return {
    partition,
    state: running?.state ?? 'not here',
    nextOffset,
    endOffset: range.end,
    backlog: Math.max(0, range.end - Math.max(nextOffset ?? range.earliest, range.earliest)),
    lagSeconds: running?.lagSeconds ?? null,
    parkedKeys: running?.parkedKeys ?? (marker === undefined ? null : (marker?.parked?.length ?? 0)),
    deletionsLostSince: timeText(running?.deletionsLostSinceMs ?? marker?.lost?.foundMs ?? null),
    standsBefore: marker?.lost?.stoppedAt ?? null,
    detail: running?.detail ?? '',
  };
}

export function statusText(report: StatusReport): string {
  const text: string[] = [];
  const { process } = report;
  text.push(
    process === null
      ? 'No process answers here: this is what checkpoints and offsets say.'
      : `Process ${process.pid}, version ${process.version}, since ${process.startedAt}.`,
  );
  for (const source of report.sources) {
    text.push('', `source ${source.source}: ${source.state}${source.detail === '' ? '' : `: ${source.detail}`}`);
    const rows = [
      ['  position', source.position ?? '-'],
      ['  checkpoint', `${source.checkpoint ?? '-'}${source.savedAt === null ? '' : `, saved ${source.savedAt}`}`],
      ['  epoch', String(source.epoch)],
      ['  lag', seconds(source.lagSeconds)],
      ['  snapshot', source.snapshot],
      ['  complete tables', source.completeTables.length === 0 ? '-' : source.completeTables.join(', ')],
      ...(source.missingTables.length === 0 ? [] : [['  without all rows', source.missingTables.join(', ')] as const]),
      ...(source.resyncingTables.length === 0
        ? []
        : [['  being read again', source.resyncingTables.join(', ')] as const]),
    ];
    text.push(table(rows).trimEnd());
  }
  for (const sink of report.sinks) {
    text.push('', `sink ${sink.sink} of ${sink.source}:${sink.detail === '' ? '' : ` ${sink.detail}`}`);
    if (sink.partitions.length === 0) {
      text.push(`  no topic yet at ${report.topicsAt}`);
      continue;
    }
    const head = ['  partition', 'state', 'next', 'end', 'backlog', 'lag', ''];
    const rows = sink.partitions.map((each) => [
      `  ${each.partition}`,
      each.state,
      each.nextOffset === null ? '-' : String(each.nextOffset),
      String(each.endOffset),
      String(each.backlog),
      seconds(each.lagSeconds),
      each.detail.split('\n', 1)[0] ?? '',
    ]);
    text.push(table([head, ...rows]).trimEnd());
    const { parked, deadLetters: letters } = sink;
    const list = `mysync dlq list --sink ${sink.sink}`;
    if (total(parked) > 0) text.push(`  ${count(total(parked), 'key')} set aside (${countsText(parked)}): ${list}`);
    if (letters === null) text.push('  dead letters: unknown');
    else if (letters.open === null) text.push(`  ${count(letters.records, 'record')} of dead letters: ${list}`);
    else if (total(letters.open) > 0) {
      text.push(`  ${count(total(letters.open), 'dead letter')} (${countsText(letters.open)}): ${list}`);
    }
    for (const { partition, state, deletionsLostSince, standsBefore } of sink.partitions) {
      if (deletionsLostSince === null || state === 'halted') continue;
      const what =
        standsBefore === null
          ? `deleted rows may stand in the sink since ${deletionsLostSince}`
          : `stands before offset ${standsBefore}`;
      text.push(`  partition ${partition}: ${what}: mysync verify --repair --lost-deletions --sink ${sink.sink}`);
    }
    // Where and why a partition stands still, and what to do: all of it.
    for (const { partition, detail } of sink.partitions) {
      const [, ...more] = detail.split('\n');
      if (more.length > 0) text.push(`  partition ${partition}:`, ...more.map((line) => `  ${line}`));
    }
  }
  for (const { part, error } of report.unknown) text.push('', `${part}: unknown`, error);
  return `${text.join('\n')}\n`;
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function seconds(value: number | null): string {
  return value === null ? '-' : `${value.toFixed(1)} s`;
}
