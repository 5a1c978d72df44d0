import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Checkpoint } from '@mysync/checkpoint';
import { type ChangeId, changeVersion } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import type { AppliedMarker } from '@mysync/writer';
import { type MarkedPartition, planRecovery } from './recover-plan.ts';

const at = (offset: number, ordinal = 1): ChangeId => ({ file: 'bin.000007', offset, gtid: '', ordinal });

/** Two partitions; published up to offsets 100 and 200. */
const checkpoint: Checkpoint = {
  source: 'shop',
  position: { file: 'bin.000007', offset: 5_000, gtidSet: 'u:1-9' },
  serverUuid: 'u',
  transactionCounter: 900,
  epoch: 3,
  producer: { id: '1', epoch: 2 },
  topic: { name: 'shop', id: 'old', partitions: 2 },
  configFingerprint: 'f',
  partitions: [
    { epoch: 3, generation: 0, sequence: 90, offset: 100, change: at(4_900) },
    { epoch: 3, generation: 0, sequence: 190, offset: 200, change: at(4_000, 2) },
  ],
  snapshot: { state: 'done', completeTables: [] },
  schemaHistory: null,
  savedAt: '',
};

function marked(partition: number, given: Partial<AppliedMarker>, sink = 'redis'): MarkedPartition {
  const marker: AppliedMarker = {
    topicId: 'old',
    partitions: 2,
    owner: 'o',
    nextOffset: 0,
    guard: initialGuardState(0),
    version: changeVersion(700, 1).toString(),
    change: at(3_000),
    ...given,
  };
  return { sink, partition, marker };
}

test('no sink lags: the checkpoint, GTID set included', () => {
  const plan = planRecovery(
    checkpoint,
    [
      marked(0, { nextOffset: 101, change: at(4_900), version: changeVersion(890, 1).toString() }),
      marked(1, { nextOffset: 260, change: at(6_000), version: changeVersion(990, 1).toString() }),
      { sink: 'new', partition: 0, marker: null },
    ],
    true,
  );
  assert.deepEqual(plan.position, checkpoint.position);
  assert.equal(plan.transactionCounter, 900);
  assert.deepEqual(plan.lagging, []);
  assert.deepEqual(plan.floors, [
    { file: 'bin.000007', offset: 5_000, transactionCounter: 900 },
    { file: 'bin.000007', offset: 6_000, transactionCounter: 989 },
  ]);
});

test('the one furthest behind decides: the begin of the transaction of its last change, with its counter', () => {
  const plan = planRecovery(
    checkpoint,
    [
      marked(0, { nextOffset: 60, change: at(3_000, 5), version: changeVersion(700, 5).toString() }),
      marked(1, { nextOffset: 20, change: at(2_000), version: changeVersion(600, 1).toString() }, 'elasticsearch'),
    ],
    true,
  );
  assert.deepEqual(plan.position, { file: 'bin.000007', offset: 2_000, gtidSet: '' });
  assert.equal(plan.transactionCounter, 599);
  assert.deepEqual(
    plan.lagging.map(({ sink, partition }) => [sink, partition]),
    [
      ['redis', 0],
      ['elasticsearch', 1],
    ],
  );
  assert.deepEqual(
    plan.floors.map(({ offset, transactionCounter }) => [offset, transactionCounter]),
    [
      [2_000, 599],
      [3_000, 699],
      [5_000, 900],
    ],
  );
});

test('a partition that lacks heartbeats only does not count, however old its last change is', () => {
  const plan = planRecovery(checkpoint, [marked(1, { nextOffset: 150, change: at(4_000, 2) })], true);
  assert.deepEqual(plan.position, checkpoint.position);
  assert.deepEqual(plan.lagging, []);
});

test('a transaction of over 2^20 changes begins with its own counter', () => {
  const ordinal = 3 * 2 ** 20 + 17;
  const plan = planRecovery(
    checkpoint,
    [marked(0, { nextOffset: 1, change: at(1_000, ordinal), version: changeVersion(500, ordinal).toString() })],
    true,
  );
  assert.equal(plan.transactionCounter, 499);
});

test('amid the rows of a view, all of which are named alike: from the place that they are of, where the tables are read again', () => {
  // the last row that was published and the last one that was applied are of one view
  const inView: Checkpoint = {
    ...checkpoint,
    partitions: checkpoint.partitions.map((partition) => ({ ...partition, change: at(4_900, 0) })),
  };
  const amid = marked(0, { nextOffset: 60, change: at(4_900, 0), version: changeVersion(891, 0).toString() });
  const plan = planRecovery(inView, [amid], true);
  assert.deepEqual(plan.position, { file: 'bin.000007', offset: 4_900, gtidSet: '' });
  // the rows' version is just below that of the next transaction's first change
  assert.equal(plan.transactionCounter, 890);
  assert.equal(planRecovery(inView, [amid], false).lagging[0]?.position, null);
  // whatever was published behind it
  const plan2 = planRecovery(checkpoint, [amid], true);
  assert.equal(plan2.position.offset, 4_900);
});

test('a partition into which nothing but heartbeats was put does not count; one of which nothing was applied cannot be placed', () => {
  const nothing: ChangeId = { file: '', offset: 0, gtid: '', ordinal: 0 };
  const idle: Checkpoint = {
    ...checkpoint,
    partitions: checkpoint.partitions.map((partition) => ({ ...partition, change: nothing })),
  };
  const early = marked(0, { nextOffset: 60, change: nothing, version: '0' });
  assert.deepEqual(planRecovery(idle, [early], true).lagging, []);
  assert.deepEqual(
    planRecovery(checkpoint, [early], true).lagging.map(({ position }) => position),
    [null],
  );
});

test('a row that is set aside counts, though its partition has passed it; one of a snapshot cannot be read again', () => {
  const key = 'AQAEc2hvcAZvcmRlcnMCaWQBATE=';
  const behind = { version: changeVersion(650, 1).toString(), change: at(2_500) };
  const entry = {
    first: 1,
    version: '1',
    offset: 1,
    operation: 'put',
    from: 1,
    code: 'X',
    reason: '',
    sinceMs: 0,
  } as const;
  const drained = { nextOffset: 101, change: at(4_900), version: changeVersion(890, 1).toString() };
  const parked = [{ key, ...entry, waiting: 0, behind }];
  const plan = planRecovery(checkpoint, [marked(0, { ...drained, parked })], true);
  assert.equal(plan.position.offset, 2_500);
  assert.equal(plan.transactionCounter, 649);
  assert.equal(plan.lagging[0]?.row, 'shop.orders 1');
  const early = [{ key, ...entry, waiting: 0, behind: { version: '0', change: at(0, 0) } }];
  const first = { ...early[0], behind: { version: '5', change: { file: '', offset: 0, gtid: '', ordinal: 0 } } };
  const lost = planRecovery(checkpoint, [marked(0, { ...drained, parked: [first as (typeof early)[0]] })], true);
  assert.equal(lost.lagging[0]?.position, null);
});
