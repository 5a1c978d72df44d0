import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CHANGE } from '@mysync/core';
import { partitionState, statusText } from './status.ts';

test('of a halted partition everything that its error says is shown', () => {
  const detail = [
    'WRITER_CHANGE_REFUSED: the sink cannot take this change',
    '  where: sink cache, topic shop, partition 1, offset 7, table shop.orders, key 2',
    '  cause: not a number',
    '  what to do: mend it',
  ].join('\n');
  const partition = {
    nextOffset: 7,
    endOffset: 9,
    backlog: 2,
    lagSeconds: null,
    parkedKeys: null,
    deletionsLostSince: null,
    standsBefore: null,
  };
  const text = statusText({
    process: null,
    topicsAt: '/var/lib/mysync/log',
    sources: [],
    sinks: [
      {
        sink: 'cache',
        source: 'shop',
        detail: '',
        parked: { 'shop.orders': 2, 'shop.items': 1 },
        deadLetters: { open: { 'shop.orders': 1 }, records: 4 },
        partitions: [
          { ...partition, partition: 0, state: 'running', detail: '' },
          { ...partition, partition: 1, state: 'halted', detail, deletionsLostSince: '2026-01-01T00:00:00.000Z' },
          { ...partition, partition: 2, state: 'running', detail: '', deletionsLostSince: '2026-01-02T00:00:00.000Z' },
        ],
      },
    ],
    unknown: [],
  });
  const lines = text.split('\n');
  assert.match(lines.find((line) => line.includes('halted')) ?? '', /WRITER_CHANGE_REFUSED: the sink cannot take/);
  for (const line of detail.split('\n').slice(1)) assert.ok(lines.includes(`  ${line}`), line);
  assert.ok(!text.includes('  partition 0:'));
  const hint = 'mysync verify --repair --lost-deletions --sink cache';
  const lost = lines.filter((line) => line.includes('deleted rows may stand'));
  assert.deepEqual(lost, [`  partition 2: deleted rows may stand in the sink since 2026-01-02T00:00:00.000Z: ${hint}`]);
  assert.ok(lines.includes('  3 keys set aside (shop.orders 2, shop.items 1): mysync dlq list --sink cache'));
  assert.ok(lines.includes('  1 dead letter (shop.orders 1): mysync dlq list --sink cache'));
});

test('a partition that stands in another process before lost deletions is told to stand, with a command that is not refused', () => {
  const guard = { epoch: 1, generation: 0, sequence: 1, offset: 6, seenSince: 0, closed: false, nextOffset: 7 };
  const marker = { topicId: 't', partitions: 3, owner: 'o', nextOffset: 7, guard, version: '1', change: NO_CHANGE };
  const lost = { id: 'x', foundMs: Date.UTC(2026, 0, 1) };
  const given = { range: { earliest: 0, end: 9 }, committed: 7, running: undefined };
  const text = statusText({
    process: null,
    topicsAt: '/var/lib/mysync/log',
    sources: [],
    sinks: [
      {
        sink: 'cache',
        source: 'shop',
        detail: '',
        parked: {},
        deadLetters: null,
        partitions: [
          partitionState({ ...given, partition: 0, marker: { ...marker, lost: { ...lost, stoppedAt: 7 } } }),
          partitionState({ ...given, partition: 1, marker: { ...marker, lost: { ...lost, until: 7 } } }),
          partitionState({ ...given, partition: 2, marker }),
        ],
      },
    ],
    unknown: [{ part: 'dead letters of sink cache', error: 'not JSON' }],
  });
  const command = 'mysync verify --repair --lost-deletions --sink cache';
  assert.deepEqual(
    text.split('\n').filter((line) => line.includes('verify')),
    [
      `  partition 0: stands before offset 7: ${command}`,
      `  partition 1: deleted rows may stand in the sink since 2026-01-01T00:00:00.000Z: ${command}`,
    ],
  );
  assert.match(text, /^dead letters of sink cache: unknown\nnot JSON$/m);
});

test('tables that the log does not hold whole are named', () => {
  const source = {
    source: 'shop',
    state: 'streaming',
    detail: '',
    epoch: 3,
    position: 'bin.000001:4',
    checkpoint: 'bin.000001:4',
    savedAt: null,
    lagSeconds: 0,
    snapshot: 'done',
    completeTables: ['shop.a'],
    missingTables: ['shop.b'],
    resyncingTables: ['shop.c', 'shop.d'],
  };
  const text = statusText({ process: null, sources: [source], sinks: [], topicsAt: '', unknown: [] });
  assert.match(text, /complete tables +shop\.a\n/);
  assert.match(text, /without all rows +shop\.b\n/);
  assert.match(text, /being read again +shop\.c, shop\.d\n/);
  const whole = { ...source, missingTables: [], resyncingTables: [] };
  assert.doesNotMatch(
    statusText({ process: null, sources: [whole], sinks: [], topicsAt: '', unknown: [] }),
    /without all|being read/,
  );
});
