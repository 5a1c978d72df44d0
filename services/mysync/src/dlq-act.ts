/**
 * Retries or discards what a sink could not take; who asked for it, and what came of it, is written down before and after: of each partition when
 * it is done, so that what fails behind it hides nothing.
 */
import { hostname, userInfo } from 'node:os';
import { systemClock } from '@mysync/core';
import type { Act, ActItem, DeskResult, ParkedKey, PoisonDesk } from '@mysync/writer';
import type { DlqItem } from './dlq-items.ts';
import type { DlqStream, Found } from './dlq-streams.ts';

export type ActedItem = DlqItem & { readonly result: DeskResult['result'] };

/** What was done, partition by partition. */
export async function* actOn(
  stream: DlqStream,
  act: Act['act'],
  chosen: readonly Found[],
): AsyncGenerator<readonly ActedItem[]> {
  if (chosen.length === 0) return;
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
  for (const partition of new Set(chosen.map(({ item }) => item.partition))) {
    const here = chosen.filter(({ item }) => item.partition === partition);
    for (const step of [parkedStep, letterStep]) {
      const done = await step(stream.desk(partition), act, here);
      if (done.length === 0) continue;
      // told first: it is done, whether that can be written down or not
      yield done;
      await record(
        'done',
        done.map((each) => ({ ...actItem(each), result: each.result })),
      );
    }
  }
}

type Step = (desk: PoisonDesk, act: Act['act'], here: readonly Found[]) => Promise<readonly ActedItem[]>;

const parkedStep: Step = async (desk, act, here) => {
  const items = here.flatMap((each) => ('parked' in each ? [each.item] : []));
  if (items.length === 0) return [];
  const offsets = new Set(items.map(({ offset }) => offset));
  const isChosen = (entry: ParkedKey): boolean => offsets.has(entry.first);
  return acted(items, act, await desk[act === 'retry' ? 'release' : 'discard'](isChosen));
};

const letterStep: Step = async (desk, act, here) => {
  const found = here.flatMap((each) => ('letter' in each ? [each] : []));
  if (found.length === 0) return [];
  const results = act === 'retry' ? await desk.reapply(found.map(({ letter }) => letter)) : [];
  return acted(
    found.map(({ item }) => item),
    act,
    results,
  );
};

function acted(items: readonly DlqItem[], act: Act['act'], results: readonly DeskResult[]): readonly ActedItem[] {
  return items.map((item) => {
    const found = results.find(({ first }) => first === item.offset);
    // A parked key that is not there any more: its table was cleared, or somebody else was faster.
    const result = found?.result ?? (act === 'discard' ? 'discarded' : 'superseded');
    return { ...item, ...(found === undefined ? {} : { code: found.code, reason: found.reason }), result };
  });
}

function actItem({ id, kind, partition, offset, table: name, key, code }: DlqItem): ActItem {
  return { id, kind, partition, offset, row: `${name} ${key}`, code };
}
