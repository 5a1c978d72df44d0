/** `mysync ddl`: what stopped a reader for somebody's word, and that word. */
import { hostname, userInfo } from 'node:os';
import { text } from 'node:stream/consumers';
import { type BinlogPosition, isMysyncError, parseBinlogPosition, silentLogger } from '@mysync/core';
import { answerQuestion, type DdlAnswer, describeHistory, requireOpenQuestion } from '@mysync/source-mysql';
import { createLogger, createMetrics } from '@mysync/telemetry';
import { openCheckpoints, readSchemaHistory } from './checkpoints.ts';
import { openQuietTransport, sourceOptions } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { chooseSource, readGiven } from './names.ts';
import { count, table } from './output.ts';

interface DdlOptions extends CommonOptions {
  readonly source?: string;
}

interface QuestionOptions extends DdlOptions {
  readonly position: string;
  readonly table: string;
}

export async function runDdlList(
  context: CommandContext,
  options: DdlOptions & { readonly open?: boolean; readonly json?: boolean },
): Promise<void> {
  const { config } = requireConfig(context, options);
  const source = chooseSource(context, Object.keys(config.sources), options.source);
  const stored = await readSchemaHistory(config, source);
  const lines = describeHistory(stored?.entries ?? []).filter((line) => options.open !== true || line.kind === 'open');
  if (options.json === true) {
    context.output.result(`${JSON.stringify({ source, entries: lines })}\n`);
    return;
  }
  const open = lines.filter((line) => line.kind === 'open').length;
  const rows = lines.map((line) => [line.position, line.table, line.kind, line.recordedAt, short(line.text)]);
  if (rows.length > 0) context.output.result(table([['position', 'table', 'kind', 'recorded', ''], ...rows]));
  context.output.result(`${count(open, 'open question')}\n`);
}

export async function runDdlAccept(
  context: CommandContext,
  options: QuestionOptions & { readonly definition?: string; readonly fromCatalogue?: boolean },
): Promise<void> {
  const { definition, fromCatalogue } = options;
  if ((definition === undefined) === (fromCatalogue !== true)) {
    const message = 'one of --definition and --from-catalogue says what the table was like';
    usageError(context, commandErrors.COMMAND_INVALID({ message }));
  }
  const createTable =
    definition === undefined
      ? null
      : definition === '-'
        ? await text(process.stdin)
        : await readGiven(context, '--definition', definition);
  await answer(context, options, { kind: 'accept', createTable });
}

export async function runDdlSkip(context: CommandContext, options: QuestionOptions): Promise<void> {
  await answer(context, options, { kind: 'skip' });
}

async function answer(context: CommandContext, options: QuestionOptions, said: DdlAnswer): Promise<void> {
  const { config } = requireConfig(context, options);
  const source = chooseSource(context, Object.keys(config.sources), options.source);
  const position = givenPosition(context, options.position);
  const inTopic = config.checkpoint.kind === 'topic';
  if (inTopic) {
    // whoever opens that takes it over: not from a reader that asks nothing, and so may run
    const stored = await readSchemaHistory(config, source);
    requireOpenQuestion(stored?.entries ?? [], position, options.table);
  }
  const transport = inTopic ? await openQuietTransport(config) : null;
  try {
    // others are refused while a reader has the checkpoint: it would not look at the answer
    const checkpoints = await openCheckpoints(
      { config, logger: createLogger({ level: 'warn' }), signal: context.signal },
      source,
      transport,
    );
    try {
      await answerQuestion({
        source: sourceOptions(config, source, silentLogger, createMetrics()),
        store: await checkpoints.schemaHistory(),
        position,
        table: options.table,
        answer: said,
        by: `${userInfo().username}@${hostname()}`,
        now: new Date(),
      });
    } finally {
      await checkpoints.close();
    }
  } finally {
    await transport?.close();
  }
  context.output.result(`noted for ${options.table} at ${options.position}: start the reader\n`);
}

function givenPosition(context: CommandContext, text: string): BinlogPosition {
  try {
    return parseBinlogPosition(text);
  } catch (error) {
    if (isMysyncError(error)) usageError(context, error);
    throw error;
  }
}

function short(line: string): string {
  const one = line.replace(/\s+/g, ' ');
  return one.length > 100 ? `${one.slice(0, 99)}…` : one;
}
