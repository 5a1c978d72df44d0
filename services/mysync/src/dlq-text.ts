/** The tables that `mysync dlq` prints. */
import { type Act, isWithheld } from '@mysync/writer';
import type { ActedItem } from './dlq-act.ts';
import type { DlqItem } from './dlq-items.ts';
import type { DlqSelection } from './dlq-streams.ts';
import { table } from './output.ts';

/** `missing`: in words, what there is no topic of, so that nothing can be known. */
export function itemsText(
  items: readonly DlqItem[],
  missing: readonly string[],
  { sink, source, table: only }: DlqSelection,
): string {
  if (items.length === 0) {
    if (missing.length > 0) return `Nothing is known: ${missing.join('; ')}.\n`;
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

export function resultsText(results: readonly ActedItem[]): string {
  const rows = results.map((each) => [
    each.id,
    `${each.table} ${each.key}`,
    each.result,
    each.result === 'refused' || each.result === 'gone' ? explain(each) : '',
  ]);
  return table(rows);
}

function explain({ result, code, reason, kind, sink }: ActedItem): string {
  if (result !== 'refused') {
    return 'its newest state is not in the log any more: change the row in the source, then retry; or discard';
  }
  if (!isWithheld({ code })) return `${code}: ${reason}`;
  const then = kind === 'parked' ? ' and releases it' : '; then discard the letter';
  return `${code}: ${reason}, so there is nothing to retry: mysync verify --repair --sink ${sink} writes it from the source${then}`;
}

export function actsText(acts: readonly Act[]): string {
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
