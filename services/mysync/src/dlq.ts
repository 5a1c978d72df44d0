/** `mysync dlq`: changes that a sink could not take: list, show, retry, discard. */
import { topicOf } from '@mysync/config';
import { type Json, MessageDecoder, messageToJson, payloadOf } from '@mysync/wire';
import { type Act, readRecord } from '@mysync/writer';
import { deadLetterSpec } from './compose.ts';
import { type CommandContext, type CommonOptions, usageError } from './context.ts';
import { type ActedItem, actOn } from './dlq-act.ts';
import { type DlqSelection, type DlqStream, withStreams } from './dlq-streams.ts';
import { actsText, itemsText, resultsText } from './dlq-text.ts';
import { commandErrors } from './errors.ts';
import { EXIT, ExitRequest } from './exit-codes.ts';
import { count } from './output.ts';

interface DlqOptions extends CommonOptions, DlqSelection {
  readonly json?: boolean;
}

interface DlqActOptions extends DlqOptions {
  readonly all?: boolean;
}

export async function runDlqList(
  context: CommandContext,
  options: DlqOptions & { readonly acts?: boolean },
): Promise<void> {
  await withStreams(context, options, async ({ streams, missing }) => {
    const { result } = context.output;
    if (options.acts === true) {
      const acts = streams.flatMap((stream) => stream.acts);
      result(options.json === true ? `${JSON.stringify(acts)}\n` : actsText(acts));
      return;
    }
    const items = streams.flatMap(({ found }) => found.map(({ item }) => item));
    result(options.json === true ? `${JSON.stringify(items)}\n` : itemsText(items, missing, options));
    // where it is not the answer itself
    if (options.json === true || items.length > 0) for (const each of missing) context.output.note(`${each}\n`);
  });
}

export async function runDlqShow(context: CommandContext, id: string, options: DlqOptions): Promise<void> {
  await withStreams(context, options, async ({ streams, missing, transport, config }) => {
    requireOneSink(context, id, streams, missing);
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
    const remedy = 'Give ids (mysync dlq list shows them), or --all, or --table PATTERN.';
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy }));
  }
  const results: ActedItem[] = [];
  const { result } = context.output;
  try {
    await withStreams(context, options, async ({ streams, missing }) => {
      for (const id of ids) requireOneSink(context, id, streams, missing);
      for (const each of missing) context.output.note(`${each}\n`);
      for (const stream of streams) {
        const chosen = stream.found.filter(({ item }) => ids.length === 0 || ids.includes(item.id));
        for await (const done of actOn(stream, act, chosen)) {
          results.push(...done);
          if (options.json !== true) result(resultsText(done));
        }
      }
    });
  } catch (error) {
    // whatever ends the command: what was done by then is told
    if (results.length > 0) result(endText(results, options));
    throw error;
  }
  result(endText(results, options));
  if (results.some((each) => each.result === 'refused' || each.result === 'gone')) throw new ExitRequest(EXIT.failed);
}

/** Of a text, the rows themselves are told by then. */
function endText(results: readonly ActedItem[], { json }: DlqOptions): string {
  if (json === true) return `${JSON.stringify(results)}\n`;
  return results.length === 0 ? 'Nothing to do.\n' : `${count(results.length, 'change')}\n`;
}

/** Ends the command when no sink has a change of this id, or several have: an id names a change of the log, which each sink takes or refuses for itself. */
function requireOneSink(
  context: CommandContext,
  id: string,
  streams: readonly DlqStream[],
  missing: readonly string[],
): void {
  const sinks = streams.filter(({ found }) => found.some(({ item }) => item.id === id)).map(({ sink }) => sink);
  if (sinks.length === 0) {
    const where = missing.length === 0 ? '' : ` (${missing.join('; ')})`;
    const message = `there is no change '${id}' that a sink could not take${where}`;
    const remedy = 'mysync dlq list shows the ids; one that was settled meanwhile is not there any more.';
    usageError(context, commandErrors.COMMAND_NAME_UNKNOWN({ message, remedy, where: { id } }));
  }
  if (sinks.length > 1) {
    const message = `several sinks could not take the change '${id}': which one is meant is not said`;
    const remedy = `Add --sink with one of: ${sinks.join(', ')}. (To act on all of them: once with each.)`;
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy, where: { id } }));
  }
}
