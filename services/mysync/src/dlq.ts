/** `mysync dlq`: changes that a sink could not take: list, show, retry, discard. */
import { hostname, userInfo } from 'node:os';
import { type Config, sourcesOf, topicOf } from '@mysync/config';
import { formatTableRef, silentLogger, systemClock } from '@mysync/core';
import { createMetrics } from '@mysync/telemetry';
import type { Transport } from '@mysync/transport';
import { type Json, MessageDecoder, messageToJson, payloadOf } from '@mysync/wire';
import {
  type Act,
  type ActItem,
  type DeskResult,
  LetterBox,
  type ParkedKey,
  PoisonDesk,
  parkedName,
  parkedRow,
  readRecord,
  type StoredLetter,
} from '@mysync/writer';
import { deadLetterSpec, openSink, openTransport } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { requireName } from './names.ts';
import { count, table } from './output.ts';

export interface DlqOptions extends CommonOptions {
  readonly sink?: string;
  readonly source?: string;
  /** Only rows of this table, as DATABASE.TABLE. */
  readonly table?: string;
  readonly json?: boolean;
}

export interface DlqActOptions extends DlqOptions {
  readonly all?: boolean;
}

/** One change that a sink could not take. */
export interface DlqItem {
  /** SOURCE/PARTITION/OFFSET, of the change that was refused first. */
  readonly id: string;
  readonly kind: 'parked' | 'dead-letter';
  readonly sink: string;
  readonly source: string;
  readonly partition: number;
  readonly offset: number;
  readonly table: string;
  readonly key: string;
  /** What the newest change of the key does. */
  readonly operation: 'put' | 'delete';
  readonly newestOffset: number;
  readonly waiting: number;
  readonly since: string;
  readonly code: string;
  readonly reason: string;
}

type Found = { readonly item: DlqItem } & ({ readonly parked: ParkedKey } | { readonly letter: StoredLetter });

/** One source of the sink. */
interface Stream {
  readonly sink: string;
  readonly source: string;
  readonly box: LetterBox;
  readonly found: readonly Found[];
  readonly acts: readonly Act[];
  desk(partition: number): PoisonDesk;
}

export async function runDlqList(
  context: CommandContext,
  options: DlqOptions & { readonly acts?: boolean },
): Promise<void> {
  await withStreams(context, options, async (streams) => {
    const { result } = context.output;
    if (options.acts === true) {
      const acts = streams.flatMap((stream) => stream.acts);
      result(options.json === true ? `${JSON.stringify(acts)}\n` : actsText(acts));
      return;
    }
    const items = streams.flatMap(({ found }) => found.map(({ item }) => item));
    result(options.json === true ? `${JSON.stringify(items)}\n` : itemsText(items, options));
  });
}

export async function runDlqShow(context: CommandContext, id: string, options: DlqOptions): Promise<void> {
  await withStreams(context, options, async (streams, transport, config) => {
    requireOneSink(context, id, streams);
    for (const { found, acts, source, sink } of streams) {
      for (const each of found) {
        if (each.item.id !== id) continue;
        const { partition, newestOffset } = each.item;
        const record =
          'letter' in each
            ? await readRecord(
                { transport, topic: deadLetterSpec(config, sink, source).name, partition },
                each.letter.at,
              )
            : await readRecord({ transport, topic: topicOf(config, source), partition }, newestOffset);
        const payload = record === null ? null : payloadOf(record);
        const message: Json = payload === null ? null : messageToJson(new MessageDecoder().decode(payload));
        const done = acts.filter((act) => act.items.some((item) => item.id === id));
        context.output.result(`${JSON.stringify({ ...each.item, message, acts: done }, null, 2)}\n`);
        return;
      }
    }
  });
}

export async function runDlqAct(
  context: CommandContext,
  act: Act['act'],
  ids: readonly string[],
  options: DlqActOptions,
): Promise<void> {
  if ((ids.length === 0) === (options.all !== true && options.table === undefined)) {
    const message = ids.length === 0 ? 'which changes is not said' : 'ids and --all or --table are said';
    const remedy = 'Give ids (mysync dlq list shows them), or --all, or --table DATABASE.TABLE.';
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy }));
  }
  const results: (DlqItem & { readonly result: DeskResult['result'] })[] = [];
  await withStreams(context, options, async (streams) => {
    for (const id of ids) requireOneSink(context, id, streams);
    for (const stream of streams) {
      const chosen = stream.found.filter(({ item }) => ids.length === 0 || ids.includes(item.id));
      if (chosen.length > 0) results.push(...(await actOn(stream, act, chosen)));
    }
  });
  const { result } = context.output;
  if (options.json === true) result(`${JSON.stringify(results)}\n`);
  else result(resultsText(results));
  if (results.some((each) => each.result === 'refused' || each.result === 'gone')) throw new ExitRequest(EXIT.failed);
}

async function actOn(
  stream: Stream,
  act: Act['act'],
  chosen: readonly Found[],
): Promise<(DlqItem & { readonly result: DeskResult['result'] })[]> {
  const record = (phase: Act['phase'], items: readonly ActItem[]): Promise<void> =>
    stream.box.record([
      {
        format: 1,
        act,
        phase,
        by: `${userInfo().username}@${hostname()}`,
        atMs: systemClock.now(),
        sink: stream.sink,
        source: stream.source,
        items,
      },
    ]);
  await record(
    'asked',
    chosen.map(({ item }) => actItem(item)),
  );
  const done: (DlqItem & { readonly result: DeskResult['result'] })[] = [];
  for (const partition of new Set(chosen.map(({ item }) => item.partition))) {
    const here = chosen.filter(({ item }) => item.partition === partition);
    const offsets = new Set(here.filter((each) => 'parked' in each).map(({ item }) => item.offset));
    const letters = here.flatMap((each) => ('letter' in each ? [each.letter] : []));
    const desk = stream.desk(partition);
    const isChosen = (entry: ParkedKey): boolean => offsets.has(entry.first);
    const parked = offsets.size === 0 ? [] : await desk[act === 'retry' ? 'release' : 'discard'](isChosen);
    const reapplied = act === 'retry' && letters.length > 0 ? await desk.reapply(letters) : [];
    for (const { item } of here) {
      const results = item.kind === 'parked' ? parked : reapplied;
      const found = results.find(({ first }) => first === item.offset);
      // A parked key that is not there any more: its table was cleared, or somebody else was faster.
      const result = found?.result ?? (act === 'discard' ? 'discarded' : 'superseded');
      done.push({ ...item, ...(found === undefined ? {} : { code: found.code, reason: found.reason }), result });
    }
  }
  await record(
    'done',
    done.map((each) => ({ ...actItem(each), result: each.result })),
  );
  return done;
}

function actItem({ id, kind, partition, offset, table: name, key, code }: DlqItem): ActItem {
  return { id, kind, partition, offset, row: `${name} ${key}`, code };
}

async function withStreams(
  context: CommandContext,
  options: DlqOptions,
  use: (streams: readonly Stream[], transport: Transport, config: Config) => Promise<void>,
): Promise<void> {
  const { config } = requireConfig(context, options);
  const { signal } = context;
  if (options.sink !== undefined) requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  if (options.source !== undefined) requireName(context, 'source', options.source, Object.keys(config.sources));
  const closers: (() => Promise<void>)[] = [];
  try {
    const parts = { logger: silentLogger, metrics: createMetrics(), maintenance: false };
    const transport = await openTransport(config, parts);
    closers.push(() => transport.close());
    const streams: Stream[] = [];
    for (const [sink, sinkConfig] of Object.entries(config.sinks)) {
      if (options.sink !== undefined && options.sink !== sink) continue;
      for (const source of sourcesOf(config, sinkConfig)) {
        if (options.source !== undefined && options.source !== source) continue;
        const opened = await openStream(config, transport, { sink, source, table: options.table, signal }, closers);
        if (opened !== null) streams.push(opened);
      }
    }
    await use(streams, transport, config);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function openStream(
  config: Config,
  transport: Transport,
  chosen: { readonly sink: string; readonly source: string; readonly table: string | undefined; signal: AbortSignal },
  closers: (() => Promise<void>)[],
): Promise<Stream | null> {
  const { sink: sinkName, source, signal } = chosen;
  const topic = await transport.describeTopic(topicOf(config, source));
  if (topic === null) return null;
  const sink = await openSink(config, sinkName, source, silentLogger);
  closers.push(() => sink.close());
  const spec = { ...deadLetterSpec(config, sinkName, source), partitions: topic.partitions };
  const box = new LetterBox({ transport, spec, sink: sinkName, source, signal });
  const desk = (partition: number): PoisonDesk =>
    new PoisonDesk({
      sink,
      sinkName,
      log: transport,
      topic,
      partition,
      compacted: config.transport.compacted,
      letterRecord: ({ at }) => readRecord({ transport, topic: spec.name, partition }, at),
      clock: systemClock,
      signal,
    });
  const { open, acts } = await box.read();
  const found: Found[] = [];
  for (let partition = 0; partition < topic.partitions; partition += 1) {
    for (const entry of await desk(partition).parked()) {
      found.push({ item: parkedItem(entry, { sink: sinkName, source, partition }), parked: entry });
    }
  }
  for (const letter of open) found.push({ item: letterItem(letter), letter });
  const { table: only } = chosen;
  return {
    sink: sinkName,
    source,
    box,
    acts,
    desk,
    found: only === undefined ? found : found.filter(({ item }) => item.table === only),
  };
}

function parkedItem(
  entry: ParkedKey,
  place: { readonly sink: string; readonly source: string; readonly partition: number },
): DlqItem {
  return {
    id: `${place.source}/${place.partition}/${entry.first}`,
    kind: 'parked',
    ...place,
    offset: entry.first,
    ...rowOf(entry.key),
    operation: entry.operation,
    newestOffset: entry.offset,
    waiting: entry.waiting,
    since: new Date(entry.sinceMs).toISOString(),
    code: entry.code,
    reason: entry.reason,
  };
}

function letterItem({ key, letter }: StoredLetter): DlqItem {
  const { sink, source, partition, offset, operation, code, reason, atMs } = letter;
  return {
    id: `${source}/${partition}/${offset}`,
    kind: 'dead-letter',
    sink,
    source,
    partition,
    offset,
    ...rowOf(Buffer.from(key, 'latin1').toString('base64')),
    operation,
    newestOffset: offset,
    waiting: 0,
    since: new Date(atMs).toISOString(),
    code,
    reason,
  };
}

function rowOf(key: string): { table: string; key: string } {
  const name = formatTableRef(parkedRow({ key }));
  return { table: name, key: parkedName({ key }).slice(name.length + 1) };
}

/** Ends the command when no sink has a change of this id, or several have: an id names a change of the log, which each sink takes or refuses for itself. */
function requireOneSink(context: CommandContext, id: string, streams: readonly Stream[]): void {
  const sinks = streams.filter(({ found }) => found.some(({ item }) => item.id === id)).map(({ sink }) => sink);
  if (sinks.length === 0) {
    const message = `there is no change '${id}' that a sink could not take`;
    const remedy = 'mysync dlq list shows the ids; one that was settled meanwhile is not there any more.';
    usageError(context, commandErrors.COMMAND_NAME_UNKNOWN({ message, remedy, where: { id } }));
  }
  if (sinks.length > 1) {
    const message = `several sinks could not take the change '${id}': which one is meant is not said`;
    const remedy = `Add --sink with one of: ${sinks.join(', ')}. (To act on all of them: once with each.)`;
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy, where: { id } }));
  }
}

function itemsText(items: readonly DlqItem[], { sink, source, table: only }: DlqOptions): string {
  if (items.length === 0) {
    const isAll = sink === undefined && source === undefined && only === undefined;
    return isAll ? 'Nothing: the sinks took every change.\n' : 'Nothing of what was asked for is set aside.\n';
  }
  const head = ['id', 'sink', 'kind', 'row', 'waiting', 'since', 'why'];
  const rows = items.map((each) => [
    each.id,
    each.sink,
    each.kind,
    `${each.table} ${each.key}`,
    String(each.waiting),
    each.since,
    `${each.code}: ${each.reason.split('\n', 1)[0] ?? ''}`,
  ]);
  return table([head, ...rows]);
}

function resultsText(results: readonly (DlqItem & { readonly result: DeskResult['result'] })[]): string {
  if (results.length === 0) return 'Nothing to do.\n';
  const rows = results.map((each) => [
    each.id,
    `${each.table} ${each.key}`,
    each.result,
    each.result === 'refused' || each.result === 'gone' ? explain(each) : '',
  ]);
  return `${table(rows)}${count(results.length, 'change')}\n`;
}

function explain({ result, code, reason }: { result: DeskResult['result']; code: string; reason: string }): string {
  if (result === 'refused') return `${code}: ${reason}`;
  return 'its newest state is not in the log any more: change the row in the source, then retry; or discard';
}

function actsText(acts: readonly Act[]): string {
  if (acts.length === 0) return 'Nobody has retried or discarded anything.\n';
  const head = ['when', 'who', 'what', 'phase', 'id', 'row', 'result'];
  const rows = acts.flatMap((act) =>
    act.items.map((item) => [
      new Date(act.atMs).toISOString(),
      act.by,
      act.act,
      act.phase,
      item.id,
      item.row,
      item.result ?? '',
    ]),
  );
  return table([head, ...rows]);
}
