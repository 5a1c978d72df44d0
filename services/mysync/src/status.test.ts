import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusText } from './status.ts';

test('of a halted partition everything that its error says is shown', () => {
  const detail = [
    'WRITER_CHANGE_REFUSED: the sink cannot take this change',
    '  where: sink cache, topic shop, partition 1, offset 7, table shop.orders, key 2',
    '  cause: not a number',
    '  what to do: mend it',
  ].join('\n');
  const partition = { nextOffset: 7, endOffset: 9, backlog: 2, lagSeconds: null, parkedKeys: null };
  const text = statusText({
    process: null,
    sources: [],
    sinks: [
      {
        sink: 'cache',
        source: 'shop',
        partitions: [
          { ...partition, partition: 0, state: 'running', detail: '' },
          { ...partition, partition: 1, state: 'halted', detail },
        ],
      },
    ],
    unknown: [],
  });
  const lines = text.split('\n');
  assert.match(lines.find((line) => line.includes('halted')) ?? '', /WRITER_CHANGE_REFUSED: the sink cannot take/);
  for (const line of detail.split('\n').slice(1)) assert.ok(lines.includes(`  ${line}`), line);
  assert.ok(!text.includes('  partition 0:'));
});
