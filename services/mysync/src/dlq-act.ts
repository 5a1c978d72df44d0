/** Retries or discards what a sink could not take; who asked for it, and what came of it, is written down before and after. */
import { hostname, userInfo } from 'node:os';
import { systemClock } from '@mysync/core';
import type { Act, ActItem, DeskResult, ParkedKey } from '@mysync/writer';
import type { DlqItem } from './dlq-items.ts';
import type { DlqStream, Found } from './dlq-streams.ts';

export type ActedItem = DlqItem & { readonly result: DeskResult['result'] };

export async function actOn(stream: DlqStream, act: Act['act'], chosen: readonly Found[]): Promise<ActedItem[]> {
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
  const done: ActedItem[] = [];
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
