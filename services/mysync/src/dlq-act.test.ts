import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Act, DeskResult, LetterBox, ParkedKey, PoisonDesk } from '@mysync/writer';
import { actOn } from './dlq-act.ts';
import type { DlqItem } from './dlq-items.ts';
import type { DlqStream, Found } from './dlq-streams.ts';

function item(partition: number, offset: number, kind: DlqItem['kind']): DlqItem {
  return {
    id: `shop/${partition}/${offset}`,
    kind,
    sink: 'cache',
    source: 'shop',
    partition,
    offset,
    table: 'shop.orders',
    key: String(offset),
    operation: 'put',
    newestOffset: offset,
    waiting: 0,
    since: '2026-01-01T00:00:00.000Z',
    code: 'SINK_REFUSED',
    reason: 'not a number',
  };
}

const parked = (partition: number, offset: number): Found => ({
  item: item(partition, offset, 'parked'),
  parked: { first: offset } as ParkedKey,
});
const letter = (partition: number, offset: number): Found => ({
  item: item(partition, offset, 'dead-letter'),
  letter: { letter: { offset } } as Extract<Found, { letter: unknown }>['letter'],
});

test('what fails in one partition hides nothing of those before: that is told, and on record', async () => {
  const acts: Act[] = [];
  const done = (first: number): DeskResult => ({ first, result: 'applied', code: '', reason: '' }) as DeskResult;
  const broken = new Error('the store is away');
  const stream: DlqStream = {
    sink: 'cache',
    source: 'shop',
    box: { record: (list: readonly Act[]) => Promise.resolve(void acts.push(...list)) } as unknown as LetterBox,
    found: [],
    acts: [],
    desk: (partition) => {
      const desk: Pick<PoisonDesk, 'release' | 'reapply'> = {
        release: () => Promise.resolve([done(1)]),
        reapply: () => (partition === 1 ? Promise.reject(broken) : Promise.resolve([done(2)])),
      };
      return desk as PoisonDesk;
    },
  };
  const told: string[] = [];
  await assert.rejects(async () => {
    const chosen = [parked(0, 1), letter(0, 2), parked(1, 1), letter(1, 2)];
    for await (const items of actOn(stream, 'retry', chosen)) told.push(...items.map(({ id }) => id));
  }, broken);
  assert.deepEqual(told, ['shop/0/1', 'shop/0/2', 'shop/1/1']);
  assert.deepEqual(
    acts.map(({ phase, items }) => [phase, items.map(({ id }) => id)]),
    [
      ['asked', ['shop/0/1', 'shop/0/2', 'shop/1/1', 'shop/1/2']],
      ['done', ['shop/0/1']],
      ['done', ['shop/0/2']],
      ['done', ['shop/1/1']],
    ],
  );
});
